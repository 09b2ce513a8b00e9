// Array: a tensor in the command's own memory, and single elements of every type as numbers.
#ifndef NPURT_CLI_ARRAY_H_
#define NPURT_CLI_ARRAY_H_

#include <npurt/npurt.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace npurt::cli {

struct Array {
  npurt_dtype dtype = NPURT_DTYPE_NONE;
  std::vector<std::int64_t> dims;
  std::vector<std::uint8_t> bytes;   // row-major, packed as npurt.h says
  std::vector<std::string> strings;  // instead of bytes for NPURT_STRING
};

// Product of dims; false if one is negative or the product does not fit.
bool CountOf(const std::vector<std::int64_t>& dims, std::size_t* out_count);

// Bytes of `count` elements, rounded up for packed types. 0 for strings.
std::size_t BytesOf(npurt_dtype dtype, std::size_t count);

bool IsFloating(npurt_dtype dtype);

// The type of the parts of a complex number, and `dtype` itself for all others. A complex tensor is
// read as twice as many elements of its part type.
npurt_dtype PartOf(npurt_dtype dtype);

// Element `index`; long double holds every type exactly. REQUIRES: neither complex nor string.
long double LoadElement(npurt_dtype dtype, const void* data, std::size_t index);

// Elements from `begin` on as doubles, fast for the common types; integers of 64 bits are rounded.
// REQUIRES: as above.
void LoadElements(npurt_dtype dtype, const void* data, std::size_t begin, std::size_t count,
                  double* out);

// Floating types round to nearest even, integers towards zero and to the ends of their range.
// REQUIRES: as above.
void StoreElement(npurt_dtype dtype, void* data, std::size_t index, double value);

}  // namespace npurt::cli

#endif  // NPURT_CLI_ARRAY_H_
