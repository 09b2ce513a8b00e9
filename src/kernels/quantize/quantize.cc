// Quantize: the table of kernels. See quantize.h.
#include "kernels/quantize/quantize.h"

#include "base/cpu_isa.h"

namespace npurt::kernels {

const QuantizeKernel kQuantizeKernels[] = {
#define NPURT_QUANTIZE(isa_set, set) \
  {"quantize_" #set, isa_set, quantize_##set, dequantize_##set, byte_sum_##set},
#include "kernels/quantize/quantize.inc"
#undef NPURT_QUANTIZE
};
const int kQuantizeKernelCount =
    static_cast<int>(sizeof kQuantizeKernels / sizeof kQuantizeKernels[0]);

const QuantizeKernel* SelectQuantize(std::uint32_t allowed) {
  const QuantizeKernel* kernel = kQuantizeKernels;
  while (!HasAll(allowed, kernel->needs)) ++kernel;  // the last one needs nothing
  return kernel;
}

}  // namespace npurt::kernels
