#include "ops/op_def.h"

#include <gtest/gtest.h>

#include "ops/op_test_harness.h"

namespace npurt::ops {
namespace {

std::string Refusal(const char* op, const std::vector<Value>& inputs,
                    const Attributes& attributes = {}, int outputs = 1) {
  return std::string(RunOp(op, inputs, attributes, outputs).status().message());
}

TEST(CheckSchemaTest, NamesWhatIsMissingAndWhatIsTooMuch) {
  const Value x = MakeTensor<float>({1}, {1});
  EXPECT_EQ(Refusal("Reshape", {x}), "input 'shape' is missing");
  EXPECT_EQ(Refusal("Flatten", {x, x}), "got 2 inputs, want at most 1");
  EXPECT_EQ(Refusal("Flatten", {x}, {}, 2), "got 2 outputs, want at most 1");
  EXPECT_EQ(Refusal("Concat", {x, x}), "attribute 'axis' is missing");
}

TEST(CheckSchemaTest, NamesTypesThatAreWrongOrDiffer) {
  const Value x = MakeTensor<float>({1}, {1}), y = MakeTensor<double>({1}, {1});
  const Attributes axis = Attrs({{"axis", std::int64_t{0}}});
  EXPECT_EQ(Refusal("Reshape", {x, x}), "input 'shape' is float32, want int64");
  EXPECT_EQ(Refusal("Concat", {x, y}, axis),
            "input 'inputs' is float64, input 'inputs' is float32, want the same type");
  EXPECT_EQ(Refusal("SequenceLength", {x}), "input 'input_sequence' is float32[1], want a sequence");
}

TEST(CheckSchemaTest, NamesAttributesThatAreUnknownOrOfTheWrongKind) {
  const Value x = MakeTensor<float>({1}, {1});
  EXPECT_EQ(Refusal("Flatten", {x}, Attrs({{"axes", std::int64_t{0}}})),
            "operator Flatten has no attribute 'axes'");
  EXPECT_EQ(Refusal("Flatten", {x}, Attrs({{"axis", 1.0f}})),
            "attribute 'axis' is a float, want an integer");
}

// Where ranks are not known yet, infer does not run and the schema alone says the output's type.
TEST(OpDefTest, OutputTypesFollowFromTheSchemaOrInferBearsUnknownRanks) {
  for (const OpDef* op : AllOps()) {
    if (op->any_rank || op->inputs[0].name == nullptr) continue;
    std::vector<ValueType> types;
    for (const Param& param : op->inputs) {
      if (param.name == nullptr) break;
      DTypeSet allowed = Bit(DTypeFromName(param.type));
      for (const TypeVar& var : op->types)
        if (var.name != nullptr && std::string(var.name) == param.type) allowed = var.allowed;
      DType dtype = DType::kUndefined;
      for (int i = 1; i < kDTypeCount && dtype == DType::kUndefined; ++i)
        if (Contains(allowed, static_cast<DType>(i))) dtype = static_cast<DType>(i);
      types.push_back(ValueType::OfTensor(dtype));
    }
    std::vector<const ValueType*> pointers;
    for (const ValueType& type : types) pointers.push_back(&type);
    for (int i = 0; op->outputs[i].name != nullptr; ++i)
      EXPECT_NE(SchemaOutputType(*op, i, pointers), DType::kUndefined)
          << op->name << ", output " << op->outputs[i].name;
  }
}

TEST(NormalizeAxisTest, CountsFromTheEndAndNamesTheLimits) {
  EXPECT_EQ(*NormalizeAxis(-1, 3), 2);
  EXPECT_EQ(*NormalizeAxis(0, 3), 0);
  EXPECT_EQ(NormalizeAxis(3, 3).status().message(),
            "axis 3 of a tensor of rank 3, want one from -3 to 2");
}

TEST(BroadcastShapesTest, AlignsAtTheEndAndNamesWhatDoesNotFit) {
  DimTable table;
  const Dim n = table.Symbol("n");
  const SymDims a = {n, 1, 3}, b = {4, 3}, c = {5, 3};
  EXPECT_EQ(ShapeString(*BroadcastShapes(a, b)), "[n, 4, 3]");
  EXPECT_EQ(BroadcastShapes(b, c).status().message(),
            "shapes [4, 3] and [5, 3] do not broadcast: 4 against 5");
}

TEST(IndexChecksTest, NameIndexAndLimit) {
  const Value x = MakeTensor<float>({3}, {1, 2, 3});
  const Value bad = MakeTensor<std::int64_t>({1}, {-4});
  const absl::Status status = RunOp("Gather", {x, bad}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(status.message(), "index -4, want one from -3 to 2");
}

}  // namespace
}  // namespace npurt::ops
