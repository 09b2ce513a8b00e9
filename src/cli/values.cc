#include "cli/values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cli/text.h"

namespace npurt::cli {
namespace {

// The index of element `flat` of an array of these dimensions, "[0, 2, 1]".
std::string Place(std::size_t flat, const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> index(dims.size());
  for (std::size_t d = dims.size(); d-- > 0;) {
    const auto dim = static_cast<std::size_t>(std::max<std::int64_t>(1, dims[d]));
    index[d] = static_cast<std::int64_t>(flat % dim);
    flat /= dim;
  }
  return FormatDims(index);
}

std::string Exact(long double number) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.9Lg", number);
  return buffer;
}

bool Close(long double got, long double want, const Tolerance& tolerance) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return want == got;
  return std::fabs(got - want) <=
         static_cast<long double>(tolerance.absolute) + tolerance.relative * std::fabs(want);
}

std::string DifferenceOfArrays(const Array& got, const Array& want, const Tolerance& tolerance,
                               bool values) {
  if (got.dtype != want.dtype || got.dims != want.dims)
    return "got " + Describe(got) + ", want " + Describe(want);
  if (!values) return "";
  if (got.dtype == NPURT_STRING) {
    for (std::size_t i = 0; i < want.strings.size(); ++i)
      if (got.strings[i] != want.strings[i])
        return "at " + Place(i, want.dims) + ": got '" + got.strings[i] + "', want '" +
               want.strings[i] + "'";
    return "";
  }
  const npurt_dtype part = PartOf(want.dtype);
  const std::size_t parts = part == want.dtype ? 1 : 2;
  std::size_t count = 0, bad = 0, first = 0;
  CountOf(want.dims, &count);
  for (std::size_t i = 0; i < count * parts; ++i) {
    if (Close(LoadElement(part, got.bytes.data(), i), LoadElement(part, want.bytes.data(), i),
              tolerance))
      continue;
    if (bad++ == 0) first = i;
  }
  if (bad == 0) return "";
  return "at " + Place(first / parts, want.dims) + ": got " +
         Exact(LoadElement(part, got.bytes.data(), first)) + ", want " +
         Exact(LoadElement(part, want.bytes.data(), first)) + "; " + std::to_string(bad) + " of " +
         std::to_string(count * parts) + " values differ";
}

Status Item(npurt_value* value, std::size_t index, OwnedValue* out) {
  OwnedError error;
  return FromLibrary(npurt_value_item(value, index, out->out(), error.out()), error, kExitRun,
                     "item " + std::to_string(index));
}

// The values of a map as one array, if all are scalars of one type.
Status MapValues(npurt_value* map, bool* scalars, Array* out) {
  const std::size_t count = npurt_value_count(map);
  Array joined;
  joined.dims = {static_cast<std::int64_t>(count)};
  *scalars = count > 0;
  for (std::size_t i = 0; i < count && *scalars; ++i) {
    OwnedValue item;
    NPURT_CLI_TRY(Item(map, i, &item));
    Array array;
    *scalars = npurt_value_kind(item.get()) == NPURT_KIND_TENSOR;
    if (!*scalars) break;
    NPURT_CLI_TRY(ToArray(item.get(), &array));
    *scalars = npurt_value_count(item.get()) == 1 && npurt_dtype_bits(array.dtype) % 8 == 0 &&
               (i == 0 || array.dtype == joined.dtype);
    joined.dtype = array.dtype;
    joined.bytes.insert(joined.bytes.end(), array.bytes.begin(), array.bytes.end());
    joined.strings.insert(joined.strings.end(), array.strings.begin(), array.strings.end());
  }
  *out = std::move(joined);
  return Status();
}

}  // namespace

Status ToArray(npurt_value* tensor, Array* out) {
  OwnedError error;
  npurt_tensor view = npurt_tensor_init();
  NPURT_CLI_TRY(FromLibrary(npurt_value_tensor(tensor, &view, error.out()), error, kExitRun,
                            "reading a tensor"));
  Array array;
  array.dtype = view.dtype;
  array.dims.assign(view.dims, view.dims + view.rank);
  if (view.dtype == NPURT_STRING) {
    for (std::size_t i = 0; i < view.count; ++i) {
      npurt_string text = {nullptr, 0};
      NPURT_CLI_TRY(FromLibrary(npurt_value_string(tensor, i, &text, error.out()), error, kExitRun,
                                "reading a string"));
      array.strings.emplace_back(text.size == 0 ? "" : text.data, text.size);
    }
  } else {
    array.bytes.resize(view.bytes);
    NPURT_CLI_TRY(
        FromLibrary(npurt_value_read(tensor, array.bytes.data(), array.bytes.size(), error.out()),
                    error, kExitRun, "reading a tensor"));
  }
  *out = std::move(array);
  return Status();
}

Status ToValue(const Array& array, OwnedValue* out) {
  OwnedError error;
  if (array.dtype == NPURT_STRING) {
    std::vector<npurt_string> views;
    for (const std::string& text : array.strings) views.push_back({text.data(), text.size()});
    return FromLibrary(npurt_value_strings(array.dims.data(), array.dims.size(), views.data(),
                                           views.size(), out->out(), error.out()),
                       error, kExitRefused, "making a tensor of strings");
  }
  return FromLibrary(
      npurt_value_copy(array.dtype, array.dims.data(), array.dims.size(), array.bytes.data(),
                       array.bytes.size(), out->out(), error.out()),
      error, kExitRefused, "making a tensor " + Describe(array));
}

