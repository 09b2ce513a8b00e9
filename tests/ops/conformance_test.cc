// The laws that hold for every operator, checked on the samples of op_samples.inc: no operator
// brings code of its own for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "absl/strings/str_cat.h"
#include "graph/graph.h"
#include "ops/op_samples.h"
#include "ops/op_test_harness.h"
#include "support/count_allocations.h"

namespace npurt::ops {
namespace {

const std::vector<Sample>& Samples() {
  static const std::vector<Sample> samples = MakeSamples();
  return samples;
}

class OperatorLaw : public ::testing::TestWithParam<int> {
 protected:
  const Sample& sample() const { return Samples()[GetParam()]; }
  const OpDef& op() const { return *FindOp(sample().op); }
  void SetUp() override {
    if (FindOp(sample().op) == nullptr) FAIL() << "no operator " << sample().op;
  }
};

const Param* ParamOf(const OpDef& op, int i) {
  const Param* last = nullptr;
  for (int k = 0; k < 16 && op.inputs[k].name != nullptr; ++k) {
    last = &op.inputs[k];
    if (k == i) return last;
  }
  return last;
}

DTypeSet AllowedOf(const OpDef& op, const char* type) {
  for (const TypeVar& var : op.types)
    if (var.name != nullptr && absl::string_view(var.name) == type) return var.allowed;
  return 0;
}

Tensor Convert(const Tensor& t, DType dtype) {
  absl::StatusOr<std::vector<double>> values = Reals(t);
  if (!values.ok()) return t;
  if (Contains(kUnsignedIntegers | kBools, dtype))
    for (double& v : *values) v = std::fabs(v);
  if (dtype == DType::kString) {
    absl::StatusOr<Tensor> strings = Tensor::Create(dtype, t.dims());
    for (std::size_t i = 0; i < values->size(); ++i)
      strings->set<std::string>(static_cast<std::int64_t>(i), absl::StrCat((*values)[i]));
    return *strings;
  }
  return MakeTensorOf(dtype, {t.dims().begin(), t.dims().end()}, *values);
}

// The sample with the inputs of type variable `var` in `dtype`.
std::vector<Value> WithType(const Sample& s, const OpDef& op, const char* var, DType dtype) {
  std::vector<Value> inputs = s.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Param* param = ParamOf(op, static_cast<int>(i));
    if (inputs[i].is_tensor() && param != nullptr && absl::string_view(param->type) == var)
      inputs[i] = Convert(inputs[i].tensor(), dtype);
  }
  return inputs;
}

// The sample itself and, for each type variable, one version per element type that it allows.
std::vector<std::vector<Value>> TypedInputs(const Sample& s, const OpDef& op) {
  std::vector<std::vector<Value>> all = {s.inputs};
  // Their types must fit an attribute or the items of a sequence.
  for (const absl::string_view name : {"BitCast", "LabelEncoder", "OneHotEncoder", "SequenceInsert",
                                       "TfIdfVectorizer"})
    if (name == s.op) return all;
  for (const TypeVar& var : op.types) {
    if (var.name == nullptr) continue;
    for (int d = 1; d < kDTypeCount; ++d) {
      const DType dtype = static_cast<DType>(d);
      if (Contains(var.allowed & (kPlainTypes | kStrings), dtype))
        all.push_back(WithType(s, op, var.name, dtype));
    }
  }
  return all;
}

struct Tolerance {
  double relative = 0, absolute = 0;
};

// What a different order of additions may cost, for elements of this type.
Tolerance ToleranceOf(const Value& value) {
  if (!value.is_tensor()) return {};
  switch (value.tensor().dtype()) {
    case DType::kF64:
      return {1e-6, 1e-6};  // fast versions may compute in float32
    case DType::kF32:
      return {2e-5, 2e-5};
    case DType::kF16:
      return {4e-3, 4e-3};
    case DType::kBF16:
      return {3e-2, 3e-2};
    default:
      return {};
  }
}

std::string TypesText(const std::vector<Value>& inputs) {
  std::string text;
  for (const Value& v : inputs)
    if (v.is_tensor())
      absl::StrAppend(&text, DTypeName(v.tensor().dtype()),
                      ShapeString(absl::MakeConstSpan(v.tensor().dims())), " ");
  return text;
}

std::vector<bool> AllConstant(const Sample& s) { return std::vector<bool>(s.inputs.size(), true); }

TEST_P(OperatorLaw, ReferenceRunsForEveryTypeInItsSchema) {
  for (const auto& inputs : TypedInputs(sample(), op())) {
    OpOptions options;
    options.reference = true;
    const auto result = RunOp(sample().op, inputs, sample().attributes, sample().outputs, options);
    ASSERT_TRUE(result.ok()) << TypesText(inputs) << result.status();
    std::vector<ValueType> tensors;
    std::vector<const ValueType*> types;
    for (const Value& v : inputs)
      tensors.push_back(v.is_tensor() ? ValueType::OfTensor(v.tensor().dtype()) : ValueType());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      types.push_back(inputs[i].is_tensor() ? &tensors[i] : nullptr);
    for (int i = 0; i < sample().outputs; ++i) {
      const DType implied = SchemaOutputType(op(), i, types);
      if (implied != DType::kUndefined && (*result)[i].is_tensor()) {
        EXPECT_EQ((*result)[i].tensor().dtype(), implied) << TypesText(inputs) << "output " << i;
      }
    }
  }
}

TEST_P(OperatorLaw, FastVersionAgreesWithTheReference) {
  if (op().bind == nullptr) return;
  for (const auto& inputs : TypedInputs(sample(), op())) {
    OpOptions plain;
    plain.reference = true;
    const auto want = RunOp(sample().op, inputs, sample().attributes, sample().outputs, plain);
    if (!want.ok()) continue;  // the law above
    std::vector<OpOptions> ways(6);
    ways[1].reverse_tiles = true;
    ways[2].misalign_inputs = true;
    ways[3].accept_offers = true;
    ways[4].constant = AllConstant(sample());
    ways[5].constant = AllConstant(sample());
    ways[5].accept_offers = true;
    ways[5].isa = isa::kGeneric;
    for (std::size_t w = 0; w < ways.size(); ++w) {
      const auto got = RunOp(sample().op, inputs, sample().attributes, sample().outputs, ways[w]);
      ASSERT_TRUE(got.ok()) << TypesText(inputs) << "way " << w << ": " << got.status();
      for (int i = 0; i < sample().outputs; ++i) {
        const Tolerance t = ToleranceOf((*want)[i]);
        EXPECT_EQ(Difference((*got)[i], (*want)[i], t.relative, t.absolute), "")
            << TypesText(inputs) << "way " << w << " output " << i;
      }
    }
  }
}

// Inputs with symbols for dimensions: the same number, the same symbol.
std::vector<InferInput> Symbolic(const std::vector<Value>& inputs, bool with_values,
                                 DimTable* table) {
  std::vector<InferInput> symbolic(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_tensor()) continue;
    const Tensor& t = inputs[i].tensor();
    SymDims dims;
    // Lists of axes and the like have the length they have.
    const bool list = Contains(kIntegers, t.dtype()) && t.rank() <= 1;
    for (std::int64_t d : t.dims())
      dims.push_back(d <= 1 || list ? Dim(d) : table->Symbol(absl::StrCat("d", d)));
    symbolic[i].type = ValueType::OfTensor(t.dtype(), dims);
    if (with_values && list) symbolic[i].constant = t;
  }
  return symbolic;
}

