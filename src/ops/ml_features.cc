// ArrayFeatureExtractor, Binarizer, Imputer, Normalizer, Scaler: columns of a table picked, cut to 0 and
// 1, filled where missing, and scaled.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::ml_features {
namespace {

constexpr DTypeSet kInputs = DTypes(DType::kF32, DType::kF64, DType::kI32, DType::kI64);

absl::Status InferExtract(InferContext& context) {
  const SymDims& x = context.shape(0);
  if (x.empty()) return absl::InvalidArgumentError("the input is a scalar");
  SymDims out(x.begin(), x.end() - 1);
  if (out.empty()) out.push_back(1);
  out.push_back(Product(context.shape(1)));
  context.set_output(0, context.dtype(0), std::move(out));
  return absl::OkStatus();
}

absl::Status ReferenceExtract(const RunContext& run, std::int64_t, void*) {
  const auto dims = run.dims(0);
  const std::int64_t columns = dims.back(), picked = run.count(1);
  const std::int64_t rows = ProductOf(dims, 0, run.input(0).rank - 1);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < picked; ++k) {
      const std::int64_t at = run.Load<std::int64_t>(1, k);
      if (at < 0 || at >= columns) return IndexError(at, columns);
      CopyElements(run.dtype(0), run.output(0).data, r * picked + k, run.input(0).data,
                   r * columns + at, 1);
    }
  return absl::OkStatus();
}

absl::Status InferSame(InferContext& context) {
  context.set_output(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status InferFloat(InferContext& context) {
  if (context.shape(0).empty()) return absl::InvalidArgumentError("the input is a scalar");
  context.set_output(0, DType::kF32, context.shape(0));
  return absl::OkStatus();
}

absl::Status ReferenceBinarizer(const RunContext& run, std::int64_t, void*) {
  const double threshold = static_cast<double>(run.attributes().Float("threshold", 0));
  for (std::int64_t i = 0; i < run.count(0); ++i)
    StoreReal(run, 0, i, RealAt(run, 0, i) > threshold ? 1 : 0);
  return absl::OkStatus();
}

// What replaces a missing number in each column.
absl::StatusOr<std::vector<double>> Imputed(const Attributes& attributes) {
  const auto floats = attributes.Floats("imputed_value_floats");
  const auto integers = attributes.Ints("imputed_value_int64s");
  std::vector<double> values(floats.begin(), floats.end());
  if (values.empty()) values.assign(integers.begin(), integers.end());
  if (values.empty()) return absl::InvalidArgumentError("there is no imputed value");
  return values;
}

absl::Status CheckColumns(std::size_t given, std::int64_t columns, const char* name) {
  if (given == 1 || static_cast<std::int64_t>(given) == columns) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " has ", given, " numbers, want 1 or ", columns));
}

absl::Status ReferenceImputer(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const std::vector<double> values, Imputed(run.attributes()));
  if (run.count(0) == 0) return absl::OkStatus();
  const std::int64_t columns = run.dims(0).empty() ? 1 : run.dims(0).back();
  NPURT_RETURN_IF_ERROR(CheckColumns(values.size(), columns, "imputed_value"));
  const bool is_float = IsFloat(run.dtype(0));
  const double missing = is_float
                             ? static_cast<double>(run.attributes().Float("replaced_value_float"))
                             : static_cast<double>(run.attributes().Int("replaced_value_int64"));
  for (std::int64_t i = 0; i < run.count(0); ++i) {
    const double x = RealAt(run, 0, i);
    if (x == missing || (std::isnan(x) && std::isnan(missing)))
      StoreReal(run, 0, i,
                values[values.size() == 1 ? 0 : static_cast<std::size_t>(i % columns)]);
    else
      CopyElements(run.dtype(0), run.output(0).data, i, run.input(0).data, i, 1);
  }
  return absl::OkStatus();
}