Status VisitTensors(npurt_value* value, const std::string& suffix,
                    const std::function<Status(const std::string&, const Array&)>& visit) {
  OwnedError error;
  Array array;
  if (npurt_value_kind(value) == NPURT_KIND_TENSOR) {
    NPURT_CLI_TRY(ToArray(value, &array));
    return visit(suffix, array);
  }
  std::string prefix = suffix;
  if (npurt_value_kind(value) == NPURT_KIND_MAP) {
    OwnedValue keys;
    NPURT_CLI_TRY(FromLibrary(npurt_value_keys(value, keys.out(), error.out()), error, kExitRun,
                              "reading the keys of a map"));
    NPURT_CLI_TRY(VisitTensors(keys.get(), suffix + "_0", visit));
    prefix += "_1";
    bool scalars = false;
    NPURT_CLI_TRY(MapValues(value, &scalars, &array));
    if (scalars) return visit(prefix, array);
  }
  for (std::size_t i = 0; i < npurt_value_count(value); ++i) {
    OwnedValue item;
    NPURT_CLI_TRY(Item(value, i, &item));
    NPURT_CLI_TRY(VisitTensors(item.get(), prefix + "_" + std::to_string(i), visit));
  }
  return Status();
}

Summary Summarise(const Array& array) {
  Summary summary;
  std::size_t count = 0;
  if (array.dtype == NPURT_STRING || !CountOf(array.dims, &count)) return summary;
  summary.count = count;
  const npurt_dtype part = PartOf(array.dtype);
  if (part != array.dtype) count *= 2;
  long double sum = 0, squares = 0;
  std::size_t finite = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const long double number = LoadElement(part, array.bytes.data(), i);
    summary.nan += std::isnan(number);
    summary.inf += std::isinf(number);
    if (!std::isfinite(number)) continue;
    const auto x = static_cast<double>(number);
    summary.min = finite == 0 ? x : std::min(summary.min, x);
    summary.max = finite == 0 ? x : std::max(summary.max, x);
    sum += number;
    squares += number * number;
    ++finite;
  }
  if (finite > 0) {
    summary.mean = static_cast<double>(sum / static_cast<long double>(finite));
    summary.rms = static_cast<double>(std::sqrt(squares / static_cast<long double>(finite)));
  }
  return summary;
}

std::string Describe(const Array& array) {
  const char* name = npurt_dtype_name(array.dtype);
  return std::string(name == nullptr ? "?" : name) + " " + FormatDims(array.dims);
}

std::string Difference(npurt_value* got, npurt_value* want, const Tolerance& tolerance,
                       bool values) {
  const npurt_kind kind = npurt_value_kind(want);
  if (std::strcmp(npurt_value_type(got), npurt_value_type(want)) != 0)
    return std::string("got ") + npurt_value_type(got) + ", want " + npurt_value_type(want);
  Array got_array, want_array;
  if (kind == NPURT_KIND_TENSOR) {
    for (const Status& status : {ToArray(got, &got_array), ToArray(want, &want_array)})
      if (!status.ok()) return status.message();
    return DifferenceOfArrays(got_array, want_array, tolerance, values);
  }
  const std::size_t count = npurt_value_count(want);
  if (npurt_value_count(got) != count)
    return "got " + std::to_string(npurt_value_count(got)) + " items, want " +
           std::to_string(count);
  if (kind == NPURT_KIND_MAP) {
    OwnedValue got_keys, want_keys;
    if (npurt_value_keys(got, got_keys.out(), nullptr) != NPURT_OK ||
        npurt_value_keys(want, want_keys.out(), nullptr) != NPURT_OK)
      return "the keys of a map cannot be read";
    const std::string keys = Difference(got_keys.get(), want_keys.get(), tolerance, values);
    if (!keys.empty()) return "keys: " + keys;
  }
  for (std::size_t i = 0; i < count; ++i) {
    OwnedValue got_item, want_item;
    for (const Status& status : {Item(got, i, &got_item), Item(want, i, &want_item)})
      if (!status.ok()) return status.message();
    const std::string item = Difference(got_item.get(), want_item.get(), tolerance, values);
    if (!item.empty()) return "item " + std::to_string(i) + ": " + item;
  }
  return "";
}

std::uint64_t Digest(npurt_value* value, std::uint64_t before) {
  std::uint64_t hash = before ^ 0xcbf29ce484222325u;  // FNV-1a
  const auto add = [&](const void* data, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
      hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3u;
  };
  const char* const type = npurt_value_type(value);
  add(type, std::strlen(type));
  (void)VisitTensors(value, "", [&](const std::string& suffix, const Array& array) {
    const std::string what = suffix + Describe(array);
    add(what.data(), what.size());
    add(array.bytes.data(), array.bytes.size());
    for (const std::string& text : array.strings) add(text.c_str(), text.size() + 1);
    return Status();
  });
  return hash;
}

}  // namespace npurt::cli