TEST_P(OperatorLaw, SymbolicShapesEvaluateToTheProducedOnes) {
  for (const Value& v : sample().inputs)
    if (!v.is_tensor() && v.kind() != ValueKind::kNone) return;
  OpOptions plain;
  plain.reference = true;
  const auto produced =
      RunOp(sample().op, sample().inputs, sample().attributes, sample().outputs, plain);
  if (!produced.ok()) return;
  for (bool with_values : {true, false}) {
    DimTable table;
    const auto inferred = InferOp(sample().op, Symbolic(sample().inputs, with_values, &table),
                                  sample().attributes, sample().outputs, &table);
    ASSERT_TRUE(inferred.ok()) << "values known: " << with_values << ": " << inferred.status();
    std::vector<std::int64_t> values(static_cast<std::size_t>(table.size()), kInvalidDim);
    for (int i = 0; i < table.size(); ++i)
      if (table.node(i).op == DimOp::kInput)
        values[static_cast<std::size_t>(i)] = std::atoll(table.node(i).name.c_str() + 1);
    table.Evaluate(absl::MakeSpan(values));
    for (int i = 0; i < sample().outputs; ++i) {
      const InferredOutput& out = (*inferred)[i];
      ASSERT_TRUE(out.set) << "output " << i;
      if (!(*produced)[i].is_tensor()) continue;
      const Tensor& tensor = (*produced)[i].tensor();
      EXPECT_EQ(out.type.dtype, tensor.dtype());
      if (out.type.has_rank) {
        ASSERT_EQ(out.type.dims.size(), tensor.dims().size()) << "output " << i;
        for (std::size_t d = 0; d < tensor.dims().size(); ++d) {
          const std::int64_t value = ValueOf(out.type.dims[d], values);
          if (out.type.dims[d].depends_on_run()) continue;
          EXPECT_EQ(value, tensor.dims()[d])
              << "output " << i << ": " << out.type.ToString() << ", values " << with_values;
        }
      }
      if (!out.integers) continue;
      const auto numbers = Integers(tensor);
      ASSERT_TRUE(numbers.ok());
      ASSERT_EQ(numbers->size(), out.integers->size()) << "output " << i;
      for (std::size_t k = 0; k < numbers->size(); ++k) {
        if ((*out.integers)[k].depends_on_run()) continue;
        EXPECT_EQ(ValueOf((*out.integers)[k], values), (*numbers)[k]) << "output " << i;
      }
    }
  }
}

