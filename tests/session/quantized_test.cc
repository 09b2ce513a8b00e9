// Models with QuantizeLinear and DequantizeLinear: what FuseQuantized makes of them, and that results
// are those of the real arithmetic that the graph writes down, up to one step where it ties.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compile/compile.h"
#include "session/run.h"
#include "session/session.h"
#include "support/graphs.h"

namespace npurt::session {
namespace {

using graph::ValueId;
using npurt::testing::GraphBuilder;
using npurt::testing::RandomTensor;

template <typename T>
Tensor Whole(DType dtype, Dims dims, unsigned seed, int low, int high) {
  Tensor tensor = *Tensor::Create(dtype, dims);
  std::mt19937 random(seed);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set<T>(i, static_cast<T>(std::uniform_int_distribution<int>(low, high)(random)));
  return tensor;
}

struct Writer {
  GraphBuilder b;
  int count = 0;

  std::string Name() { return "v" + std::to_string(count++); }
  ValueId Scale(float scale) { return b.Floats(Name(), {}, {scale}); }
  ValueId Byte(DType dtype, int zero) {
    return b.Constant(Name(), dtype == DType::kI8 ? Whole<std::int8_t>(dtype, {}, 1, zero, zero)
                                                  : Whole<std::uint8_t>(dtype, {}, 1, zero, zero));
  }
  ValueId Quantize(ValueId x, float scale, DType dtype, int zero, std::string name = "") {
    return b.Node("QuantizeLinear", {x, Scale(scale), Byte(dtype, zero)},
                  name.empty() ? Name() : name);
  }
  ValueId Dequantize(ValueId q, float scale, DType dtype, int zero) {
    return b.Node("DequantizeLinear", {q, Scale(scale), Byte(dtype, zero)}, Name());
  }
  // There and back.
  ValueId Step(ValueId x, float scale, DType dtype, int zero) {
    return Dequantize(Quantize(x, scale, dtype, zero), scale, dtype, zero);
  }
  ValueId Weights(Dims dims, std::int64_t axis, std::vector<float> scales) {
    const auto w = b.Constant(Name(), Whole<std::int8_t>(DType::kI8, dims, ++seed, -127, 127));
    Attributes attributes;
    attributes.Set("axis", axis);
    const auto count = static_cast<std::int64_t>(scales.size());
    const auto scale = count == 1 ? b.Floats(Name(), {}, scales) : b.Floats(Name(), {count}, scales);
    return b.Node("DequantizeLinear", {w, scale}, Name(), attributes);
  }
  ValueId Bias(std::int64_t n, std::vector<float> scales) {
    const auto bias = b.Constant(
        Name(), Whole<std::int32_t>(DType::kI32, {n}, ++seed, -3000, 3000));
    Attributes attributes;
    attributes.Set("axis", std::int64_t{0});
    const auto count = static_cast<std::int64_t>(scales.size());
    const auto scale = count == 1 ? b.Floats(Name(), {}, scales) : b.Floats(Name(), {count}, scales);
    return b.Node("DequantizeLinear", {bias, scale}, Name(), attributes);
  }
  unsigned seed = 1;
};

Attributes Ints(const char* name, std::vector<std::int64_t> values) {
  Attributes attributes;
  attributes.Set(name, std::move(values));
  return attributes;
}

// Convolution, pooling, moves and both kinds of products, bytes signed and not.
std::shared_ptr<graph::Graph> Network() {
  Writer w;
  GraphBuilder& b = w.b;
  const auto u8 = DType::kU8, i8 = DType::kI8;
  ValueId x = b.Input("x", DType::kF32, {1, 3, 14, 12});
  x = w.Step(x, 0.01f, u8, 120);
  const std::vector<float> scales = {0.004f, 0.002f, 0.003f, 0.001f, 0.005f, 0.006f};
  std::vector<float> products;
  for (float s : scales) products.push_back(s * 0.01f);
  x = b.Node("Conv", {x, w.Weights({6, 3, 3, 3}, 0, scales), w.Bias(6, products)}, w.Name(),
             Ints("pads", {1, 1, 1, 1}));
  x = b.Node("Relu", {x}, w.Name());
  x = w.Step(x, 0.02f, i8, -100);
  x = b.Node("MaxPool", {x}, w.Name(), [] {
    Attributes a = Ints("kernel_shape", {2, 2});
    a.Set("strides", std::vector<std::int64_t>{2, 2});
    return a;
  }());
  x = w.Step(x, 0.02f, i8, -100);
  Attributes depthwise = Ints("pads", {1, 1, 1, 1});
  depthwise.Set("group", std::int64_t{6});
  x = b.Node("Conv", {x, w.Weights({6, 1, 3, 3}, 0, {0.01f})}, w.Name(), depthwise);
  x = w.Step(x, 0.03f, u8, 60);
  x = b.Node("Transpose", {x}, w.Name(), Ints("perm", {0, 2, 3, 1}));
  x = w.Step(x, 0.03f, u8, 60);
  x = b.Node("Reshape", {x, b.Constant(w.Name(), *Tensor::FromSpan<std::int64_t>({2}, {7, 36}))},
             w.Name());
  x = w.Step(x, 0.03f, u8, 60);
  x = b.Node("MatMul", {x, w.Weights({36, 40}, 1, {0.01f})}, w.Name());
  x = b.Node("Add", {w.Bias(40, {0.0003f}), x}, w.Name());
  x = b.Node("Relu", {x}, w.Name());
  x = w.Step(x, 0.05f, i8, -128);
  Attributes trans_b;
  trans_b.Set("transB", std::int64_t{1});
  x = b.Node("Gemm", {x, w.Weights({9, 40}, 0, {0.02f}), w.Bias(9, {0.001f})}, w.Name(), trans_b);
  x = w.Quantize(x, 0.1f, i8, 3, "bytes");
  b.Output(x);
  return b.Take();
}

int Count(const graph::Graph& graph, const char* op) {
  int count = 0;
  for (graph::NodeId id = 0; id < graph.node_count(); ++id)
    count += !graph.node(id).removed && std::string(graph.node(id).op->name) == op;
  return count;
}

TEST(QuantizedTest, ProductsAndMovesBecomeOperatorsOnBytes) {
  const auto graph = Network();
  compile::CompileOptions options;
  compile::PassContext context{*graph, options};
  const auto changes = compile::FuseQuantized(context);
  ASSERT_TRUE(changes.ok()) << changes.status();
  EXPECT_EQ(*changes, 7);
  ASSERT_TRUE(compile::RemoveUnused(context).ok());
  EXPECT_EQ(Count(*graph, "QLinearConv"), 2);
  EXPECT_EQ(Count(*graph, "QLinearMatMul"), 2);
  EXPECT_EQ(Count(*graph, "QuantizeLinear"), 1);  // of the input
  EXPECT_EQ(Count(*graph, "DequantizeLinear"), 0);
}

TEST(QuantizedTest, ScalesThatAreNoConstantsAndOtherReadersStayReal) {
  Writer w;
  GraphBuilder& b = w.b;
  const auto x = w.Step(b.Input("x", DType::kF32, {1, 2, 5, 5}), 0.01f, DType::kU8, 0);
  const auto conv = b.Node("Conv", {x, w.Weights({2, 2, 1, 1}, 0, {0.01f})}, "conv");
  const auto scale = b.Input("scale", DType::kF32, {});
  b.Output(b.Node("QuantizeLinear", {conv, scale, w.Byte(DType::kU8, 0)}, "y"));
  const auto second = b.Node("Conv", {x, w.Weights({2, 2, 1, 1}, 0, {0.01f})}, "second");
  b.Output(second);
  b.Output(w.Quantize(second, 0.1f, DType::kU8, 0, "z"));
  compile::CompileOptions options;
  compile::PassContext context{b.graph(), options};
  EXPECT_EQ(compile::FuseQuantized(context).value_or(-1), 0);
}

std::vector<int> Bytes(const graph::Graph& graph,
                       std::vector<std::pair<const char*, const char*>> settings) {
  options::Options options;
  for (const auto& [name, value] : settings) EXPECT_TRUE(options.Set(name, value).ok()) << name;
  auto session = Session::Create(options, {});
  EXPECT_TRUE(session.ok()) << session.status();
  const auto added = (*session)->AddGraph(graph.Clone(), "", {});
  EXPECT_TRUE(added.ok()) << added.status();
  auto run = *(*session)->NewRun(0);
  EXPECT_TRUE(run->BindInput(0, Value(RandomTensor({1, 3, 14, 12}, 7))).ok());
  EXPECT_TRUE(run->Execute({}).ok());
  const Tensor result = run->Output(0)->tensor();
  std::vector<int> bytes;
  for (std::int64_t i = 0; i < result.element_count(); ++i)
    bytes.push_back(result.at<std::int8_t>(i));
  return bytes;
}

TEST(QuantizedTest, BytesAreThoseOfRealArithmeticOnEverySet) {
  const auto graph = Network();
  const auto want = Bytes(*graph, {{"fusion", "false"}});
  const auto best = Bytes(*graph, {});
  ASSERT_EQ(best.size(), want.size());
  int different = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_LE(std::abs(best[i] - want[i]), 1) << i;
    different += best[i] != want[i];
  }
  EXPECT_LE(different, 2);
  for (const char* tier : {"generic", "avx2", "avx512"})
    EXPECT_EQ(Bytes(*graph, {{"max_isa", tier}}), best) << tier;
}

// Blocks as of MobileNet: expansion, depthwise, projection, each with its bounds, and a sum. Scales are such
// that ties are rare.
std::shared_ptr<graph::Graph> Blocks() {
  Writer w;
  GraphBuilder& b = w.b;
  const auto u8 = DType::kU8;
  const auto conv = [&](ValueId x, float scale, Dims dims, std::int64_t pad, std::int64_t group) {
    Attributes attributes = Ints("pads", {pad, pad, pad, pad});
    attributes.Set("group", group);
    return b.Node("Conv", {x, w.Weights(dims, 0, {0.00471f}), w.Bias(dims[0], {scale * 0.00471f})}, w.Name(),
                  attributes);
  };
  const auto clip = [&](ValueId x) {
    return b.Node("Clip", {x, b.Floats(w.Name(), {}, {0}), b.Floats(w.Name(), {}, {6})}, w.Name());
  };
  ValueId x = b.Input("x", DType::kF32, {1, 3, 14, 12});
  x = w.Step(x, 0.02f, u8, 120);
  ValueId sum = w.Step(clip(conv(x, 0.02f, {24, 3, 3, 3}, 1, 1)), 0.02f, u8, 0);
  for (int i = 0; i < 2; ++i) {
    ValueId y = w.Step(clip(conv(sum, i == 0 ? 0.02f : 0.0407f, {40, 24, 1, 1}, 0, 1)), 0.02f, u8, 0);
    y = w.Step(clip(conv(y, 0.02f, {40, 1, 3, 3}, 1, 40)), 0.02f, u8, 3);
    y = w.Step(conv(y, 0.02f, {24, 40, 1, 1}, 0, 1), 0.0313f, u8, 128);
    y = b.Node("Add", {sum, y}, w.Name());
    if (i == 0) {
      sum = w.Step(b.Node("Relu", {y}, w.Name()), 0.0407f, u8, 100);
    } else {
      b.Output(w.Quantize(y, 0.0407f, DType::kI8, -20, "bytes"));
    }
  }
  return b.Take();
}

TEST(QuantizedTest, BoundsAndSumsBecomeOperatorsOnBytes) {
  const auto graph = Blocks();
  compile::CompileOptions options;
  compile::PassContext context{*graph, options};
  const auto changes = compile::FuseQuantized(context);
  ASSERT_TRUE(changes.ok()) << changes.status();
  EXPECT_EQ(*changes, 9);
  ASSERT_TRUE(compile::RemoveUnused(context).ok());
  EXPECT_EQ(Count(*graph, "QLinearConv"), 7);
  EXPECT_EQ(Count(*graph, "QLinearAdd"), 2);
  EXPECT_EQ(Count(*graph, "Clip"), 0);
  // One region with the channels last; the first layer's three channels are not worth copying windows for.
  ASSERT_TRUE(compile::ChooseLayouts(context).ok());
  ASSERT_TRUE(compile::RemoveUnused(context).ok());
  for (graph::NodeId id = 0; id < graph->node_count(); ++id) {
    const graph::Node& node = graph->node(id);
    if (!node.removed && std::string(node.op->name) == "QLinearConv") {
      const bool first = graph->value(node.inputs[3]).constant.dims()[1] == 3;
      EXPECT_EQ(node.attributes.String("data_format"), first ? "" : "NHWC");
    }
  }
  EXPECT_EQ(Count(*graph, "Transpose"), 2);
}

TEST(QuantizedTest, BytesWithChannelsLastAreThoseOfRealArithmetic) {
  const auto graph = Blocks();
  const auto want = Bytes(*graph, {{"device", "reference"}});
  const auto best = Bytes(*graph, {});
  ASSERT_EQ(best.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_LE(std::abs(best[i] - want[i]), 1) << i;
  for (const char* tier : {"generic", "avx2", "avx512"})
    EXPECT_EQ(Bytes(*graph, {{"max_isa", tier}}), best) << tier;
}

}  // namespace
}  // namespace npurt::session
