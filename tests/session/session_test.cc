#include "session/session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>

#include "session/run.h"
#include "support/graphs.h"

namespace npurt::session {
namespace {

using npurt::testing::GraphBuilder;
using npurt::testing::RandomTensor;

std::shared_ptr<Session> NewSession(
    std::vector<std::pair<std::string, std::string>> settings = {}) {
  options::Options options;
  for (const auto& [name, value] : settings) {
    const absl::Status status = options.Set(name, value);
    EXPECT_TRUE(status.ok()) << status;
  }
  auto session = Session::Create(options, {});
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *session : nullptr;
}

// y = relu(x * w + b) with a free number of rows.
std::shared_ptr<graph::Graph> Dense() {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {-1, 16});
  const auto product = b.Node("MatMul", {x, b.Random("w", {16, 8}, 1)}, "product");
  const auto sum = b.Node("Add", {product, b.Random("b", {8}, 2)}, "sum");
  b.Output(b.Node("Relu", {sum}, "y"));
  return b.Take();
}

absl::StatusOr<Tensor> RunOnce(const std::shared_ptr<Session>& session, int graph, Tensor x) {
  NPURT_ASSIGN_OR_RETURN(auto run, session->NewRun(graph));
  NPURT_RETURN_IF_ERROR(run->BindInput(0, Value(std::move(x))));
  NPURT_RETURN_IF_ERROR(run->Execute({}));
  NPURT_ASSIGN_OR_RETURN(const Value value, run->Output(0));
  return value.tensor();
}

void ExpectNear(const Tensor& got, const Tensor& want, double bound) {
  ASSERT_EQ(got.dims(), want.dims());
  for (std::int64_t i = 0; i < got.element_count(); ++i)
    ASSERT_NEAR(got.at<float>(i), want.at<float>(i), bound) << "at " << i;
}

TEST(SessionTest, AFileSwitchesRulesOfFusionOff) {
  const std::string path = ::testing::TempDir() + "npurt_switch_" + std::to_string(getpid());
  std::ofstream(path) << "fuse_epilogues:off\n";
  const auto steps = [](const std::shared_ptr<Session>& session) {
    EXPECT_TRUE(session->AddGraph(Dense(), "", {}).ok());
    return (*session->GraphAt(0))->compiled.report.steps_after;
  };
  EXPECT_EQ(steps(NewSession()), 1);
  const auto without = NewSession({{"fusion_switch_file", path}});
  EXPECT_EQ(steps(without), 2) << "the product, and Add with Relu";
  std::remove(path.c_str());
  EXPECT_TRUE(RunOnce(without, 0, RandomTensor({2, 16}, 1)).ok());
  options::Options gone;
  ASSERT_TRUE(gone.Set("fusion_switch_file", path).ok());
  EXPECT_FALSE(Session::Create(gone, {}).ok());
}

TEST(SessionTest, FusedAndReferenceAgree) {
  const auto fast = NewSession(), reference = NewSession({{"device", "reference"}});
  ASSERT_TRUE(fast->AddGraph(Dense(), "", {}).ok());
  ASSERT_TRUE(reference->AddGraph(Dense(), "", {}).ok());
  for (int rows : {1, 2, 7, 33}) {
    auto got = RunOnce(fast, 0, RandomTensor({rows, 16}, rows));
    auto want = RunOnce(reference, 0, RandomTensor({rows, 16}, rows));
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(want.ok()) << want.status();
    ExpectNear(*got, *want, 1e-5);
  }
}

TEST(SessionTest, BiasAndActivationBecomePartOfTheProduct) {
  const auto session = NewSession();
  ASSERT_TRUE(session->AddGraph(Dense(), "", {}).ok());
  const SessionGraph* graph = *session->GraphAt(0);
  EXPECT_EQ(graph->compiled.program->steps.size(), 1u);
  EXPECT_EQ(graph->compiled.program->steps[0].origins.size(), 3u);
}

TEST(SessionTest, KeptValuesAreNotFusedAway) {
  const auto session = NewSession();
  ASSERT_TRUE(session->AddGraph(Dense(), "", {"sum"}).ok());
  auto run = *session->NewRun(0);
  ASSERT_TRUE(run->BindInput(0, Value(RandomTensor({2, 16}, 1))).ok());
  int seen = 0;
  run->SetObserver(
      [&](const std::string& name, const Value& value) {
        EXPECT_EQ(name, "sum");
        seen += value.is_tensor();
        return absl::OkStatus();
      },
      {"sum"});
  ASSERT_TRUE(run->Execute({}).ok());
  EXPECT_EQ(seen, 1);
}

TEST(SessionTest, ObserversLearnThatAValueWasFusedAway) {
  const auto session = NewSession();
  ASSERT_TRUE(session->AddGraph(Dense(), "", {}).ok());
  auto run = *session->NewRun(0);
  ASSERT_TRUE(run->BindInput(0, Value(RandomTensor({2, 16}, 1))).ok());
  int gone = 0;
  run->SetObserver(
      [&](const std::string&, const Value& value) {
        gone += value.kind() == ValueKind::kNone;
        return absl::OkStatus();
      },
      {"sum"});
  ASSERT_TRUE(run->Execute({}).ok());
  EXPECT_EQ(gone, 1);
}

// y = x + noise, twice; the nodes name no seed.
std::shared_ptr<graph::Graph> Noisy() {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {-1});
  const auto noise = b.Node("RandomUniformLike", {x}, "noise");
  const auto more = b.Node("RandomUniformLike", {x}, "more");
  b.Output(b.Node("Concat", {noise, more}, "y", [] {
    Attributes attributes;
    attributes.Set("axis", std::int64_t{0});
    return attributes;
  }()));
  return b.Take();
}

