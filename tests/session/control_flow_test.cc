#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "graph/text.h"
#include "session/run.h"
#include "session/session.h"
#include "support/count_allocations.h"
#include "support/graphs.h"

namespace npurt::session {
namespace {

using npurt::testing::AllocationCount;
using npurt::testing::CountsAllocations;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Settings = std::vector<std::pair<std::string, std::string>>;

absl::StatusOr<std::shared_ptr<Session>> Load(const std::string& text, const Settings& settings) {
  options::Options options;
  for (const auto& [name, value] : settings) NPURT_RETURN_IF_ERROR(options.Set(name, value));
  NPURT_ASSIGN_OR_RETURN(auto session, Session::Create(options, {}));
  NPURT_ASSIGN_OR_RETURN(auto graph, graph::FromText(text));
  NPURT_RETURN_IF_ERROR(
      session->AddGraph(std::shared_ptr<graph::Graph>(std::move(graph)), "", {}).status());
  return session;
}

absl::StatusOr<std::vector<Value>> RunText(const std::string& text, std::vector<Value> inputs,
                                           const Settings& settings = {}) {
  NPURT_ASSIGN_OR_RETURN(auto session, Load(text, settings));
  NPURT_ASSIGN_OR_RETURN(auto run, session->NewRun(0));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    NPURT_RETURN_IF_ERROR(run->BindInput(i, inputs[i]));
  NPURT_RETURN_IF_ERROR(run->Execute({}));
  std::vector<Value> outputs;
  for (int i = 0; i < run->output_count(); ++i) {
    NPURT_ASSIGN_OR_RETURN(outputs.emplace_back(), run->Output(i));
  }
  return outputs;
}

Value Floats(std::vector<std::int64_t> dims, std::vector<float> values) {
  return Value(*Tensor::FromSpan<float>(dims, values));
}
Value Int(std::int64_t value) { return Value(Tensor::Int64Scalar(value)); }
Value Bool(bool value) {
  return Value(*Tensor::FromSpan<bool>({}, absl::MakeConstSpan(&value, 1)));
}

std::vector<float> Values(const Value& value) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < value.tensor().element_count(); ++i)
    values.push_back(value.tensor().at<float>(i));
  return values;
}

class ControlFlowTest : public ::testing::TestWithParam<const char*> {
 protected:
  Settings settings() const { return {{"device", GetParam()}}; }
};

INSTANTIATE_TEST_SUITE_P(Devices, ControlFlowTest, ::testing::Values("cpu", "reference"));

constexpr char kBranches[] = R"(graph "g" {
  input %c : bool[]
  input %x : float32[n, 2]
  const %w = float32[2, 2] {1, 2, 3, 4}
  %y = If(%c, %x) [captures = 1, else_branch = graph "no" {
    capture %x : float32[n, 2]
    %r = Neg(%x)
    output %r "r"
  }, then_branch = graph "yes" {
    capture %x : float32[n, 2]
    const %w = float32[2, 2] {1, 2, 3, 4}
    %r = MatMul(%x, %w)
    output %r "r"
  }]
  %z = Relu(%y)
  output %z "z"
})";

TEST_P(ControlFlowTest, IfRunsTheBranchThatItsConditionNames) {
  const Value x = Floats({1, 2}, {1, -2});
  auto yes = RunText(kBranches, {Bool(true), x}, settings());
  auto no = RunText(kBranches, {Bool(false), x}, settings());
  ASSERT_TRUE(yes.ok()) << yes.status();
  ASSERT_TRUE(no.ok()) << no.status();
  EXPECT_THAT(Values((*yes)[0]), ElementsAre(0, 0));
  EXPECT_THAT(Values((*no)[0]), ElementsAre(0, 2));
}

TEST_P(ControlFlowTest, ABranchThatCannotBeRightFailsOnlyWhenItIsTaken) {
  const std::string text = R"(graph "g" {
  input %c : bool[]
  input %x : float32[n, m]
  %y = If(%c, %x) [captures = 1, else_branch = graph "no" {
    capture %x : float32[n, m]
    %r = Neg(%x)
    output %r "r"
  }, then_branch = graph "yes" {
    capture %x : float32[n, m]
    const %w = float32[4, 1] {1, 2, 3, 4}
    %r = MatMul(%x, %w)
    output %r "r"
  }]
  output %y "y"
})";
  const Value x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  auto no = RunText(text, {Bool(false), x}, settings());
  ASSERT_TRUE(no.ok()) << no.status();
  EXPECT_THAT(Values((*no)[0]), ElementsAre(-1, -2, -3, -4, -5, -6));
  const auto yes = RunText(text, {Bool(true), x}, settings());
  EXPECT_EQ(yes.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(yes.status().message()), HasSubstr("MatMul"));
}

