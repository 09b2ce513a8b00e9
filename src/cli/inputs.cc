#include "cli/inputs.h"

#include <algorithm>
#include <limits>
#include <map>

#include "cli/npy.h"
#include "cli/values.h"

namespace npurt::cli {
namespace {

Status CheckName(const std::string& flag, const std::string& name,
                 const std::vector<ValueInfo>& inputs) {
  std::vector<std::string> names;
  for (const ValueInfo& input : inputs) names.push_back(input.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return Status();
  const std::string nearest = Nearest(name, names);
  return Usage(flag + ": the model has no input '" + name + "'" +
                   (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"),
               "npurt inspect MODEL lists its inputs.");
}

Status ParseShape(const std::string& text, std::vector<std::int64_t>* out) {
  out->clear();
  if (text == "scalar") return Status();
  for (const std::string& part : Split(text, 'x')) {
    std::int64_t dim = 0;
    if (!ParseInteger(part, &dim) || dim < 0)
      return Usage("--shape: got '" + text + "', want dimensions as in 1x3x224x224, or scalar");
    out->push_back(dim);
  }
  return Status();
}

Status FromFile(const std::string& path, const ValueInfo& input, OwnedValue* out) {
  Array array;
  NPURT_CLI_TRY(ReadNpy(path, &array));
  if (input.kind == NPURT_KIND_TENSOR && !ReinterpretAs(input.dtype, &array))
    return Refused(
        path + ": is " + Describe(array) + ", input '" + input.name + "' is " + input.Describe(),
        "Convert the file with numpy.ndarray.astype().");
  return ToValue(array, out);
}

Status Filled(const InputFlags& flags, const ValueInfo& input,
              const std::map<std::string, std::vector<std::int64_t>>& shapes, OwnedValue* out) {
  if (input.kind != NPURT_KIND_TENSOR)
    return Refused("input '" + input.name + "' is " + input.Describe() +
                   ": only tensors can be made up; npurt test reads other values from .pb files");
  InputSpec spec;
  spec.name = input.name;
  spec.dtype = input.dtype;
  spec.dims = input.dims;
  const auto shape = shapes.find(input.name);
  if (shape != shapes.end()) spec.dims = shape->second;
  if ((shape == shapes.end() && !input.has_rank) ||
      std::count(spec.dims.begin(), spec.dims.end(), -1) > 0) {
    std::string example;
    for (const std::int64_t dim : spec.dims)
      example += (example.empty() ? "" : "x") + (dim < 0 ? "N" : std::to_string(dim));
    return Usage(
        "input '" + input.name + "' is " + input.Describe() + ": its size is not known",
        "Give it with --shape " + input.name + "=" + (example.empty() ? "N" : example) + ".");
  }
  spec.kind = "const";
  spec.a = flags.fill == "ones" ? 1 : 0;
  if (flags.fill == "random") {
    spec.kind = IsFloating(input.dtype) ? "uniform" : "randint";
    spec.a = 0;
    spec.b = 1;
  }
  if (input.dtype == NPURT_STRING) {
    spec.kind = "values";
    spec.values = {""};
  }
  Array array;
  NPURT_CLI_TRY(MakeInput(spec, static_cast<std::uint64_t>(flags.seed), &array));
  return ToValue(array, out);
}

}  // namespace

void InputFlags::Declare(Args& args) {
  args.Text("--inputs", "SPEC.tsv", &table,
            "A table of inputs: name, type, shape, kind (uniform, randint, const, arange, values), "
            "a, b, separated by tabs. The same table gives the same values everywhere.");
  args.List("--input", "NAME=FILE.npy", &files, "An input from a file of NumPy's.");
  args.Choice("--fill", "random|zeros|ones", &fill,
              "For inputs that are not given: random (the default) is 0 to 1, for whole numbers 0 "
              "or 1.");
  args.Integer("--seed", 0, std::numeric_limits<std::int64_t>::max(), &seed,
               "Of random inputs; 1234 if it is not given.");
  args.List("--shape", "NAME=1x3x224x224", &shapes, "The shape of an input that is made up.");
}

Status MakeInputs(const InputFlags& flags, const std::vector<ValueInfo>& inputs,
                  std::vector<OwnedValue>* out) {
  std::map<std::string, std::string> files;
  std::map<std::string, std::vector<std::int64_t>> shapes;
  std::map<std::string, InputSpec> specs;
  std::string name, text;
  for (const std::string& pair : flags.files) {
    SplitPair(pair, '=', false, &name, &text);
    NPURT_CLI_TRY(CheckName("--input", name, inputs));
    files[name] = text;
  }
  for (const std::string& pair : flags.shapes) {
    SplitPair(pair, '=', true, &name, &text);
    NPURT_CLI_TRY(CheckName("--shape", name, inputs));
    NPURT_CLI_TRY(ParseShape(text, &shapes[name]));
  }
  if (!flags.table.empty()) {
    std::vector<InputSpec> rows;
    NPURT_CLI_TRY(ReadInputSpecs(flags.table, &rows));
    for (const InputSpec& row : rows) {
      NPURT_CLI_TRY(CheckName(flags.table, row.name, inputs));
      specs[row.name] = row;
    }
  }
  std::vector<OwnedValue> values;
  for (const ValueInfo& input : inputs) {
    OwnedValue value;
    if (files.count(input.name) > 0) {
      NPURT_CLI_TRY(FromFile(files[input.name], input, &value));
    } else if (specs.count(input.name) > 0) {
      Array array;
      NPURT_CLI_TRY(MakeInput(specs[input.name], static_cast<std::uint64_t>(flags.seed), &array));
      NPURT_CLI_TRY(ToValue(array, &value));
    } else {
      NPURT_CLI_TRY(Filled(flags, input, shapes, &value));
    }
    values.push_back(std::move(value));
  }
  *out = std::move(values);
  return Status();
}

}  // namespace npurt::cli
