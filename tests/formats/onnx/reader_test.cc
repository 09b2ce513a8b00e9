// Files: damage, limits, mapping, external data.
#include "formats/onnx/reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/onnx_builder.h"

namespace npurt::formats::onnx {
namespace {

namespace build = tests::onnx;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A folder that is gone with its contents at the end of a test.
class Folder {
 public:
  Folder() {
    std::string name = ::testing::TempDir() + "npurt_onnx_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::system(("rm -rf '" + path_ + "'").c_str()); }  // NOLINT: our own folder
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << bytes;
    return path_ + "/" + name;
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string FloatBytes(std::initializer_list<float> values) {
  return std::string(reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(float));
}

build::Graph AddGraph(const std::string& initializer) {
  return build::Graph()
      .Input("x", build::kFloat, {"batch", 2})
      .Initializer(initializer)
      .Node("Add", {"x", "w"}, {"y"}, {.name = "add"})
      .Output("y", build::kFloat);
}

std::string SmallModel() { return build::Model(AddGraph(build::FloatTensor("w", {2}, {1, 2}))); }

absl::StatusOr<Model> FromMemory(const std::string& bytes, const ReadOptions& options = {}) {
  return ReadModelFromMemory(bytes, "", nullptr, options);
}

TEST(ReadModelTest, ReadsTheWholeOfASmallModel) {
  const auto model = FromMemory(SmallModel());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->ir_version, 10);
  EXPECT_EQ(model->producer, "npurt tests");
  EXPECT_THAT(model->opsets, ElementsAre(std::pair<std::string, int>("", 21)));
  const graph::Graph& graph = *model->graph;
  ASSERT_EQ(graph.inputs().size(), 1u);
  EXPECT_EQ(graph.value(graph.inputs()[0]).type.ToString(), "float32[batch, 2]");
  ASSERT_EQ(graph.outputs().size(), 1u);
  EXPECT_EQ(graph.output_names()[0], "y");
  EXPECT_EQ(graph.value(graph.outputs()[0]).type.ToString(), "float32[batch, 2]");
  EXPECT_EQ(graph.node(0).name, "add");
}

TEST(ReadModelTest, WeightsAreTheMappedFile) {
  const Folder folder;
  const std::string path = folder.Write("m.onnx", SmallModel());
  const auto mapped = ReadModel(path);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  const auto copied = ReadModel(path, {.map_weights = false});
  ASSERT_TRUE(copied.ok()) << copied.status();
  for (const auto* model : {&mapped, &copied}) {
    const graph::Graph& graph = *(*model)->graph;
    const Tensor& w = graph.value(graph.Find("w")).constant;
    EXPECT_EQ(w.at<float>(1), 2);
    EXPECT_NE(w.owner(), nullptr);
  }
}

TEST(ReadModelTest, TensorsOutliveTheModel) {
  Tensor w;
  {
    const auto model = FromMemory(SmallModel());
    ASSERT_TRUE(model.ok());
    w = model->graph->value(model->graph->Find("w")).constant;
  }
  EXPECT_EQ(w.at<float>(0), 1);
}

TEST(ReadModelTest, SaysWhichFileIsMissingOrNone) {
  EXPECT_EQ(ReadModel("/there/is/no/such.onnx").status().code(), absl::StatusCode::kNotFound);
  const Folder folder;
  EXPECT_EQ(ReadModel(folder / ".").status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ReadModel(folder.Write("empty.onnx", "")).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Every cut is an error with a place, and never a crash.
TEST(ReadModelTest, DamageIsDataLossWithThePlace) {
  const std::string whole = SmallModel();
  int damaged = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto model = FromMemory(whole.substr(0, size));
    if (model.ok()) continue;  // the cut took only what may be absent
    if (model.status().code() != absl::StatusCode::kDataLoss) continue;  // between two fields
    ++damaged;
    EXPECT_THAT(std::string(model.status().message()), StartsWith("byte ")) << size;
  }
  EXPECT_GT(damaged, static_cast<int>(whole.size()) / 2);
  const auto cut = FromMemory(whole.substr(0, whole.size() - 12));
  EXPECT_THAT(std::string(cut.status().message()), HasSubstr("graph: is cut off: says "));
}

TEST(ReadModelTest, ThePathOfDamageNamesFieldsAndIndices) {
  // A node whose second attribute has a tensor that ends within its dimensions.
  const std::string tensor = build::Message([](protozero::pbf_writer& w) {
    w.add_bytes(1, std::string("\x80", 1));  // packed dims: an open varint
    w.add_int32(2, 1);
  });
  const auto model =
      FromMemory(build::Model(build::Graph()
                                  .Node("Relu", {}, {"a"})
                                  .Node("Relu", {}, {"y"},
                                        {.attributes = {build::IntAttribute("i", 1),
                                                        build::TensorAttribute("t", tensor)}})));
  EXPECT_EQ(model.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(model.status().message()),
              HasSubstr("graph.node[1].attribute[1].t.dims: ends in the middle of a number"));
}

TEST(ReadModelTest, FlippedBytesNeverCrash) {
  const std::string whole = SmallModel();
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (int flip : {0x01, 0x80, 0xff, 0x07}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      (void)FromMemory(bytes);
    }
}

TEST(ReadModelTest, LimitsHold) {
  std::string deep;  // types in types
  for (int i = 0; i < 500; ++i)
    deep = build::Message([&](protozero::pbf_writer& w) {
      protozero::pbf_writer sequence(w, 4);
      sequence.add_message(1, deep);
    });
  EXPECT_EQ(FromMemory(build::Model(build::Graph().InputOfType("x", deep))).status().code(),
            absl::StatusCode::kResourceExhausted);
  ReadOptions options;
  options.limits.max_nodes = 1;
  const auto nodes = FromMemory(
      build::Model(
          build::Graph().Input("x", 1, {1}).Node("Relu", {"x"}, {"a"}).Node("Relu", {"a"}, {"b"})),
      options);
  EXPECT_EQ(nodes.status().code(), absl::StatusCode::kResourceExhausted);
  options = {};
  options.limits.max_messages = 3;
  EXPECT_EQ(FromMemory(SmallModel(), options).status().code(),
            absl::StatusCode::kResourceExhausted);
  options = {};
  options.limits.max_model_bytes = 10;
  EXPECT_EQ(FromMemory(SmallModel(), options).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(ReadModelTest, SparseTensorsBecomeDenseWithinTheLimit) {
  const auto sparse = [](const std::vector<std::int64_t>& dims,
                         const std::vector<std::int64_t>& index_dims,
                         const std::vector<std::int64_t>& indices) {
    return build::Message([&](protozero::pbf_writer& w) {
      w.add_message(1, build::FloatTensor("w", {2}, {5, 7}));
      w.add_message(2, build::Int64Tensor("", index_dims, indices));
      w.add_packed_int64(3, dims.begin(), dims.end());
    });
  };
  const auto read = [](const std::string& bytes) {
    return FromMemory(build::Model(build::Graph()
                                       .Input("x", build::kFloat, {3, 2})
                                       .SparseInitializer(bytes)
                                       .Node("Add", {"x", "w"}, {"y"})
                                       .Output("y")));
  };
  for (const auto& bytes : {sparse({3, 2}, {2}, {1, 4}), sparse({3, 2}, {2, 2}, {0, 1, 2, 0})}) {
    const auto model = read(bytes);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto values = Reals(model->graph->value(model->graph->Find("w")).constant);
    EXPECT_THAT(*values, ElementsAre(0, 5, 0, 0, 7, 0));
  }
  EXPECT_EQ(read(sparse({3, 2}, {2}, {1, 6})).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(read(sparse({1 << 30, 1 << 10}, {2}, {1, 6})).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// --- External data
// --------------------------------------------------------------------------------

std::string ExternalModel(const std::vector<std::pair<std::string, std::string>>& entries) {
  return build::Model(AddGraph(build::ExternalTensor("w", build::kFloat, {2}, entries)));
}

TEST(ExternalDataTest, IsReadAtItsOffset) {
  const Folder folder;
  folder.Write("w.bin", FloatBytes({0, 3, 4, 0}));
  const std::string path = folder.Write(
      "m.onnx", ExternalModel({{"location", "./w.bin"}, {"offset", "4"}, {"length", "8"}}));
  for (bool map : {true, false}) {
    const auto model = ReadModel(path, {.map_weights = map});
    ASSERT_TRUE(model.ok()) << model.status();
    const Tensor& w = model->graph->value(model->graph->Find("w")).constant;
    EXPECT_EQ(w.at<float>(0), 3);
    EXPECT_EQ(w.at<float>(1), 4);
  }
}

TEST(ExternalDataTest, NeverLeavesTheFolder) {
  const Folder outside, folder;
  const std::string secret = outside.Write("secret.bin", FloatBytes({1, 2}));
  ASSERT_EQ(symlink(secret.c_str(), (folder / "link.bin").c_str()), 0);
  ASSERT_EQ(symlink((outside / ".").c_str(), (folder / "dir").c_str()), 0);
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::string& location :
       {secret, std::string("../") + secret.substr(secret.rfind('/', secret.rfind('/') - 1) + 1),
        std::string("a/../../w.bin"), std::string("link.bin"), std::string("dir/secret.bin"),
        std::string("pipe"), std::string("."), std::string(""), std::string("w\0.bin", 6)}) {
    const auto model = ReadModel(folder.Write("m.onnx", ExternalModel({{"location", location}})));
    EXPECT_EQ(model.status().code(), absl::StatusCode::kPermissionDenied)
        << location << ": " << model.status();
  }
}

TEST(ExternalDataTest, FollowsLinksThatStayInside) {
  const Folder folder;
  folder.Write("real.bin", FloatBytes({1, 2}));
  ASSERT_EQ(symlink("real.bin", (folder / "link.bin").c_str()), 0);
  const auto model = ReadModel(folder.Write("m.onnx", ExternalModel({{"location", "link.bin"}})));
  EXPECT_TRUE(model.ok()) << model.status();
}

TEST(ExternalDataTest, SizesAreChecked) {
  const Folder folder;
  folder.Write("w.bin", FloatBytes({1, 2}));
  const auto code = [&](const std::vector<std::pair<std::string, std::string>>& entries) {
    return ReadModel(folder.Write("m.onnx", ExternalModel(entries))).status().code();
  };
  EXPECT_EQ(code({{"location", "w.bin"}, {"offset", "4"}}), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code({{"location", "w.bin"}, {"offset", "18446744073709551615"}}),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(code({{"location", "w.bin"}, {"offset", "-4"}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"location", "w.bin"}, {"length", "4"}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"location", "none.bin"}}), absl::StatusCode::kNotFound);
}

TEST(ExternalDataTest, NeedsAFolderWhenTheModelIsInMemory) {
  const std::string bytes = ExternalModel({{"location", "w.bin"}});
  EXPECT_EQ(FromMemory(bytes).status().code(), absl::StatusCode::kPermissionDenied);
  const Folder folder;
  folder.Write("w.bin", FloatBytes({1, 2}));
  EXPECT_TRUE(ReadModelFromMemory(bytes, folder / "", nullptr).ok());
}

}  // namespace
}  // namespace npurt::formats::onnx