// state' = state * 2 + captured x; scan output: the state before.
constexpr char kDoubling[] = R"(graph "g" {
  input %m : int64[]
  input %x : float32[n]
  input %s : float32[n]
  %last, %all = Loop(%m, _, %s, %x) [captures = 1, body = graph "body" {
    input %i : int64[]
    input %go : bool[]
    input %state : float32[n]
    capture %x : float32[n]
    const %two = float32[] {2.0}
    %d = Mul(%state, %two)
    %next = Add(%d, %x)
    output %go "go"
    output %next "next"
    output %state "state"
  }]
  output %last "last"
  output %all "all"
})";

TEST_P(ControlFlowTest, LoopCarriesItsStateAndCollectsScans) {
  auto got = RunText(kDoubling, {Int(3), Floats({2}, {1, 10}), Floats({2}, {0, 1})}, settings());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT(Values((*got)[0]), ElementsAre(7, 78));
  EXPECT_THAT(Values((*got)[1]), ElementsAre(0, 1, 1, 12, 3, 34));
  EXPECT_THAT((*got)[1].tensor().dims(), ElementsAre(3, 2));
}

TEST_P(ControlFlowTest, ALoopWithoutTurnsYieldsItsInitialStateAndEmptyScans) {
  auto got = RunText(kDoubling, {Int(0), Floats({2}, {1, 10}), Floats({2}, {0, 1})}, settings());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT(Values((*got)[0]), ElementsAre(0, 1));
  EXPECT_EQ((*got)[1].tensor().dims()[0], 0);
}

// The state grows by one row a turn until it has five, as a cache does.
constexpr char kGrowing[] = R"(graph "g" {
  input %x : float32[1, 2]
  const %yes = bool[] {true}
  %last = Loop(_, %yes, %x, %x) [captures = 1, body = graph "body" {
    input %i : int64[]
    input %go : bool[]
    input %rows : float32[m, 2]
    capture %x : float32[1, 2]
    const %three = int64[] {3}
    %more = Concat(%rows, %x) [axis = 0]
    %next = Less(%i, %three)
    output %next "next"
    output %more "more"
  }]
  output %last "last"
})";

TEST_P(ControlFlowTest, LoopStatesMayGrow) {
  auto got = RunText(kGrowing, {Floats({1, 2}, {3, 4})}, settings());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT(Values((*got)[0]), ElementsAre(3, 4, 3, 4, 3, 4, 3, 4, 3, 4));
}

TEST_P(ControlFlowTest, ScanReadsAndWritesAlongAnyAxisInBothDirections) {
  // Running sums of the columns of x, from the last on; results as columns, from the last on.
  const std::string text = R"(graph "g" {
  input %s : float32[2]
  input %x : float32[2, t]
  %last, %sums = Scan(%s, %x) [num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1], scan_output_axes = [-1], scan_output_directions = [1], body = graph "body" {
    input %state : float32[2]
    input %column : float32[2]
    %sum = Add(%state, %column)
    output %sum "sum"
    output %sum "copy"
  }]
  output %last "last"
  output %sums "sums"
})";
  auto got = RunText(text, {Floats({2}, {0, 100}), Floats({2, 3}, {1, 2, 3, 4, 5, 6})}, settings());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT(Values((*got)[0]), ElementsAre(6, 115));
  EXPECT_THAT(Values((*got)[1]), ElementsAre(6, 5, 3, 115, 111, 106));
}

