// com.microsoft's quantised and fused operators by hand: a node from the file to its numbers, on
// both devices.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "formats/onnx/lower.h"
#include "session/run.h"
#include "session/session.h"
#include "support/graphs.h"

namespace npurt::session {
namespace {

using D = std::vector<std::int64_t>;

template <typename T>
Tensor Of(const D& dims, const std::vector<T>& values) {
  return *Tensor::FromSpan<T>(dims, values);
}
Tensor F(const D& dims, const std::vector<float>& values) { return Of<float>(dims, values); }
Tensor F(float value) { return Of<float>({}, {value}); }
Tensor U8(const D& dims, const std::vector<std::uint8_t>& values) { return Of(dims, values); }
Tensor U8(std::uint8_t value) { return Of<std::uint8_t>({}, {value}); }
Tensor I8(const D& dims, const std::vector<std::int8_t>& values) { return Of(dims, values); }
Tensor I8(std::int8_t value) { return Of<std::int8_t>({}, {value}); }
Tensor I32(const D& dims, const std::vector<std::int32_t>& values) { return Of(dims, values); }
const Tensor kAbsent;

// Output 0 of one node of com.microsoft; undefined tensors are absent inputs.
absl::StatusOr<Tensor> RunNode(const std::string& op, const std::vector<Tensor>& inputs,
                               std::vector<Attribute> attributes, const std::string& device,
                               const std::string& domain = "com.microsoft") {
  auto graph = std::make_shared<graph::Graph>();
  formats::onnx::OnnxNode node;
  node.domain = domain;
  node.type = op;
  node.outputs = {"y"};
  for (Attribute& a : attributes) node.attributes.Set(a.name, std::move(a.value));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    node.inputs.push_back(graph::kNone);
    if (!inputs[i].defined()) continue;
    NPURT_ASSIGN_OR_RETURN(
        node.inputs.back(),
        graph->AddInput(absl::StrCat("x", i),
                        ValueType::OfTensor(inputs[i].dtype(), ToSymDims(inputs[i].dims()))));
  }
  NPURT_ASSIGN_OR_RETURN(const auto lowered, AddOnnxNode(graph.get(), std::move(node)));
  NPURT_RETURN_IF_ERROR(graph->AddOutput(lowered.outputs[0], "y"));
  options::Options options;
  NPURT_RETURN_IF_ERROR(options.Set("device", device));
  NPURT_ASSIGN_OR_RETURN(const auto session, Session::Create(options, {}));
  NPURT_RETURN_IF_ERROR(session->AddGraph(graph, "", {}).status());
  NPURT_ASSIGN_OR_RETURN(const auto run, session->NewRun(0));
  int bound = 0;
  for (const Tensor& input : inputs)
    if (input.defined()) NPURT_RETURN_IF_ERROR(run->BindInput(bound++, Value(input)));
  NPURT_RETURN_IF_ERROR(run->Execute({}));
  NPURT_ASSIGN_OR_RETURN(const Value value, run->Output(0));
  return value.tensor();
}

double At(const Tensor& t, std::int64_t i) {
  double value = NAN;
  DispatchDType<kNumbers>(t.dtype(),
                          [&](auto zero) { value = static_cast<double>(t.at<decltype(zero)>(i)); });
  return value;
}

void Expect(const std::string& op, const std::vector<Tensor>& inputs,
            const std::vector<Attribute>& attributes, const Tensor& want,
            const std::string& domain = "com.microsoft") {
  for (const char* device : {"cpu", "reference"}) {
    const auto got = RunNode(op, inputs, attributes, device, domain);
    ASSERT_TRUE(got.ok()) << op << ": " << got.status();
    ASSERT_EQ(got->dtype(), want.dtype()) << op;
    ASSERT_EQ(got->dims(), want.dims()) << op;
    for (std::int64_t i = 0; i < want.element_count(); ++i)
      EXPECT_NEAR(At(*got, i), At(want, i), 1e-5 * (1 + std::fabs(At(want, i))))
          << op << " on " << device << ", element " << i;
  }
}

std::string ErrorOf(const std::string& op, const std::vector<Tensor>& inputs,
                    const std::vector<Attribute>& attributes) {
  return RunNode(op, inputs, attributes, "cpu").status().ToString();
}

Attribute A(const char* name, int value) { return {name, std::int64_t{value}}; }
Attribute A(const char* name, float value) { return {name, value}; }
Attribute A(const char* name, const char* value) { return {name, std::string(value)}; }
Attribute A(const char* name, const D& value) { return {name, value}; }

TEST(MicrosoftTest, QuantisedArithmeticRoundsOnce) {
  // -5, 0, 95 and 6.
  const std::vector<Tensor> inputs = {
      U8({3}, {0, 10, 200}), F(0.5f), U8(10), U8({1}, {3}), F(2), kAbsent, F(1), U8(128)};
  Expect("QLinearAdd", inputs, {}, U8({3}, {129, 134, 229}));
  Expect("QLinearMul", inputs, {}, U8({3}, {98, 128, 255}));
  // Without a zero point the result has the type of the operands.
  Expect("QLinearAdd", {I8({2}, {-4, 5}), F(1), kAbsent, I8({1}, {1}), F(1), kAbsent, F(2)}, {},
         I8({2}, {-2, 3}));
  // A scale may be a list of one number where its zero point is none.
  Expect("QLinearAdd",
         {I8({1}, {-4}), F({1}, {1}), I8(0), I8({1}, {1}), F(1), I8({1}, {0}), F({1}, {1}), I8(0)},
         {}, I8({1}, {-3}));
  Expect("QLinearWhere",
         {*Tensor::FromSpan<bool>({2}, std::array<bool, 2>{true, false}), U8({2}, {4, 4}), F(1),
          U8(0), U8({2}, {6, 6}), F(2), U8(0), F(1), U8(1)},
         {}, U8({2}, {5, 13}));
}

TEST(MicrosoftTest, QuantisedConcatBringsPartsToOneScale) {
  Expect("QLinearConcat",
         {F(1), U8(10), U8({1, 2}, {4, 6}), F(0.5f), U8(2), U8({1, 1}, {9}), F(2), U8(8)},
         {A("axis", 1)}, U8({1, 3}, {11, 12, 12}));
}

TEST(MicrosoftTest, QuantisedPoolsTakeChannelsLast) {
  const Tensor x = U8({1, 2, 2, 2}, {0, 10, 2, 20, 4, 30, 6, 40});
  Expect("QLinearGlobalAveragePool", {x, F(1), U8(0), F(0.5f), U8(1)}, {A("channels_last", 1)},
         U8({1, 1, 1, 2}, {7, 51}));
  Expect("QLinearGlobalAveragePool", {x, F(1), U8(0), F(1), U8(0)}, {A("channels_last", 0)},
         U8({1, 2, 1, 1}, {8, 20}));
  Expect("QLinearAveragePool", {x, F(1), U8(0), F(1), U8(0)},
         {A("channels_last", 1), A("kernel_shape", D{1, 2})}, U8({1, 2, 1, 2}, {1, 15, 5, 35}));
}

TEST(MicrosoftTest, QuantisedActivations) {
  Expect("QLinearSigmoid", {I8({2}, {0, 127}), F(1), kAbsent, F(1 / 256.0f), I8(-128)}, {},
         I8({2}, {0, 127}));
  Expect("QLinearLeakyRelu", {I8({2}, {-100, 50}), F(1), I8(0), F(1), I8(0)}, {A("alpha", 0.1f)},
         I8({2}, {-10, 50}));
  const Tensor x = U8({1, 2, 2}, {7, 7, 7, 7});
  Expect("QLinearSoftmax", {x, F(1), U8(0), F(1 / 256.0f), U8(0)}, {A("opset", 13), A("axis", 2)},
         U8({1, 2, 2}, {128, 128, 128, 128}));
  Expect("QLinearSoftmax", {x, F(1), U8(0), F(1 / 256.0f), U8(0)}, {A("opset", 12), A("axis", 1)},
         U8({1, 2, 2}, {64, 64, 64, 64}));
}

TEST(MicrosoftTest, QuantisedConvolutionTakesChannelsLast) {
  Expect("QLinearConv",
         {U8({1, 1, 2, 2}, {1, 2, 3, 4}), F(1), U8(0), U8({1, 2, 1, 1}, {10, 1}), F(1), U8(0), F(1),
          U8(0)},
         {A("channels_last", 1)}, U8({1, 1, 2, 1}, {12, 34}));
}

TEST(MicrosoftTest, IntegerProductsGetTheirFactors) {
  const Tensor a = U8({2, 2}, {1, 2, 3, 4}), b = I8({2, 2}, {1, 0, 0, -1});
  // (a - 1) b = [0, -1; 2, -3]
  Expect("MatMulIntegerToFloat",
         {a, b, F(0.5f), F({2}, {1, 10}), U8(1), kAbsent, F({2}, {100, 200})}, {},
         F({2, 2}, {100, 195, 101, 185}));
  Expect("QGemm", {a, F(0.5f), U8(1), b, F(2), I8(0), I32({2}, {5, 6})}, {A("alpha", 2.0f)},
         F({2, 2}, {10, 10, 14, 6}));
  Expect("QGemm", {a, F(0.5f), U8(1), b, F({2}, {2, 4}), I8({2}, {0, 0}), kAbsent, F(1), U8(100)},
         {A("transA", 1), A("transB", 1)}, U8({2, 2}, {100, 96, 101, 94}));
  // 0 … 255 are themselves.
  Expect("DynamicQuantizeMatMul", {F({1, 2}, {255, 3}), b, F(2), kAbsent, F({2}, {0.5f, 0.25f})},
         {}, F({1, 2}, {510.5f, -5.75f}));
  Expect("MatMulInteger16",
         {Of<std::int16_t>({1, 2}, {1000, -3000}), Of<std::int16_t>({2, 1}, {1000, 30000})}, {},
         I32({1, 1}, {-89000000}));
  Expect("MulInteger", {U8({2}, {1, 2}), U8(3), U8({2}, {5, 7})}, {}, I32({2}, {-10, -7}));
  EXPECT_NE(ErrorOf("MatMulIntegerToFloat", {a, b, F({2}, {1, 2}), F(1)}, {})
                .find("a scale of A of shape [2], want one number"),
            std::string::npos);
}

TEST(MicrosoftTest, FusedProductsDoAllTheirSteps) {
  const Tensor a = F({2, 2}, {1, 2, 3, 4}), b = F({2, 1}, {1, -1});
  Expect("FusedMatMul", {a, b}, {A("alpha", 2.0f)}, F({2, 1}, {-2, -2}));
  Expect("FusedMatMul", {a, b}, {A("transA", 1)}, F({2, 1}, {-2, -2}));
  // [k, batch, m] and [n, batch, k]: both move their first dimension behind the batch.
  const Tensor wide = F({2, 2, 1}, {1, 2, 3, 4});
  Expect("FusedMatMul", {wide, F({1, 2, 2}, {1, 10, 2, 20})},
         {A("transA", 1), A("transBatchA", 1), A("transB", 1), A("transBatchB", 1)},
         F({2, 1, 1}, {31, 84}));
  Expect("FusedMatMulActivation", {a, b},
         {A("activation", "LeakyRelu"), A("activation_alpha", 0.5f)}, F({2, 1}, {-0.5f, -0.5f}));
  Expect("FusedGemm", {a, b, F({1}, {2})}, {A("activation", "Relu"), A("beta", 0.25f)},
         F({2, 1}, {0, 0}));
  Expect("FusedGemm", {a, b, F({1}, {4})},
         {A("activation", "HardSigmoid"), A("activation_alpha", 0.1f), A("activation_beta", 0.2f)},
         F({2, 1}, {0.5f, 0.5f}));
  EXPECT_NE(
      ErrorOf("FusedGemm", {a, b}, {A("activation", "Nonsense")}).find("activation 'Nonsense'"),
      std::string::npos);
}

TEST(MicrosoftTest, FusedConvolutionsDoAllTheirSteps) {
  const Tensor x = F({1, 1, 1, 3}, {1, 2, 3}), w = F({1, 1, 1, 1}, {2}), bias = F({1}, {1});
  const Tensor z = F({1, 1, 1, 3}, {-10, 0, 10});
  Expect("FusedConv", {x, w, bias, z}, {A("activation", "Relu")}, F({1, 1, 1, 3}, {0, 5, 17}));
  Expect("FusedConv", {x, w, bias},
         {A("activation", "Clip"), {"activation_params", std::vector<float>{4, 6}}},
         F({1, 1, 1, 3}, {4, 5, 6}));
  Expect("FusedConv", {x, w}, {}, F({1, 1, 1, 3}, {2, 4, 6}));
  // Filters are [output, height, width, input] here.
  const Tensor last = F({1, 1, 2, 2}, {1, 10, 2, 20}), filter = F({1, 1, 2, 2}, {1, 2, 3, 4});
  Expect("NhwcConv", {last, filter}, {A("kernel_shape", D{1, 2})}, F({1, 1, 1, 1}, {107}));
  Expect("NhwcFusedConv", {last, filter, F({1}, {-200})},
         {A("kernel_shape", D{1, 2}), A("activation", "Relu")}, F({1, 1, 1, 1}, {0}));
  Expect("NhwcMaxPool", {U8({1, 1, 2, 2}, {1, 20, 2, 10})}, {A("kernel_shape", D{1, 2})},
         U8({1, 1, 1, 2}, {2, 20}));
}

TEST(MicrosoftTest, QuantisedLstmIsAnLstmOfItsWeights) {
  // Hidden size 1, input size 2; the weights lie [direction, input, gate].
  const Tensor x = F({2, 1, 2}, {1, -1, 0.5f, 2});
  const Tensor w = I8({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), r = I8({1, 1, 4}, {-1, -2, -3, -4});
  const auto want = RunNode("LSTM",
                            {x, F({1, 4, 2}, {0, 0.4f, 0.1f, 0.5f, 0.2f, 0.6f, 0.3f, 0.7f}),
                             F({1, 4, 1}, {-0.2f, -0.8f, -1.8f, -3.2f})},
                            {A("hidden_size", 1)}, "reference", "");
  ASSERT_TRUE(want.ok()) << want.status();
  Expect("DynamicQuantizeLSTM",
         {x, w, r, kAbsent, kAbsent, kAbsent, kAbsent, kAbsent, F({1}, {0.1f}), I8({1}, {1}),
          F({1, 4}, {0.2f, 0.4f, 0.6f, 0.8f}), I8({1, 4}, {0, 0, 0, 0})},
         {A("hidden_size", 1)}, *want);
}

}  // namespace
}  // namespace npurt::session
