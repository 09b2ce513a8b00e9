// Any bytes as an ONNX file: read or refused, and what is read has a text that reads back.
#include <cstdlib>

#include "formats/onnx/proto_values.h"
#include "formats/onnx/reader.h"
#include "fuzz/seeds.h"
#include "graph/text.h"
#include "support/onnx_builder.h"

namespace {

namespace build = npurt::tests::onnx;

const std::vector<std::string>& Seeds() {
  static const auto* const seeds = new std::vector<std::string>{
      build::Model(build::Graph()
                       .Input("x", build::kFloat, {"batch", 4, 2})
                       .Initializer(build::FloatTensor("w", {2}, {1, 2}))
                       .Node("Add", {"x", "w"}, {"a"}, {.name = "add"})
                       .Node("Softmax", {"a"}, {"y"})
                       .Output("y", build::kFloat),
                   {.opset = 11}),
      build::Model(
          build::Graph()
              .Input("x", build::kFloat, {1, 3, "h", "w"})
              .Node("Clip", {"x"}, {"c"}, {.attributes = {build::FloatAttribute("max", 6)}})
              .Node("Upsample", {"c"}, {"u"},
                    {.attributes = {build::FloatsAttribute("scales", {1, 1, 2, 2})}})
              .Node("ReduceMean", {"u"}, {"r"},
                    {.attributes = {build::IntsAttribute("axes", {2, 3})}})
              .Node("Shape", {"r"}, {"s"})
              .Node("Reshape", {"u", "s"}, {"y"})
              .Output("y"),
          {.opset = 8}),
      build::Model(
          build::Graph()
              .Input("x", build::kFloat, {2})
              .Node("f", {"x"}, {"y"},
                    {.name = "call",
                     .domain = "local",
                     .attributes = {build::IntAttribute("axis", 0)}})
              .Output("y"),
          {.functions = {build::Function(
               "local", "f", {"a"}, {"b"},
               {build::Node("Softmax", {"a"}, {"b"},
                            {.attributes = {build::ReferenceAttribute("axis", "axis", 2)}})},
               {.attributes = {"axis"}})}}),
      build::Model(
          build::Graph()
              .Input("c", build::kBool, {})
              .Input("x", build::kFloat, {2, "n"})
              .Node("If", {"c"}, {"y"},
                    {.attributes =
                         {build::GraphAttribute(
                              "then_branch",
                              build::Graph("t").Node("Relu", {"x"}, {"a"}).Output("a").bytes()),
                          build::GraphAttribute(
                              "else_branch", build::Graph("e")
                                                 .Node("Constant", {}, {"b"},
                                                       {.attributes = {build::IntsAttribute(
                                                            "value_ints", {1, 2})}})
                                                 .Output("b")
                                                 .bytes())}})
              .Output("y")),
  };
  return *seeds;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned random) {
  return npurt::fuzz::SeededMutator(Seeds(), data, size, max_size, random);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace npurt::formats::onnx;  // NOLINT: a fuzzer's one function
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  ReadOptions options;
  options.limits.max_nodes = 2'000;
  options.limits.max_expanded_bytes = 1 << 20;
  const auto model = ReadModelFromMemory(bytes, "", nullptr, options);
  if (model.ok()) {
    const auto parsed = npurt::graph::FromText(npurt::graph::ToText(*model->graph));
    // What the text says of shapes is inferred again; only its form is promised to be right.
    if (!parsed.ok() && parsed.status().message().find("want ") == 0) std::abort();
  }
  (void)ReadTensorProto(bytes, options.limits);
  (void)ReadSequenceProto(bytes, options.limits);
  (void)ReadOptionalProto(bytes, options.limits);
  (void)ReadMapProto(bytes, options.limits);
  return 0;
}
