// What the micro-kernels of all sets do to the sums of one row: see IntEpilogue.
//
// Thread safety: plain data.
#ifndef NPURT_KERNELS_INTGEMM_FINISH_H_
#define NPURT_KERNELS_INTGEMM_FINISH_H_

#include <cstdint>

namespace npurt::kernels {

struct Finish {
  double row_bias, row_scale;
  const double* column_bias;   // or null
  const double* column_scale;  // or null
  double low, high;            // before `zero` is added
  std::int32_t zero;
};

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_INTGEMM_FINISH_H_
