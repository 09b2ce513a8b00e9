// Values of the library to and from the command's own arrays, and what people want to know of them.
#ifndef NPURT_CLI_VALUES_H_
#define NPURT_CLI_VALUES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "cli/array.h"
#include "cli/handles.h"

namespace npurt::cli {

// A copy of a tensor.
Status ToArray(npurt_value* tensor, Array* out);
Status ToValue(const Array& array, OwnedValue* out);

// Calls `visit(name_suffix, tensor)` for each tensor in `value`, depth first: a tensor itself with
// suffix "", item k of a sequence (or content of an optional, k = 0) "_k", the keys of a map "_0"
// and its values "_1". Values of a map that are scalars of one type come as one array of rank 1.
Status VisitTensors(npurt_value* value, const std::string& suffix,
                    const std::function<Status(const std::string&, const Array&)>& visit);

// Statistics over the numbers of an array; of complex numbers, over both parts.
struct Summary {
  std::size_t count = 0, nan = 0, inf = 0;
  double min = 0, max = 0, mean = 0, rms = 0;  // over the finite ones; 0 if there are none
};
Summary Summarise(const Array& array);

// "float32 [1, 3, 4]".
std::string Describe(const Array& array);

// How far two values may lie apart.
struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;
};

// "" if `got` has the type, shape and values of `want`: |got - want| <= absolute + relative *
// |want|, NaN equals NaN, strings are equal. Else the first difference. `values` false: only types
// and shapes are compared.
std::string Difference(npurt_value* got, npurt_value* want, const Tolerance& tolerance,
                       bool values = true);

// A number that is another one if any bit, type or shape of `value` is; `before` is where to go on
// from, 0 at first.
std::uint64_t Digest(npurt_value* value, std::uint64_t before);

}  // namespace npurt::cli

#endif  // NPURT_CLI_VALUES_H_
