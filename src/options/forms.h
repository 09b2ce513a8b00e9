// Forms: the little languages of options whose value is more than a number or a word.
//
// Each function says what is wrong with a value, "" if nothing.
//
// Thread safety: pure functions.
#ifndef NPURT_OPTIONS_FORMS_H_
#define NPURT_OPTIONS_FORMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace npurt::options {

// name:dim,...;... with digits, -1, or 0 alone for a scalar; at least one -1.
std::string InputShape(absl::string_view value);
// At least two different gears of equally many numbers.
std::string DynamicDims(absl::string_view value);
std::string ShapeRange(absl::string_view value);
std::string InOutPair(absl::string_view value);
std::string DumpStep(absl::string_view value);
std::string StreamParallel(absl::string_view value);
std::string AicoreNum(absl::string_view value);
std::string AccelerateTrain(absl::string_view value);
std::string DeviceList(absl::string_view value);
std::string Names(absl::string_view value);
std::string PlainPath(absl::string_view value);
std::string Number(absl::string_view value);

// REQUIRES: the form is right.
int CountGearDimensions(absl::string_view input_shape);
int CountGears(absl::string_view dynamic_dims);
int GearLength(absl::string_view dynamic_dims);

struct GearInput {
  std::string name;
  std::vector<std::int64_t> dims;  // none for a scalar
};
// The shapes of all inputs, for each gear. REQUIRES: also that gears have a value for each -1.
std::vector<std::vector<GearInput>> ExpandGears(absl::string_view input_shape,
                                                absl::string_view dynamic_dims);

}  // namespace npurt::options

#endif  // NPURT_OPTIONS_FORMS_H_
