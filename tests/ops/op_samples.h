// Samples for the operator laws, made by the words of op_samples.inc.
#ifndef NPURT_TESTS_OPS_OP_SAMPLES_H_
#define NPURT_TESTS_OPS_OP_SAMPLES_H_

#include <vector>

#include "base/attributes.h"
#include "base/tensor.h"

namespace npurt::ops {

struct Sample {
  const char* op;
  std::vector<Value> inputs;
  Attributes attributes;
  int outputs;
};

std::vector<Sample> MakeSamples();

}  // namespace npurt::ops

#endif  // NPURT_TESTS_OPS_OP_SAMPLES_H_
