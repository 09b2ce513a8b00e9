// Elements of any type of real numbers as double, for references: LoadNumber and StoreNumber.
//
// double holds all values of all types but large 64-bit integers. Not for speed.
//
// Thread safety: pure functions; two packed elements of one byte are one place in memory.
#ifndef NPURT_OPS_NUMBERS_H_
#define NPURT_OPS_NUMBERS_H_

#include <cstdint>

#include "base/dtype.h"
#include "kernels/elementwise/narrow.h"

namespace npurt::ops {

using kernels::kNarrowFloats;
using kernels::kNarrowIntegers;

// The least and the largest (finite) value of a type with at least 2 bits, but narrow floats.
double LowestOf(DType dtype);
double LargestOf(DType dtype);

// Element `index` of a buffer of numbers; any alignment. 0 for other types.
double LoadNumber(DType dtype, const void* data, std::int64_t index);
// Rounds a float to its type; rounds to whole numbers and saturates integers, where NaN becomes 0.
// `saturate` is for narrow floats: what is too large becomes their largest value.
void StoreNumber(DType dtype, void* data, std::int64_t index, double value, bool saturate = true);

}  // namespace npurt::ops

#endif  // NPURT_OPS_NUMBERS_H_