TEST_P(ControlFlowTest, SubgraphsNestAndCaptureThroughOneAnother) {
  const std::string text = R"(graph "g" {
  input %m : int64[]
  input %x : float32[2]
  const %zero = float32[2] {0.0, 0.0}
  %sum = Loop(%m, _, %zero, %x) [captures = 1, body = graph "body" {
    input %i : int64[]
    input %go : bool[]
    input %state : float32[2]
    capture %x : float32[2]
    const %one = int64[] {1}
    %odd = Equal(%i, %one)
    %add = If(%odd, %x) [captures = 1, else_branch = graph "no" {
      capture %x : float32[2]
      %r = Neg(%x)
      output %r "r"
    }, then_branch = graph "yes" {
      capture %x : float32[2]
      %r = Add(%x, %x)
      output %r "r"
    }]
    %next = Add(%state, %add)
    output %go "go"
    output %next "next"
  }]
  output %sum "sum"
})";
  auto got = RunText(text, {Int(3), Floats({2}, {1, 5})}, settings());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT(Values((*got)[0]), ElementsAre(0, 0));  // -x + 2x - x
}

TEST(ControlFlowErrorTest, SchemasOfSubgraphsAreChecked) {
  const auto status = [](std::string text) { return graph::FromText(text).status(); };
  std::string wrong = kDoubling;
  wrong.replace(wrong.find("output %state \"state\""), 21,
                "output %i \"again\"\n    output %i \"more\"");
  EXPECT_THAT(std::string(status(wrong).message()), HasSubstr("'body' has 4 outputs, want 3"));
  wrong = kDoubling;
  wrong.replace(wrong.find("captures = 1"), 12, "captures = 4");
  EXPECT_EQ(status(wrong).code(), absl::StatusCode::kInvalidArgument);
  wrong = kDoubling;
  wrong.replace(wrong.find("capture %x : float32[n]"), 23, "capture %x : float64[n]");
  EXPECT_EQ(status(wrong).code(), absl::StatusCode::kInvalidArgument);
}

TEST(LoopTest, ASteadyLoopAllocatesNothing) {
  if (!CountsAllocations()) GTEST_SKIP() << "SKIPPED: sanitizers bring their own malloc";
  // The state alone: results of unknown length are allocated.
  const std::string text = R"(graph "g" {
  input %m : int64[]
  input %s : float32[64, 64]
  input %w : float32[64, 64]
  %last = Loop(%m, _, %s, %w) [captures = 1, body = graph "body" {
    input %i : int64[]
    input %go : bool[]
    input %state : float32[64, 64]
    capture %w : float32[64, 64]
    %p = MatMul(%state, %w)
    %next = Tanh(%p)
    output %go "go"
    output %next "next"
  }]
  output %last "last"
})";
  auto session = Load(text, {{"threads", "1"}});
  ASSERT_TRUE(session.ok()) << session.status();
  auto run = *(*session)->NewRun(0);
  std::int64_t turns = 8;
  Tensor count = *Tensor::Create(DType::kI64, {});
  count.set<std::int64_t>(0, turns);
  ASSERT_TRUE(run->BindInput(0, Value(count)).ok());
  ASSERT_TRUE(run->BindInput(1, Value(testing::RandomTensor({64, 64}, 1))).ok());
  ASSERT_TRUE(run->BindInput(2, Value(testing::RandomTensor({64, 64}, 2))).ok());
  ASSERT_TRUE(run->BindOutput(0, *Tensor::Create(DType::kF32, {64, 64})).ok());
  const auto cost = [&] {
    const std::int64_t before = AllocationCount();
    EXPECT_TRUE(run->Execute({}).ok());
    return AllocationCount() - before;
  };
  cost();
  cost();
  const std::int64_t few = cost();
  count.set<std::int64_t>(0, 800);
  EXPECT_EQ(cost(), few) << "a turn allocates";
  EXPECT_EQ(few, 0);
}

TEST(LoopTest, AnEndlessLoopCanBeCancelled) {
  const std::string text = R"(graph "g" {
  input %x : float32[4]
  const %yes = bool[] {true}
  %last = Loop(_, %yes, %x) [body = graph "body" {
    input %i : int64[]
    input %go : bool[]
    input %state : float32[4]
    %next = Tanh(%state)
    output %go "go"
    output %next "next"
  }]
  output %last "last"
})";
  auto session = Load(text, {});
  ASSERT_TRUE(session.ok()) << session.status();
  auto run = *(*session)->NewRun(0);
  ASSERT_TRUE(run->BindInput(0, Floats({4}, {1, 2, 3, 4})).ok());
  std::atomic<bool> cancel{false};
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancel = true;
  });
  RunParams params;
  params.cancel = &cancel;
  EXPECT_EQ(run->Execute(params).code(), absl::StatusCode::kCancelled);
  later.join();
}

}  // namespace
}  // namespace npurt::session