TEST_P(OperatorLaw, TypesAreKnownBeforeRanksAre) {
  OpOptions plain;
  plain.reference = true;
  const auto produced =
      RunOp(sample().op, sample().inputs, sample().attributes, sample().outputs, plain);
  if (!produced.ok()) return;
  std::vector<ValueType> types;
  std::vector<graph::InferInput> inputs(sample().inputs.size());
  types.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& v = sample().inputs[i];
    if (v.kind() == ValueKind::kNone) continue;
    if (!v.is_tensor()) return;
    types.push_back(ValueType::OfTensor(v.tensor().dtype()));
    inputs[i].type = &types.back();
  }
  DimTable table;
  const std::vector<bool> names(static_cast<std::size_t>(sample().outputs), true);
  const absl::InlinedVector<bool, 8> wanted(names.begin(), names.end());
  const auto inferred =
      graph::InferNode(op(), sample().attributes, inputs, wanted, &table, "run");
  ASSERT_TRUE(inferred.ok()) << inferred.status();
  for (int i = 0; i < sample().outputs; ++i) {
    const ValueType& type = inferred->outputs[static_cast<std::size_t>(i)].type;
    EXPECT_EQ(type.kind, (*produced)[i].kind()) << "output " << i;
    if ((*produced)[i].is_tensor()) {
      EXPECT_EQ(type.dtype, (*produced)[i].tensor().dtype()) << "output " << i;
    }
  }
}

TEST_P(OperatorLaw, EmptyTensorsAndOddRanksGiveAnErrorOrTheInferredShape) {
  std::set<std::int64_t> sizes;
  for (const Value& v : sample().inputs)
    if (v.is_tensor())
      for (std::int64_t d : v.tensor().dims()) sizes.insert(d);
  std::vector<std::vector<Value>> variants;
  for (std::int64_t size : sizes) {  // every axis of that size is empty
    std::vector<Value> inputs = sample().inputs;
    for (Value& v : inputs) {
      if (!v.is_tensor() || Contains(kIntegers, v.tensor().dtype())) continue;
      std::vector<std::int64_t> dims(v.tensor().dims().begin(), v.tensor().dims().end());
      std::replace(dims.begin(), dims.end(), size, std::int64_t{0});
      if (v.tensor().dtype() != DType::kString) v = RandomTensor(v.tensor().dtype(), dims, 1);
    }
    variants.push_back(std::move(inputs));
  }
  for (std::size_t i = 0; i < sample().inputs.size(); ++i) {
    const Value& v = sample().inputs[i];
    if (!v.is_tensor() || v.tensor().dtype() == DType::kString) continue;
    for (const auto& dims :
         std::vector<std::vector<std::int64_t>>{{}, {0}, {1}, {2, 0, 3}, {1, 1, 1, 1, 1, 1, 2}}) {
      std::vector<Value> inputs = sample().inputs;
      inputs[i] = RandomTensor(v.tensor().dtype(), dims, 7);
      variants.push_back(std::move(inputs));
    }
  }
  for (const auto& inputs : variants)
    for (bool reference : {true, false}) {
      OpOptions options;
      options.reference = reference;
      const auto result =
          RunOp(sample().op, inputs, sample().attributes, sample().outputs, options);
      if (!result.ok()) {
        EXPECT_NE(result.status().code(), absl::StatusCode::kInternal)
            << TypesText(inputs) << result.status();
      }
    }
}

