// The inputs of a run from the command line: files, a table, or a fill, in this order of
// precedence.
#ifndef NPURT_CLI_INPUTS_H_
#define NPURT_CLI_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/args.h"
#include "cli/handles.h"
#include "cli/inputs_tsv.h"
#include "cli/session.h"

namespace npurt::cli {

struct InputFlags {
  std::string table;                // --inputs SPEC.tsv
  std::vector<std::string> files;   // --input NAME=FILE.npy
  std::vector<std::string> shapes;  // --shape NAME=1x3x224x224
  std::string fill = "random";
  std::int64_t seed = kDefaultSeed;

  void Declare(Args& args);
};

// One value per input of the model, in its order. Names that no input has are refused.
Status MakeInputs(const InputFlags& flags, const std::vector<ValueInfo>& inputs,
                  std::vector<OwnedValue>* out);

}  // namespace npurt::cli

#endif  // NPURT_CLI_INPUTS_H_
