#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/graph.h"

namespace npurt::graph {
namespace {

constexpr std::size_t kMaxTrackedIntegers = 1024;

class Context final : public ops::InferContext {
 public:
  Context(const Attributes& attributes, absl::Span<const InferInput> inputs,
          absl::Span<const bool> wanted, DimTable* dims, const std::string& run_dim_prefix,
          InferResult* result)
      : attributes_(attributes),
        inputs_(inputs),
        wanted_(wanted),
        dims_(dims),
        run_dim_prefix_(run_dim_prefix),
        result_(result) {}

  int input_count() const override { return static_cast<int>(inputs_.size()); }
  int output_count() const override { return static_cast<int>(wanted_.size()); }
  bool has_input(int i) const override {
    return i < input_count() && inputs_[i].type != nullptr;
  }
  bool has_output(int i) const override { return i < output_count() && wanted_[i]; }
  const ValueType& type(int i) const override { return *inputs_[i].type; }
  const Attributes& attributes() const override { return attributes_; }
  const Tensor* constant(int i) const override {
    return i < input_count() ? inputs_[i].constant : nullptr;
  }

  std::optional<SymDims> integers(int i) const override {
    if (i >= input_count()) return std::nullopt;
    const InferInput& input = inputs_[i];
    if (input.integers != nullptr && input.integers->has_value()) return *input.integers;
    const Tensor* tensor = input.constant;
    if (tensor == nullptr || tensor->rank() > 1 ||
        tensor->element_count() > static_cast<std::int64_t>(kMaxTrackedIntegers))
      return std::nullopt;
    auto values = Integers(*tensor);
    if (!values.ok()) return std::nullopt;
    return SymDims(values->begin(), values->end());
  }

  void set_output(int i, DType dtype, SymDims dims) override {
    if (i < output_count()) out(i).type = ValueType::OfTensor(dtype, std::move(dims));
  }
  void set_output_unknown(int i, DType dtype) override {
    result_->unknown = true;
    if (i < output_count()) out(i).type = ValueType::OfTensor(dtype);
  }
  void set_output_type(int i, ValueType type) override {
    if (i < output_count()) out(i).type = std::move(type);
  }
  void set_output_integers(int i, SymDims values) override {
    if (i < output_count() && values.size() <= kMaxTrackedIntegers)
      out(i).integers = std::move(values);
  }
  Dim RunDim() override {
    result_->unknown = true;
    if (dims_ == nullptr) return kInvalidDim;
    return dims_->RunSymbol(absl::StrCat(run_dim_prefix_, "#", dims_->size()));
  }

 private:
  InferOutput& out(int i) { return result_->outputs[i]; }

  const Attributes& attributes_;
  absl::Span<const InferInput> inputs_;
  absl::Span<const bool> wanted_;
  DimTable* dims_;
  const std::string& run_dim_prefix_;
  InferResult* result_;
};

}  // namespace

absl::StatusOr<InferResult> InferNode(const ops::OpDef& op, const Attributes& attributes,
                                      absl::Span<const InferInput> inputs,
                                      absl::Span<const bool> wanted, DimTable* dims,
                                      const std::string& run_dim_prefix) {
  InferResult result;
  result.outputs.resize(wanted.size());
  absl::InlinedVector<const ValueType*, 4> types;
  bool ranks_known = true;
  for (const InferInput& input : inputs) {
    types.push_back(input.type);
    ranks_known &= input.type == nullptr || input.type->kind != ValueKind::kTensor ||
                   input.type->has_rank;
  }
  if (ranks_known || op.any_rank) {
    Context context(attributes, inputs, wanted, dims, run_dim_prefix, &result);
    NPURT_RETURN_IF_ERROR(op.infer(context));
    return result;
  }
  result.unknown = true;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    result.outputs[i].type =
        ValueType::OfTensor(ops::SchemaOutputType(op, static_cast<int>(i), types));
  return result;
}

}  // namespace npurt::graph
