// Reads and writes NumPy's .npy files, versions 1 to 3.
//
// Types that NumPy does not have are written as what holds their bits: bfloat16 as uint16, the
// 8-bit floats as uint8, types below a byte one element per byte (int8 or uint8). Strings are
// written as NumPy's 'U'. ReadNpy gives NumPy's type; ReinterpretAs goes back.
#ifndef NPURT_CLI_NPY_H_
#define NPURT_CLI_NPY_H_

#include <string>

#include "cli/array.h"
#include "cli/status.h"

namespace npurt::cli {

Status ReadNpy(const std::string& path, Array* out);
Status WriteNpy(const std::string& path, const Array& array);

// Makes `array` one of type `dtype` if its elements are the bits of it; else it is left alone and
// the result is false.
bool ReinterpretAs(npurt_dtype dtype, Array* array);

}  // namespace npurt::cli

#endif  // NPURT_CLI_NPY_H_