TEST(SessionTest, RandomNumbersDependOnTheSeedTheNodeAndTheNumberOfTheRun) {
  const auto draw = [](const char* seed, int runs) {
    const auto session = NewSession({{"random_seed", seed}, {"threads", runs == 1 ? "1" : "2"}});
    EXPECT_TRUE(session->AddGraph(Noisy(), "", {}).ok());
    std::vector<float> all;
    for (int i = 0; i < runs; ++i) {
      auto y = RunOnce(session, 0, RandomTensor({9001}, 1));  // in several tiles
      EXPECT_TRUE(y.ok()) << y.status();
      for (std::int64_t k = 0; y.ok() && k < y->element_count(); ++k) all.push_back(y->at<float>(k));
    }
    return all;
  };
  const std::vector<float> once = draw("0", 1), twice = draw("0", 2), other = draw("1", 1);
  ASSERT_EQ(twice.size(), 4u * 9001);
  EXPECT_TRUE(std::equal(once.begin(), once.end(), twice.begin())) << "the same seed, other threads";
  EXPECT_NE(once[0], once[9001]) << "two nodes";
  EXPECT_NE(twice[0], twice[2 * 9001]) << "two runs";
  EXPECT_NE(once[0], other[0]) << "two seeds";
}

TEST(SessionTest, PlansAreReusedByShape) {
  const auto session = NewSession();
  ASSERT_TRUE(session->AddGraph(Dense(), "", {}).ok());
  for (int i = 0; i < 3; ++i)
    for (int rows : {1, 2, 3}) ASSERT_TRUE(RunOnce(session, 0, RandomTensor({rows, 16}, 1)).ok());
  const compile::PlanCache::Stats stats = (*session->GraphAt(0))->plans->stats();
  EXPECT_EQ(stats.made, 3);
  EXPECT_EQ(stats.reused, 6);
}

// present = concat(past, x); y = present * present^T: what a decoder does with its cache.
std::shared_ptr<graph::Graph> Decoder() {
  GraphBuilder b;
  const auto past = b.Input("past", DType::kF32, {-1, 16});
  const auto x = b.Input("x", DType::kF32, {1, 16});
  Attributes axis;
  axis.Set("axis", std::int64_t{0});
  const auto present = b.Node("Concat", {past, x}, "present", axis);
  const auto turned = b.Node("Transpose", {present}, "turned");
  const auto scores = b.Node("Softmax", {b.Node("MatMul", {x, turned}, "scores")}, "weights");
  b.Output(b.Node("MatMul", {scores, present}, "y"));
  b.Output(present);
  return b.Take();
}

