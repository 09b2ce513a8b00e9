// Random graphs through every configuration: whatever the passes fuse, the planner overlaps and the
// streams reorder, the result is that of the reference device.
#include <gtest/gtest.h>

#include <random>

#include "session/run.h"
#include "session/session.h"
#include "support/graphs.h"

namespace npurt::session {
namespace {

using npurt::testing::GraphBuilder;
using npurt::testing::RandomTensor;

constexpr int kRows = 6, kCols = 8;

// Values are all [n1, 8] with n1 = 6 when run, so that any two go together; nodes that change the shape
// change it back.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {
    values_.push_back(builder_.Input("x0", DType::kF32, {-1, kCols}));
    values_.push_back(builder_.Input("x1", DType::kF32, {-1, kCols}));
    const int nodes = 3 + static_cast<int>(random_() % 25);
    for (int i = 0; i < nodes; ++i) values_.push_back(AddNode());
    builder_.Output(values_.back());
    const int more = static_cast<int>(random_() % 3);
    for (int i = 0; i < more; ++i) builder_.Output(Any());
  }
  const graph::Graph& graph() { return builder_.graph(); }

 private:
  graph::ValueId Any() { return values_[random_() % values_.size()]; }
  std::string Name() { return "v" + std::to_string(counter_++); }
  graph::ValueId Ints(std::vector<std::int64_t> values) {
    return builder_.Constant(Name(), Tensor::Int64s(values));
  }

  graph::ValueId AddNode() {
    static constexpr const char* kUnary[] = {"Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Identity"};
    static constexpr const char* kBinary[] = {"Add", "Sub", "Mul", "Max"};
    Attributes axis;
    switch (random_() % 8) {
      case 0:
      case 1:
        return builder_.Node(kUnary[random_() % std::size(kUnary)], {Any()}, Name());
      case 2:
      case 3:
        return builder_.Node(kBinary[random_() % std::size(kBinary)], {Any(), Any()}, Name());
      case 4: {
        const auto product = builder_.Node(
            "MatMul", {Any(), builder_.Random(Name(), {kCols, kCols}, random_())}, Name());
        if (random_() % 2 == 0) return product;
        return builder_.Node("Add", {product, builder_.Random(Name(), {kCols}, random_())}, Name());
      }
      case 5: {  // two halves, put together the other way round
        axis.Set("axis", std::int64_t{random_() % 2 == 0 ? 1 : 0});
        const bool columns = axis.Int("axis") == 1;
        const std::int64_t half = columns ? kCols / 2 : kRows / 2;
        const auto axes = Ints({axis.Int("axis")});
        const auto from = Any(), other = Any();
        const auto low = builder_.Node("Slice", {from, Ints({0}), Ints({half}), axes}, Name());
        const auto high =
            builder_.Node("Slice", {other, Ints({half}), Ints({2 * half}), axes}, Name());
        const auto touched = builder_.Node("Relu", {high}, Name());
        return builder_.Node("Concat", {touched, low}, Name(), axis);
      }
      case 6: {
        const auto flat = builder_.Node("Reshape", {Any(), Ints({-1})}, Name());
        const auto touched = builder_.Node("Tanh", {flat}, Name());
        return builder_.Node("Reshape", {touched, Ints({-1, kCols})}, Name());
      }
      default: {
        axis.Set("axis", std::int64_t{1});
        return builder_.Node("Softmax", {Any()}, Name(), axis);
      }
    }
  }

  std::mt19937 random_;
  GraphBuilder builder_;
  std::vector<graph::ValueId> values_;
  int counter_ = 0;
};

struct Configuration {
  const char* name;
  std::vector<std::pair<const char*, const char*>> settings;
};

std::vector<Tensor> Outputs(const graph::Graph& graph, const Configuration& configuration) {
  options::Options options;
  for (const auto& [name, value] : configuration.settings)
    EXPECT_TRUE(options.Set(name, value).ok()) << name;
  auto session = Session::Create(options, {});
  EXPECT_TRUE(session.ok()) << session.status();
  const auto added = (*session)->AddGraph(graph.Clone(), "", {});
  EXPECT_TRUE(added.ok()) << configuration.name << ": " << added.status();
  if (!added.ok()) return {};
  auto run = *(*session)->NewRun(0);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(run->BindInput(i, Value(RandomTensor({kRows, kCols}, 100 + i))).ok());
  std::vector<Tensor> outputs;
  for (int round = 0; round < 2; ++round) {
    const absl::Status status = run->Execute({});
    EXPECT_TRUE(status.ok()) << configuration.name << ": " << status;
    if (!status.ok()) return {};
    outputs.clear();
    for (int o = 0; o < run->output_count(); ++o)
      outputs.push_back(run->Output(static_cast<std::size_t>(o))->tensor());
  }
  return outputs;
}

TEST(RandomGraphTest, EveryConfigurationAgreesWithTheReferenceDevice) {
  const Configuration reference = {"reference", {{"device", "reference"}}};
  const Configuration all[] = {
      {"fused", {}},
      {"unfused", {{"fusion", "false"}}},
      {"as written", {{"fusion", "false"}, {"constant_folding", "false"}}},
      {"streams", {{"inter_op_streams", "2"}}},
      {"generic", {{"max_isa", "generic"}}},
      {"one thread", {{"threads", "1"}}},
  };
  for (unsigned seed = 0; seed < 120; ++seed) {
    RandomGraph graph(seed);
    const std::vector<Tensor> want = Outputs(graph.graph(), reference);
    for (const Configuration& configuration : all) {
      const std::vector<Tensor> got = Outputs(graph.graph(), configuration);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t o = 0; o < got.size(); ++o) {
        ASSERT_EQ(got[o].dims(), want[o].dims());
        for (std::int64_t i = 0; i < got[o].element_count(); ++i) {
          const float wanted = want[o].at<float>(i);
          ASSERT_NEAR(got[o].at<float>(i), wanted, 1e-4 * (1 + std::abs(wanted)))
              << "seed " << seed << ", " << configuration.name << ", output " << o << " at " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace npurt::session
