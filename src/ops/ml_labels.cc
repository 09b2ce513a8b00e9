// LabelEncoder, OneHotEncoder, DictVectorizer, ZipMap: labels to labels, labels and maps by label to
// columns, columns to maps.
#include <bit>
#include <cmath>

#include "base/hash_map.h"
#include "absl/strings/str_cat.h"
#include "ops/move.h"
#include "ops/values.h"

namespace npurt::ops::ml_labels {
namespace {

// A list of the attributes keys_*, values_* or default_* as a tensor, or an undefined one.
Tensor ListOf(const Attributes& attributes, const std::string& name) {
  if (const Tensor* tensor = attributes.FindTensor(name + "_tensor")) return *tensor;
  const auto make = [](auto values) -> Tensor {
    using T = std::decay_t<decltype(values[0])>;
    const std::int64_t count = static_cast<std::int64_t>(values.size());
    auto tensor = Tensor::FromSpan<T>({count}, values);
    return tensor.ok() ? *std::move(tensor) : Tensor();
  };
  if (attributes.Has(name + "_strings")) return make(attributes.Strings(name + "_strings"));
  if (attributes.Has(name + "_int64s")) return make(attributes.Ints(name + "_int64s"));
  if (attributes.Has(name + "_floats")) return make(attributes.Floats(name + "_floats"));
  return Tensor();
}

absl::Status InferLabelEncoder(InferContext& context) {
  const Tensor keys = ListOf(context.attributes(), "keys");
  const Tensor values = ListOf(context.attributes(), "values");
  if (!keys.defined() || !values.defined() || keys.element_count() != values.element_count())
    return absl::InvalidArgumentError(absl::StrCat(
        keys.element_count(), " keys for ", values.element_count(), " values"));
  // float64 stands for float32 on a device that computes in it.
  const bool same = keys.dtype() == context.dtype(0) ||
                    (keys.dtype() == DType::kF32 && context.dtype(0) == DType::kF64);
  if (!same)
    return absl::InvalidArgumentError(absl::StrCat("the input is ", DTypeName(context.dtype(0)),
                                                   ", the keys are ", DTypeName(keys.dtype())));
  if (!RanksKnown(context)) {
    context.set_output_unknown(0, values.dtype());
    return absl::OkStatus();
  }
  context.set_output(0, values.dtype(), context.shape(0));
  return absl::OkStatus();
}

// The value for keys that are not listed.
absl::StatusOr<Tensor> DefaultOf(const Attributes& attributes, DType dtype) {
  if (const Tensor* tensor = attributes.FindTensor("default_tensor")) {
    if (tensor->element_count() != 1 || tensor->dtype() != dtype)
      return absl::InvalidArgumentError("default_tensor does not fit the values");
    return *tensor;
  }
  NPURT_ASSIGN_OR_RETURN(Tensor value, Tensor::Create(dtype, {}));
  if (dtype == DType::kString)
    value.set<std::string>(0, attributes.String("default_string", "_Unused"));
  else if (dtype == DType::kI64)
    value.set<std::int64_t>(0, attributes.Int("default_int64", -1));
  else if (dtype == DType::kF32)
    value.set<float>(0, attributes.Float("default_float", -0.0f));
  return value;
}

// What finds a key: the text itself, or the bits of the number with all NaN alike.
std::string KeyOf(DType dtype, const void* data, std::int64_t i) {
  if (dtype == DType::kString) return static_cast<const std::string*>(data)[i];
  std::string key;
  DispatchDType<kNumbers>(dtype, [&](auto type) {
    using T = decltype(type);
    std::memcpy(&type, static_cast<const char*>(data) + i * static_cast<std::int64_t>(sizeof(T)),
                sizeof(T));
    if constexpr (Contains(kFloats, kDTypeOf<T>)) {
      const float value = static_cast<float>(type) + 0.0f;  // -0 is 0
      key = std::isnan(value) ? "nan" : absl::StrCat(std::bit_cast<std::uint32_t>(value));
    } else {
      key = absl::StrCat(static_cast<std::int64_t>(type));
    }
  });
  return key;
}

absl::Status ReferenceLabelEncoder(const RunContext& run, std::int64_t, void*) {
  const Tensor keys = ListOf(run.attributes(), "keys");
  const Tensor values = ListOf(run.attributes(), "values");
  NPURT_ASSIGN_OR_RETURN(const Tensor fallback, DefaultOf(run.attributes(), values.dtype()));
  HashMap<std::string, std::int64_t> index;
  for (std::int64_t i = 0; i < keys.element_count(); ++i)
    index.try_emplace(KeyOf(keys.dtype(), keys.data(), i), i);
  for (std::int64_t i = 0; i < run.count(0); ++i) {
    const auto found = index.find(KeyOf(run.dtype(0), run.input(0).data, i));
    const Tensor& from = found == index.end() ? fallback : values;
    const std::int64_t at = found == index.end() ? 0 : found->second;
    if (from.dtype() == run.output(0).dtype) {
      CopyElements(from.dtype(), run.output(0).data, i, from.data(), at, 1);
    } else {
      NPURT_ASSIGN_OR_RETURN(const std::vector<double> numbers, Reals(from));
      StoreReal(run, 0, i, numbers[static_cast<std::size_t>(at)]);
    }
  }
  return absl::OkStatus();
}

std::int64_t CategoryCount(const Attributes& attributes) {
  return static_cast<std::int64_t>(attributes.Has("cats_strings")
                                       ? attributes.Strings("cats_strings").size()
                                       : attributes.Ints("cats_int64s").size());
}

absl::Status InferOneHot(InferContext& context) {
  const bool strings = context.dtype(0) == DType::kString;
  if (strings != context.attributes().Has("cats_strings") || CategoryCount(context.attributes()) == 0)
    return absl::InvalidArgumentError(
        absl::StrCat("there are no categories of ", DTypeName(context.dtype(0))));
  SymDims out = context.shape(0);
  out.push_back(CategoryCount(context.attributes()));
  context.set_output(0, DType::kF32, std::move(out));
  return absl::OkStatus();
}

absl::Status ReferenceOneHot(const RunContext& run, std::int64_t, void*) {
  const Attributes& a = run.attributes();
  const std::int64_t count = CategoryCount(a);
  const auto strings = a.Strings("cats_strings");
  const auto numbers = a.Ints("cats_int64s");
  ZeroElements(run.output(0).dtype, run.output(0).data, 0, run.output_count_of(0));
  for (std::int64_t i = 0; i < run.count(0); ++i) {
    std::int64_t at = -1;
    for (std::int64_t k = 0; k < count && at < 0; ++k) {
      const std::size_t c = static_cast<std::size_t>(k);
      const bool same = !strings.empty()
                            ? run.Load<std::string>(0, i) == strings[c]
                            : static_cast<std::int64_t>(RealAt(run, 0, i)) == numbers[c];
      if (same) at = k;
    }
    if (at >= 0) StoreReal(run, 0, i * count + at, 1);
    else if (a.Int("zeros", 1) == 0)
      return absl::InvalidArgumentError(absl::StrCat("element ", i, " is in no category"));
  }
  return absl::OkStatus();
}

absl::Status InferZipMap(InferContext& context) {
  const bool strings = context.attributes().Has("classlabels_strings");
  const std::int64_t labels = static_cast<std::int64_t>(
      strings ? context.attributes().Strings("classlabels_strings").size()
              : context.attributes().Ints("classlabels_int64s").size());
  const SymDims& x = context.shape(0);
  if (RanksKnown(context) &&
      (x.empty() || x.size() > 2 || labels == 0 ||
       (x.back().is_constant() && !x.back().Is(labels))))
    return absl::InvalidArgumentError(
        absl::StrCat("the input has shape ", ShapeString(x), " for ", labels, " labels"));
  ValueType map;
  map.kind = ValueKind::kMap;
  map.dtype = strings ? DType::kString : DType::kI64;
  map.element = std::make_shared<const ValueType>(ValueType::OfTensor(DType::kF32, {}));
  context.set_output_type(0, ValueType::SequenceOf(std::move(map)));
  return absl::OkStatus();
}

absl::Status ReferenceZipMap(const RunContext& run, std::int64_t, void*) {
  const auto dims = run.dims(0);
  const auto strings = run.attributes().Strings("classlabels_strings");
  const auto numbers = run.attributes().Ints("classlabels_int64s");
  const std::int64_t columns = dims.back(), rows = dims.size() == 2 ? dims[0] : 1;
  if (static_cast<std::int64_t>(strings.size() + numbers.size()) != columns)
    return absl::InvalidArgumentError(absl::StrCat("the input has ", columns, " columns for ",
                                                   strings.size() + numbers.size(), " labels"));
  ValueList items;
  for (std::int64_t r = 0; r < rows; ++r) {
    ValueMap map;
    map.string_keys = !strings.empty();
    for (std::int64_t c = 0; c < columns; ++c) {
      NPURT_ASSIGN_OR_RETURN(Tensor score, Tensor::Create(DType::kF32, {}));
      score.set<float>(0, static_cast<float>(RealAt(run, 0, r * columns + c)));
      if (map.string_keys) map.by_string[strings[static_cast<std::size_t>(c)]] = score;
      else map.by_number[numbers[static_cast<std::size_t>(c)]] = score;
    }
    items.push_back(Value::Map(std::move(map)));
  }
  run.set_output_value(0, Value::Sequence(std::move(items)));
  return absl::OkStatus();
}

absl::Status InferDictVectorizer(InferContext& context) {
  const ValueType& map = context.type(0);
  const std::int64_t count = static_cast<std::int64_t>(
      context.attributes().Strings("string_vocabulary").size() +
      context.attributes().Ints("int64_vocabulary").size());
  if (count == 0) return absl::InvalidArgumentError("there is no vocabulary");
  if (map.element == nullptr || map.element->kind != ValueKind::kTensor)
    return absl::InvalidArgumentError(absl::StrCat("the input is ", map.ToString()));
  context.set_output(0, map.element->dtype, {1, count});
  return absl::OkStatus();
}

absl::Status ReferenceDictVectorizer(const RunContext& run, std::int64_t, void*) {
  const ValueMap& map = run.input_value(0).map();
  const Slot& out = run.output(0);
  const auto strings = run.attributes().Strings("string_vocabulary");
  const auto numbers = run.attributes().Ints("int64_vocabulary");
  ZeroElements(out.dtype, out.data, 0, out.count);
  for (std::int64_t i = 0; i < out.count; ++i) {
    const Value* found = nullptr;
    if (!strings.empty()) {
      const auto it = map.by_string.find(strings[static_cast<std::size_t>(i)]);
      if (it != map.by_string.end()) found = &it->second;
    } else {
      const auto it = map.by_number.find(numbers[static_cast<std::size_t>(i)]);
      if (it != map.by_number.end()) found = &it->second;
    }
    if (found == nullptr) continue;
    if (!found->is_tensor() || found->tensor().element_count() != 1)
      return absl::InvalidArgumentError("a value of the map is not one element");
    NPURT_RETURN_IF_ERROR(StoreElements(out, i, found->tensor()));
  }
  return absl::OkStatus();
}

constexpr DTypeSet kLabels = kStrings | DTypes(DType::kI64, DType::kI32, DType::kI16, DType::kF32,
                                               DType::kF64);

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "LabelEncoder",
        .inputs = {{"x", "T1"}},
        .outputs = {{"y", "T2"}},
        .types = {{"T1", kLabels}, {"T2", kLabels}},
        .attributes = {{"default_float", AttrKind::kFloat},
                       {"default_int64", AttrKind::kInt},
                       {"default_string", AttrKind::kString},
                       {"default_tensor", AttrKind::kTensor},
                       {"keys_floats", AttrKind::kFloats},
                       {"keys_int64s", AttrKind::kInts},
                       {"keys_strings", AttrKind::kStrings},
                       {"keys_tensor", AttrKind::kTensor},
                       {"values_floats", AttrKind::kFloats},
                       {"values_int64s", AttrKind::kInts},
                       {"values_strings", AttrKind::kStrings},
                       {"values_tensor", AttrKind::kTensor}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = InferLabelEncoder,
        .reference = ReferenceLabelEncoder,
    },
    {
        .name = "DictVectorizer",
        .inputs = {{"x", "map"}},
        .outputs = {{"y", "T"}},
        .types = {{"T", kStrings | DTypes(DType::kI64, DType::kF32, DType::kF64)}},
        .attributes = {{"int64_vocabulary", AttrKind::kInts},
                       {"string_vocabulary", AttrKind::kStrings}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = InferDictVectorizer,
        .reference = ReferenceDictVectorizer,
    },
    {
        .name = "OneHotEncoder",
        .inputs = {{"x", "T"}},
        .outputs = {{"y", "float32"}},
        .types = {{"T", kStrings | DTypes(DType::kI64, DType::kI32, DType::kF32, DType::kF64)}},
        .attributes = {{"cats_int64s", AttrKind::kInts},
                       {"cats_strings", AttrKind::kStrings},
                       {"zeros", AttrKind::kInt}},
        .engine = Engine::kAiCpu,
        .infer = InferOneHot,
        .reference = ReferenceOneHot,
    },
    {
        .name = "ZipMap",
        .inputs = {{"x", "T"}},
        .outputs = {{"z", "sequence"}},
        .types = {{"T", DTypes(DType::kF32, DType::kF64)}},
        .attributes = {{"classlabels_int64s", AttrKind::kInts},
                       {"classlabels_strings", AttrKind::kStrings}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = InferZipMap,
        .reference = ReferenceZipMap,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::ml_labels