TEST_P(OperatorLaw, RefusesWrongCountsTypesAndAttributes) {
  const Sample& s = sample();
  for (std::size_t i = 0; i < s.inputs.size(); ++i) {
    const Param* param = ParamOf(op(), static_cast<int>(i));
    if (param == nullptr || !s.inputs[i].is_tensor()) continue;
    if (param->name[0] != '?' && param->name[0] != '*') {
      std::vector<Value> inputs = s.inputs;
      inputs[i] = Value();
      EXPECT_FALSE(RunOp(s.op, inputs, s.attributes, s.outputs).ok()) << "without input " << i;
    }
    DTypeSet allowed = AllowedOf(op(), param->type);
    if (allowed == 0) allowed = Bit(DTypeFromName(param->type));
    const absl::string_view type = param->type;
    if (type == "any") continue;
    for (DType wrong : {DType::kC64, DType::kString, DType::kF32, DType::kBool}) {
      if (Contains(allowed, wrong)) continue;
      std::vector<Value> inputs = s.inputs;
      inputs[i] = *Tensor::Create(wrong, s.inputs[i].tensor().dims());
      EXPECT_EQ(RunOp(s.op, inputs, s.attributes, s.outputs).status().code(),
                absl::StatusCode::kInvalidArgument)
          << "input " << i << " as " << DTypeName(wrong);
    }
  }
  Attributes odd = s.attributes;
  odd.Set("no_such_attribute", std::int64_t{1});
  EXPECT_FALSE(RunOp(s.op, s.inputs, odd, s.outputs).ok());
  for (const AttrDef& def : op().attributes) {
    if (def.name == nullptr) break;
    if (def.required) {
      odd = s.attributes;
      odd.Remove(def.name);
      EXPECT_FALSE(RunOp(s.op, s.inputs, odd, s.outputs).ok()) << "without " << def.name;
    }
    odd = s.attributes;
    if (def.kind == AttrKind::kString)
      odd.Set(def.name, std::int64_t{1});
    else
      odd.Set(def.name, std::string("odd"));
    EXPECT_FALSE(RunOp(s.op, s.inputs, odd, s.outputs).ok()) << "odd kind of " << def.name;
  }
  int last = 0;
  while (last < 16 && op().outputs[last].name != nullptr) ++last;
  if (last == 0 || op().outputs[last - 1].name[0] != '*') {
    EXPECT_FALSE(RunOp(s.op, s.inputs, s.attributes, last + 1).ok()) << "an output too many";
  }
}

std::int64_t allocations_before, allocations_in_run;

TEST_P(OperatorLaw, FastVersionDoesNotAllocateInRun) {
  if (op().bind == nullptr || op().run == nullptr) return;
  OpOptions options;
  options.constant = AllConstant(sample());
  allocations_in_run = 0;
  options.before_run = [] { allocations_before = testing::AllocationCount(); };
  options.after_run = [] { allocations_in_run += testing::AllocationCount() - allocations_before; };
  OpReport report;
  const auto result =
      RunOp(sample().op, sample().inputs, sample().attributes, sample().outputs, options, &report);
  ASSERT_TRUE(result.ok()) << result.status();
  if (report.ran_fast && !report.allocated_outputs) {
    EXPECT_EQ(allocations_in_run, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, OperatorLaw,
                         ::testing::Range(0, static_cast<int>(MakeSamples().size())),
                         [](const auto& info) {
                           return absl::StrCat(Samples()[info.param].op, "_", info.param);
                         });

TEST(OperatorTable, IsSortedAndEveryNameIsFoundOnce) {
  const auto all = AllOps();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) {
      EXPECT_LT(std::string(all[i - 1]->name), all[i]->name);
    }
    EXPECT_EQ(FindOp(all[i]->name), all[i]);
    EXPECT_NE(all[i]->infer, nullptr) << all[i]->name;
    EXPECT_TRUE(all[i]->reference != nullptr || all[i]->run != nullptr) << all[i]->name;
  }
  EXPECT_EQ(FindOp("NoSuchOperator"), nullptr);
}

TEST(OperatorTable, EveryOperatorHasASample) {
  // Why these have none.
  const std::set<std::string> without = {
#include "ops/ops_without_samples.inc"
  };
  std::set<std::string> sampled;
  for (const Sample& s : Samples()) sampled.insert(s.op);
  for (const OpDef* op : AllOps())
    EXPECT_TRUE(sampled.count(op->name) + without.count(op->name) == 1) << op->name;
}

}  // namespace
}  // namespace npurt::ops