TEST(SessionTest, AGrowingCacheIsPlacedAnewAHandfulOfTimes) {
  const auto session = NewSession(), reference = NewSession({{"device", "reference"}});
  ASSERT_TRUE(session->AddGraph(Decoder(), "", {}).ok());
  ASSERT_TRUE(reference->AddGraph(Decoder(), "", {}).ok());
  auto run = *session->NewRun(0), check = *reference->NewRun(0);
  Value past(RandomTensor({1, 16}, 1));
  for (int i = 0; i < 200; ++i) {
    const Value x(RandomTensor({1, 16}, 2 + i));
    for (auto* one : {&run, &check}) {
      ASSERT_TRUE((*one)->BindInput(0, past).ok());
      ASSERT_TRUE((*one)->BindInput(1, x).ok());
      ASSERT_TRUE((*one)->Execute({}).ok());
    }
    ExpectNear(run->Output(0)->tensor(), check->Output(0)->tensor(), 1e-5);
    past = *run->Output(1);
  }
  EXPECT_EQ(past.tensor().dims()[0], 201);
  const auto stats = (*session->GraphAt(0))->plans->stats();
  EXPECT_EQ(stats.made, 200);
  EXPECT_LE(stats.layouts, 9);
  // What a run is told to need is what these shapes need.
  const Dims shape = {10, 16}, row = {1, 16};
  const std::vector<absl::Span<const std::int64_t>> shapes = {shape, row};
  const auto needs = session->Memory(0, shapes);
  ASSERT_TRUE(needs.ok()) << needs.status();
  EXPECT_LE(needs->arena_bytes, 4096u);
}

TEST(SessionTest, ThePlanCacheKeepsToItsBytes) {
  const auto session = NewSession({{"plan_cache_bytes", "1"}});
  ASSERT_TRUE(session->AddGraph(Dense(), "", {}).ok());
  for (int rows = 1; rows < 20; ++rows)
    ASSERT_TRUE(RunOnce(session, 0, RandomTensor({rows, 16}, 1)).ok());
  EXPECT_EQ((*session->GraphAt(0))->plans->stats().count, 1u);
}

TEST(SessionTest, BoundOutputsAreWrittenInPlace) {
  const auto session = NewSession();
  ASSERT_TRUE(session->AddGraph(Dense(), "", {}).ok());
  auto run = *session->NewRun(0);
  Tensor out = *Tensor::Create(DType::kF32, {4, 8});
  ASSERT_TRUE(run->BindInput(0, Value(RandomTensor({4, 16}, 3))).ok());
  ASSERT_TRUE(run->BindOutput(0, out).ok());
  ASSERT_TRUE(run->Execute({}).ok());
  ExpectNear(out, *RunOnce(session, 0, RandomTensor({4, 16}, 3)), 0);
  EXPECT_EQ(run->Output(0)->tensor().data(), out.data());
}

TEST(SessionTest, AShapeWithoutElementsMayHaveLargeDimensions) {
  const auto session = NewSession();
  GraphBuilder b;
  constexpr std::int64_t kLarge = std::int64_t{1} << 40;
  b.Output(b.Node("Relu", {b.Input("x", DType::kF32, {-1, kLarge, 0, 3})}, "y"));
  ASSERT_TRUE(session->AddGraph(b.Take(), "", {}).ok());
  const auto y = RunOnce(session, 0, *Tensor::Create(DType::kF32, {kLarge, kLarge, 0, 3}));
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->dims(), (Dims{kLarge, kLarge, 0, 3}));
}

TEST(SessionTest, AWrongShapeIsNamedWithBothShapes) {
  const auto session = NewSession();
  ASSERT_TRUE(session->AddGraph(Dense(), "", {}).ok());
  auto run = *session->NewRun(0);
  const absl::Status status = run->BindInput(0, Value(RandomTensor({4, 15}, 3)));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "input 'x': got shape [4, 15], want [n1, 16]");
}

