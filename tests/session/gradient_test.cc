// Gradients against differences: every rule once, with broadcasts on both sides.
#include <gtest/gtest.h>

#include <vector>

#include "formats/onnx/lower.h"
#include "session/run.h"
#include "session/session.h"
#include "support/graphs.h"

namespace npurt::session {
namespace {

using npurt::testing::GraphBuilder;
using npurt::testing::RandomTensor;

const std::vector<std::vector<std::int64_t>> kShapes = {{4, 3}, {3, 2}, {2}, {4, 1}, {5}};
const std::vector<std::string> kNames = {"x", "w", "b", "c", "unused"};

formats::onnx::OnnxNode GradientNode(std::vector<graph::ValueId> inputs) {
  formats::onnx::OnnxNode node;
  node.domain = "ai.onnx.preview.training";
  node.type = "Gradient";
  node.inputs = std::move(inputs);
  return node;
}

// Outputs y, and the gradients of its sum by all inputs.
std::shared_ptr<graph::Graph> Graph() {
  GraphBuilder b;
  std::vector<graph::ValueId> in;
  for (std::size_t i = 0; i < kNames.size(); ++i)
    in.push_back(b.Input(kNames[i], DType::kF32, kShapes[i]));
  const auto product = b.Node("MatMul", {in[0], in[1]}, "product");
  const auto q = b.Node("Add", {product, in[2]}, "q");
  const auto t = b.Node("Tanh", {q}, "t"), s = b.Node("Sigmoid", {q}, "s"),
             e = b.Node("Exp", {t}, "e");
  const auto l = b.Node("Log", {b.Node("Sum", {s, e, in[3]}, "sum")}, "l");
  const auto r = b.Node("Sqrt", {e}, "r"), sine = b.Node("Sin", {s}, "sine"),
             cosine = b.Node("Cos", {q}, "cosine");
  const auto ratio =
      b.Node("Div", {b.Node("Mul", {l, r}, "m"), b.Node("Add", {e, sine}, "d")}, "ratio");
  const auto cut = b.Node("Relu", {b.Node("Sub", {ratio, cosine}, "difference")}, "cut");
  const auto scaled = b.Node("Mul", {in[3], b.Node("Neg", {cut}, "negative")}, "scaled");
  const auto y = b.Node("Add", {scaled, b.Node("Identity", {q}, "copy")}, "y");
  b.Output(y);
  formats::onnx::OnnxNode node = GradientNode(in);
  node.attributes.Set("xs", kNames);
  node.attributes.Set("y", std::string("y"));
  for (const std::string& name : kNames) node.outputs.push_back("d" + name);
  const auto lowered = formats::onnx::AddOnnxNode(&b.graph(), std::move(node));
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  if (lowered.ok())
    for (graph::ValueId out : lowered->outputs) b.Output(out);
  return b.Take();
}

std::vector<Tensor> Outputs(const std::shared_ptr<Session>& session,
                            const std::vector<Tensor>& in) {
  auto run = session->NewRun(0);
  EXPECT_TRUE(run.ok()) << run.status();
  for (std::size_t i = 0; i < in.size(); ++i)
    EXPECT_TRUE((*run)->BindInput(static_cast<int>(i), Value(in[i])).ok());
  const absl::Status status = (*run)->Execute({});
  EXPECT_TRUE(status.ok()) << status;
  std::vector<Tensor> out;
  for (int i = 0; i < 6; ++i) out.push_back((*run)->Output(i)->tensor());
  return out;
}

double SumOf(const Tensor& t) {
  double sum = 0;
  for (std::int64_t i = 0; i < t.element_count(); ++i) sum += static_cast<double>(t.at<float>(i));
  return sum;
}

TEST(GradientTest, AgreesWithDifferences) {
  auto session = Session::Create(options::Options(), {});
  ASSERT_TRUE(session.ok()) << session.status();
  const auto added = (*session)->AddGraph(Graph(), "", {});
  ASSERT_TRUE(added.ok()) << added.status();
  std::vector<Tensor> in;
  for (std::size_t i = 0; i < kShapes.size(); ++i)
    in.push_back(RandomTensor(kShapes[i], static_cast<unsigned>(i) + 1));
  for (std::int64_t i = 0; i < 4; ++i) in[3].set(i, 0.5f + 0.1f * static_cast<float>(i));
  const std::vector<Tensor> out = Outputs(*session, in);
  constexpr float kStep = 0.01f;
  for (std::size_t k = 0; k < in.size(); ++k) {
    ASSERT_EQ(out[1 + k].dims(), in[k].dims());
    for (std::int64_t i = 0; i < in[k].element_count(); ++i) {
      double sides[2];
      for (int side : {0, 1}) {
        std::vector<Tensor> moved = in;
        moved[k] = *Tensor::FromSpan<float>(in[k].dims(),
                                            {static_cast<const float*>(in[k].data()),
                                             static_cast<std::size_t>(in[k].element_count())});
        moved[k].set(i, in[k].at<float>(i) + (side == 0 ? -kStep : kStep));
        sides[side] = SumOf(Outputs(*session, moved)[0]);
      }
      const double slope = (sides[1] - sides[0]) / (2 * static_cast<double>(kStep));
      EXPECT_NEAR(out[1 + k].at<float>(i), slope, 2e-3) << kNames[k] << " at " << i;
    }
  }
}

TEST(GradientTest, RefusesWhatHasNoRule) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {3});
  const auto z = b.Input("z", DType::kF32, {3});
  b.Node("Erf", {x}, "y");
  const auto status = [&](std::vector<graph::ValueId> inputs, const char* y) {
    formats::onnx::OnnxNode node = GradientNode(std::move(inputs));
    node.attributes.Set("xs", std::vector<std::string>{"x"});
    node.attributes.Set("y", std::string(y));
    node.outputs = {"dx"};
    return std::string(formats::onnx::AddOnnxNode(&b.graph(), std::move(node)).status().message());
  };
  EXPECT_EQ(status({x}, "y"), "the gradient of Erf");
  EXPECT_EQ(status({z}, "y"), "a gradient at another place than 'x'");
  EXPECT_EQ(status({x}, "nowhere"), "y names 'nowhere', which is unknown");
}

}  // namespace
}  // namespace npurt::session
