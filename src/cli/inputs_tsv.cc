#include "cli/inputs_tsv.h"

#include <fstream>

#include "cli/args.h"

namespace npurt::cli {
namespace {

constexpr std::uint64_t kFnvOffset = 1469598103934665603u;
constexpr std::uint64_t kFnvPrime = 1099511628211u;

// splitmix64 (Steele, Lea, Flood 2014).
class Generator {
 public:
  Generator(const std::string& name, std::uint64_t seed) : state_(kFnvOffset) {
    for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * kFnvPrime;
    state_ ^= seed;
  }
  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

// What is wrong with a line, or "".
std::string ParseLine(const std::string& line, InputSpec* out) {
  const std::vector<std::string> column = Split(line, '\t');
  if (column.size() < 4) return "want name, type, shape and kind, separated by tabs";
  out->name = column[0];
  out->dtype = npurt_dtype_find(column[1].c_str());
  if (out->dtype == NPURT_DTYPE_NONE) return "'" + column[1] + "' is not an element type";
  if (column[2] != "scalar") {
    for (const std::string& text : Split(column[2], ',')) {
      std::int64_t dim = 0;
      if (!ParseInteger(text, &dim) || dim < 0) return "'" + column[2] + "' is not a shape";
      out->dims.push_back(dim);
    }
  }
  out->kind = column[3];
  bool known = false;
  for (const char* kind : {"uniform", "randint", "const", "arange", "values"})
    known = known || out->kind == kind;
  if (!known) return "kind '" + out->kind + "', want uniform, randint, const, arange or values";
  if (out->kind == "values") {
    if (column.size() < 5 || column[4].empty()) return "kind values needs values: x;y;...";
    out->values = Split(column[4], ';');
    return "";
  }
  if (column.size() > 4 && !column[4].empty() && !ParseReal(column[4], &out->a))
    return "'" + column[4] + "' is not a number";
  if (column.size() > 5 && !column[5].empty() && !ParseReal(column[5], &out->b))
    return "'" + column[5] + "' is not a number";
  return "";
}

}  // namespace

Status ReadInputSpecs(const std::string& path, std::vector<InputSpec>* out) {
  std::ifstream file(path);
  if (!file) return Refused(path + ": cannot be read", "Check the name and the permissions.");
  std::vector<InputSpec> specs;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line[0] == '#') continue;
    InputSpec spec;
    const std::string problem = ParseLine(line, &spec);
    if (!problem.empty()) return Refused(path + ":" + std::to_string(number) + ": " + problem);
    specs.push_back(std::move(spec));
  }
  *out = std::move(specs);
  return Status();
}

Status MakeInput(const InputSpec& spec, std::uint64_t seed, Array* out) {
  Array array;
  array.dtype = spec.dtype;
  array.dims = spec.dims;
  std::size_t count = 0;
  if (!CountOf(spec.dims, &count)) return Refused("input '" + spec.name + "': not a shape");
  if (spec.dtype == NPURT_STRING) {
    if (spec.kind != "values")
      return Refused("input '" + spec.name + "': strings need kind values",
                     "Give them in a table: npurt run --inputs SPEC.tsv");
    for (std::size_t i = 0; i < count; ++i)
      array.strings.push_back(spec.values[i % spec.values.size()]);
    *out = std::move(array);
    return Status();
  }
  const npurt_dtype part = PartOf(spec.dtype);
  if (part != spec.dtype) count *= 2;
  array.bytes.resize(BytesOf(part, count));
  std::vector<double> values;
  for (const std::string& text : spec.values) {
    double value = 0;
    if (!ParseReal(text, &value))
      return Refused("input '" + spec.name + "': '" + text + "' is not a number");
    values.push_back(value);
  }
  Generator generator(spec.name, seed);
  const auto low = static_cast<std::int64_t>(spec.a);
  const std::uint64_t range = static_cast<std::uint64_t>(static_cast<std::int64_t>(spec.b)) -
                              static_cast<std::uint64_t>(low) + 1;
  if (spec.kind == "randint" && (spec.b < spec.a || range == 0))
    return Refused("input '" + spec.name + "': randint needs a <= b");
  for (std::size_t i = 0; i < count; ++i) {
    double value = spec.a;
    if (spec.kind == "uniform") {
      value =
          spec.a + (spec.b - spec.a) * (static_cast<double>(generator.Next() >> 40) / 16777216.0);
    } else if (spec.kind == "randint") {
      value = static_cast<double>(low + static_cast<std::int64_t>(generator.Next() % range));
    } else if (spec.kind == "arange") {
      value = spec.a + spec.b * static_cast<double>(i);
    } else if (spec.kind == "values") {
      value = values[i % values.size()];
    }
    StoreElement(part, array.bytes.data(), i, value);
  }
  *out = std::move(array);
  return Status();
}

}  // namespace npurt::cli