TEST(SessionTest, AnOutputThatOverlapsAnInputIsRefused) {
  GraphBuilder b;
  b.Output(b.Node("Relu", {b.Input("x", DType::kF32, {8})}, "y"));
  const auto session = NewSession();
  ASSERT_TRUE(session->AddGraph(b.Take(), "", {}).ok());
  auto run = *session->NewRun(0);
  Tensor x = RandomTensor({8}, 1);
  ASSERT_TRUE(run->BindInput(0, Value(x)).ok());
  ASSERT_TRUE(run->BindOutput(0, x).ok());
  EXPECT_EQ(run->Execute({}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(SessionTest, AMissingInputIsNamed) {
  const auto session = NewSession();
  ASSERT_TRUE(session->AddGraph(Dense(), "", {}).ok());
  auto run = *session->NewRun(0);
  const absl::Status status = run->Execute({});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "input 'x' is not bound");
}

TEST(SessionTest, OutputsThatAreInputsOrConstantsAreCopies) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {3});
  const auto c = b.Floats("c", {3}, {1, 2, 3});
  const auto y = b.Node("Relu", {x}, "y");
  for (auto value : {x, c, y, y}) b.Output(value);
  const auto session = NewSession();
  ASSERT_TRUE(session->AddGraph(b.Take(), "", {}).ok());
  auto run = *session->NewRun(0);
  ASSERT_TRUE(run->BindInput(0, Value(*Tensor::FromSpan<float>({3}, {-1.f, 5.f, 6.f}))).ok());
  ASSERT_TRUE(run->Execute({}).ok());
  EXPECT_EQ(run->Output(0)->tensor().at<float>(0), -1);
  EXPECT_EQ(run->Output(1)->tensor().at<float>(2), 3);
  EXPECT_EQ(run->Output(2)->tensor().at<float>(1), 5);
  EXPECT_EQ(run->Output(3)->tensor().at<float>(1), 5);
  EXPECT_NE(run->Output(2)->tensor().data(), run->Output(3)->tensor().data());
}

TEST(SessionTest, DataDependentShapesWork) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {-1});
  const auto where = b.Node("NonZero", {x}, "where");
  const auto flat = b.Node(
      "Reshape", {where, b.Constant("shape", Tensor::Int64s({-1}))}, "flat");
  b.Output(b.Node("Gather", {x, flat}, "y"));
  for (const char* device : {"cpu", "reference"}) {
    const auto session = NewSession({{"device", device}});
    ASSERT_TRUE(session->AddGraph(b.graph().Clone(), "", {}).ok());
    for (int round = 0; round < 2; ++round) {
      auto y = RunOnce(session, 0, *Tensor::FromSpan<float>({5}, {0.f, 3.f, 0.f, 4.f, 5.f}));
      ASSERT_TRUE(y.ok()) << y.status();
      ASSERT_EQ(y->element_count(), 3);
      EXPECT_EQ(y->at<float>(1), 4);
      auto none = RunOnce(session, 0, *Tensor::FromSpan<float>({2}, {0.f, 0.f}));
      ASSERT_TRUE(none.ok()) << none.status();
      EXPECT_EQ(none->element_count(), 0);
    }
  }
}

TEST(SessionTest, ShapeArithmeticIsDoneWhenBinding) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {-1, 4, -2});
  const auto shape = b.Node("Shape", {x}, "shape");
  const auto first =
      b.Node("Gather", {shape, b.Constant("zero", Tensor::Int64s({0}))}, "first");
  Attributes axis;
  axis.Set("axis", std::int64_t{0});
  const auto wanted = b.Node(
      "Concat", {first, b.Constant("rest", Tensor::Int64s({-1}))}, "wanted", axis);
  b.Output(b.Node("Relu", {b.Node("Reshape", {x, wanted}, "flat")}, "y"));
  const auto session = NewSession();
  ASSERT_TRUE(session->AddGraph(b.Take(), "", {}).ok());
  const exec::Program& program = *(*session->GraphAt(0))->compiled.program;
  EXPECT_EQ(program.steps.size(), 2u);
  EXPECT_FALSE(program.steps[0].late);
  auto y = RunOnce(session, 0, RandomTensor({2, 4, 3}, 1));
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->dims(), (Dims{2, 12}));
}