absl::Status ReferenceNormalizer(const RunContext& run, std::int64_t, void*) {
  const std::string norm = run.attributes().String("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    return absl::InvalidArgumentError(absl::StrCat("norm is '", norm, "', want MAX, L1 or L2"));
  const auto dims = run.dims(0);
  if (run.count(0) == 0) return absl::OkStatus();
  // Rows are what the first dimension counts; a vector is one row.
  const std::int64_t rows = dims.size() > 1 ? dims[0] : 1, columns = run.count(0) / rows;
  for (std::int64_t r = 0; r < rows; ++r) {
    double size = norm == "MAX" ? -INFINITY : 0;
    for (std::int64_t c = 0; c < columns; ++c) {
      const double x = RealAt(run, 0, r * columns + c);
      if (norm == "MAX") size = std::max(size, x);
      else size += norm == "L1" ? std::fabs(x) : x * x;
    }
    if (norm == "L2") size = std::sqrt(size);
    for (std::int64_t c = 0; c < columns; ++c) {
      const double x = RealAt(run, 0, r * columns + c);
      StoreReal(run, 0, r * columns + c, size == 0 ? x : x / size);
    }
  }
  return absl::OkStatus();
}

absl::Status ReferenceScaler(const RunContext& run, std::int64_t, void*) {
  const auto offset = run.attributes().Floats("offset"), scale = run.attributes().Floats("scale");
  if (run.count(0) == 0) return absl::OkStatus();
  const std::int64_t columns = run.dims(0).back();
  NPURT_RETURN_IF_ERROR(CheckColumns(offset.size(), columns, "offset"));
  NPURT_RETURN_IF_ERROR(CheckColumns(scale.size(), columns, "scale"));
  for (std::int64_t i = 0; i < run.count(0); ++i) {
    const std::size_t c = static_cast<std::size_t>(i % columns);
    const double shift = static_cast<double>(offset[offset.size() == 1 ? 0 : c]);
    const double factor = static_cast<double>(scale[scale.size() == 1 ? 0 : c]);
    StoreReal(run, 0, i, (RealAt(run, 0, i) - shift) * factor);
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "ArrayFeatureExtractor",
        .inputs = {{"x", "T"}, {"y", "int64"}},
        .outputs = {{"z", "T"}},
        .types = {{"T", kInputs | kStrings}},
        .engine = Engine::kAiCpu,
        .infer = InferExtract,
        .reference = ReferenceExtract,
    },
    {
        .name = "Binarizer",
        .inputs = {{"x", "T"}},
        .outputs = {{"y", "T"}},
        .types = {{"T", kInputs}},
        .attributes = {{"threshold", AttrKind::kFloat}},
        .engine = Engine::kAiCpu,
        .infer = InferSame,
        .reference = ReferenceBinarizer,
    },
    {
        .name = "Imputer",
        .inputs = {{"x", "T"}},
        .outputs = {{"y", "T"}},
        .types = {{"T", kInputs}},
        .attributes = {{"imputed_value_floats", AttrKind::kFloats},
                       {"imputed_value_int64s", AttrKind::kInts},
                       {"replaced_value_float", AttrKind::kFloat},
                       {"replaced_value_int64", AttrKind::kInt}},
        .engine = Engine::kAiCpu,
        .infer = InferSame,
        .reference = ReferenceImputer,
    },
    {
        .name = "Normalizer",
        .inputs = {{"x", "T"}},
        .outputs = {{"y", "float32"}},
        .types = {{"T", kInputs}},
        .attributes = {{"norm", AttrKind::kString}},
        .engine = Engine::kAiCpu,
        .infer = InferFloat,
        .reference = ReferenceNormalizer,
    },
    {
        .name = "Scaler",
        .inputs = {{"x", "T"}},
        .outputs = {{"y", "float32"}},
        .types = {{"T", kInputs}},
        .attributes = {{"offset", AttrKind::kFloats}, {"scale", AttrKind::kFloats}},
        .engine = Engine::kAiCpu,
        .infer = InferFloat,
        .reference = ReferenceScaler,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::ml_features
