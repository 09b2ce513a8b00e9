#include "fuzz/vocabulary.h"

#include "ops/op_test_harness.h"

namespace npurt::fuzz {

std::int64_t ElementsOf(const Value& value) {
  if (value.is_tensor()) return value.tensor().element_count();
  std::int64_t sum = 0;
  if (value.kind() == ValueKind::kSequence)
    for (const Value& item : value.items()) sum += ElementsOf(item);
  return sum;
}

const std::map<std::string, std::vector<ops::Sample>>& Samples() {
  static const auto* const samples = [] {
    auto* const by_op = new std::map<std::string, std::vector<ops::Sample>>;
    for (ops::Sample& sample : ops::MakeSamples()) {
      const ops::OpDef* op = ops::FindOp(sample.op);
      if (op == nullptr || op->traits != ops::kPure || sample.outputs == 0) continue;
      const int most = op->epilogue.residual_input;
      const bool fused = sample.attributes.Has("activation") && op->epilogue.activation;
      const bool odd_matmul = std::string(sample.op) == "MatMul" && sample.inputs.size() > 2;
      if (fused || odd_matmul || (most >= 0 && static_cast<int>(sample.inputs.size()) > most))
        continue;
      bool fits = true;
      for (const Value& v : sample.inputs)
        fits &= ElementsOf(v) <= kMaxElements &&
                (v.kind() != ValueKind::kOptional || !v.items().empty());  // empty: of no type
      if (fits) (*by_op)[sample.op].push_back(std::move(sample));
    }
    return by_op;
  }();
  return *samples;
}

const std::vector<std::string>& Common() {
  static const auto* const names = new std::vector<std::string>{"Add",
                                                                "Mul",
                                                                "Sub",
                                                                "Div",
                                                                "Relu",
                                                                "Sigmoid",
                                                                "Tanh",
                                                                "Gelu",
                                                                "Clip",
                                                                "Neg",
                                                                "Sqrt",
                                                                "Exp",
                                                                "MatMul",
                                                                "MatMul",
                                                                "Gemm",
                                                                "Conv",
                                                                "Conv",
                                                                "Concat",
                                                                "Slice",
                                                                "Split",
                                                                "Transpose",
                                                                "Reshape",
                                                                "Reshape",
                                                                "Softmax",
                                                                "ReduceMean",
                                                                "ReduceSum",
                                                                "ReduceMax",
                                                                "Gather",
                                                                "Where",
                                                                "Unsqueeze",
                                                                "Squeeze",
                                                                "Flatten",
                                                                "Expand",
                                                                "Pad",
                                                                "MaxPool",
                                                                "AveragePool",
                                                                "Cast",
                                                                "LayerNormalization",
                                                                "BatchNormalization",
                                                                "Identity",
                                                                "Shape",
                                                                "NonZero",
                                                                "Less",
                                                                "Pow"};
  return *names;
}

bool IsPrintedFloat(const Value& value, const Value& of) {
  return value.is_tensor() && value.tensor().dtype() == DType::kString && of.is_tensor() &&
         IsFloat(of.tensor().dtype());
}

const char* ParamType(const ops::OpDef& op, std::size_t i) {
  const char* type = nullptr;
  for (std::size_t k = 0; k < 16 && op.inputs[k].name != nullptr; ++k) {
    type = op.inputs[k].type;
    if (k == i) break;
  }
  return type;
}

DTypeSet Allowed(const ops::OpDef& op, const std::string& type) {
  for (const ops::TypeVar& var : op.types)
    if (var.name != nullptr && type == var.name) return var.allowed;
  return Bit(DTypeFromName(type));
}

}  // namespace npurt::fuzz