TEST(SessionTest, StreamsGiveTheSameResult) {
  const auto build = [] {
    GraphBuilder b;
    const auto x = b.Input("x", DType::kF32, {-1, 16});
    const auto left = b.Node("MatMul", {x, b.Random("w1", {16, 8}, 1)}, "left");
    const auto right = b.Node("MatMul", {x, b.Random("w2", {16, 8}, 2)}, "right");
    const auto both = b.Node("Mul", {b.Node("Sigmoid", {left}, "gate"), right}, "both");
    b.Output(b.Node("Sub", {both, left}, "y"));
    return b.Take();
  };
  const auto one = NewSession(), many = NewSession({{"inter_op_streams", "3"}});
  ASSERT_TRUE(one->AddGraph(build(), "", {}).ok());
  ASSERT_TRUE(many->AddGraph(build(), "", {}).ok());
  EXPECT_GT((*many->GraphAt(0))->compiled.program->stream_count, 1);
  ExpectNear(*RunOnce(many, 0, RandomTensor({5, 16}, 4)),
             *RunOnce(one, 0, RandomTensor({5, 16}, 4)), 0);
}

TEST(SessionTest, ACancelledRunLeavesTheSessionUsable) {
  const auto session = NewSession();
  ASSERT_TRUE(session->AddGraph(Dense(), "", {}).ok());
  auto run = *session->NewRun(0);
  ASSERT_TRUE(run->BindInput(0, Value(RandomTensor({4, 16}, 3))).ok());
  std::atomic<bool> cancel{true};
  RunParams params;
  params.cancel = &cancel;
  EXPECT_EQ(run->Execute(params).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(run->Output(0).status().code(), absl::StatusCode::kFailedPrecondition);
  params.cancel = nullptr;
  params.deadline_ns = 1;
  EXPECT_EQ(run->Execute(params).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(run->Execute({}).ok());
}

TEST(SessionTest, ClosedSessionsRefuseRuns) {
  const auto session = NewSession();
  ASSERT_TRUE(session->AddGraph(Dense(), "", {}).ok());
  auto run = *session->NewRun(0);
  ASSERT_TRUE(run->BindInput(0, Value(RandomTensor({4, 16}, 3))).ok());
  ASSERT_TRUE(session->Close(0).ok());
  EXPECT_EQ(run->Execute({}).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(SessionTest, AnArenaOfTheCallerIsEnoughWhenItHasTheBytesAskedFor) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {-1, 32});
  Attributes axis;
  axis.Set("axis", std::int64_t{1});
  const auto soft = b.Node("Softmax", {x}, "soft", axis);
  b.Output(b.Node("Softmax", {soft}, "y", axis));
  const auto session = NewSession();
  ASSERT_TRUE(session->AddGraph(b.Take(), "", {}).ok());
  const Dims dims = {7, 32};
  const absl::Span<const std::int64_t> shapes[] = {dims};
  const auto needs = session->Memory(0, shapes);
  ASSERT_TRUE(needs.ok()) << needs.status();
  EXPECT_GT(needs->arena_bytes, 0u);
  std::vector<std::byte> arena(needs->arena_bytes + 64);
  void* aligned = arena.data();
  std::size_t space = arena.size();
  ASSERT_NE(std::align(64, needs->arena_bytes, aligned, space), nullptr);
  auto run = *session->NewRun(0);
  ASSERT_TRUE(run->BindInput(0, Value(RandomTensor({7, 32}, 3))).ok());
  run->SetArena(aligned, needs->arena_bytes);
  EXPECT_TRUE(run->Execute({}).ok());
  run->SetArena(aligned, needs->arena_bytes - 1);
  EXPECT_EQ(run->Execute({}).code(), absl::StatusCode::kResourceExhausted);
}

TEST(SessionTest, ManyRunsAtTheSameTimeEachHaveTheirOwnContext) {
  const auto session = NewSession();
  ASSERT_TRUE(session->AddGraph(Dense(), "", {}).ok());
  std::vector<Tensor> want;
  for (int rows = 1; rows <= 4; ++rows)
    want.push_back(*RunOnce(session, 0, RandomTensor({rows, 16}, rows)));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const int rows = 1 + (t + i) % 4;
        auto got = RunOnce(session, 0, RandomTensor({rows, 16}, rows));
        if (!got.ok() || std::memcmp(got->data(), want[rows - 1].data(), got->bytes()) != 0)
          wrong.fetch_add(1);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace npurt::session
