#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "graph/text.h"
#include "session/run.h"
#include "session/session.h"
#include "support/count_allocations.h"
#include "support/graphs.h"

namespace npurt::session {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = counter; counter = counter + x
constexpr char kCounter[] = R"(graph "g" {
  input %x : float32[2]
  variable %counter : float32[2] = float32[2] {1.0, 10.0}
  %y = ReadVariable(%counter)
  AssignAdd(%counter, %x)
  %z = Add(%y, %y)
  output %z "z"
  output %y "y"
})";

std::shared_ptr<Session> NewSession(
    const std::vector<std::pair<std::string, std::string>>& settings) {
  options::Options options;
  for (const auto& [name, value] : settings) EXPECT_TRUE(options.Set(name, value).ok());
  auto session = Session::Create(options, {});
  EXPECT_TRUE(session.ok()) << session.status();
  return *session;
}

absl::Status AddText(Session& session, const std::string& text) {
  NPURT_ASSIGN_OR_RETURN(auto graph, graph::FromText(text));
  return session.AddGraph(std::shared_ptr<graph::Graph>(std::move(graph)), "", {}).status();
}

std::vector<float> Values(const Tensor& tensor) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) values.push_back(tensor.at<float>(i));
  return values;
}

Value Floats(std::vector<float> values) {
  return Value(*Tensor::FromSpan<float>({static_cast<std::int64_t>(values.size())}, values));
}

class VariableTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<Session> session_ =
      NewSession({{"device", GetParam()}, {"inter_op_streams", "0"}});
};

INSTANTIATE_TEST_SUITE_P(Devices, VariableTest, ::testing::Values("cpu", "reference"));

TEST_P(VariableTest, ARunReadsWhatTheRunBeforeAssigned) {
  ASSERT_TRUE(AddText(*session_, kCounter).ok());
  auto run = *session_->NewRun(0);
  ASSERT_TRUE(run->BindInput(0, Floats({1, 2})).ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(run->Execute({}).ok());
    EXPECT_THAT(Values(run->Output(1)->tensor()), ElementsAre(1 + i, 10 + 2 * i));
    EXPECT_THAT(Values(run->Output(0)->tensor()), ElementsAre(2 + 2 * i, 20 + 4 * i));
  }
  EXPECT_THAT(Values(*(*session_->FindVariable("counter"))->Get()), ElementsAre(4, 16));
  ASSERT_TRUE((*session_->FindVariable("counter"))->Set(Floats({7, 8}).tensor()).ok());
  ASSERT_TRUE(run->Execute({}).ok());
  EXPECT_THAT(Values(run->Output(1)->tensor()), ElementsAre(7, 8));
}

TEST_P(VariableTest, GraphsOfASessionShareThem) {
  ASSERT_TRUE(AddText(*session_, kCounter).ok());
  ASSERT_TRUE(AddText(*session_, R"(graph "reader" {
  variable %counter : float32[2]
  %y = ReadVariable(%counter)
  output %y "y"
})")
                  .ok());
  auto run = *session_->NewRun(0), reader = *session_->NewRun(1);
  ASSERT_TRUE(run->BindInput(0, Floats({1, 1})).ok());
  ASSERT_TRUE(run->Execute({}).ok());
  ASSERT_TRUE(reader->Execute({}).ok());
  EXPECT_THAT(Values(reader->Output(0)->tensor()), ElementsAre(2, 11));
  const absl::Status status =
      AddText(*session_, "graph \"other\" {\n  variable %counter : int64[2]\n}");
  EXPECT_THAT(std::string(status.message()), HasSubstr("in another graph"));
}

TEST_P(VariableTest, WhatWasNeverAssignedCannotBeRead) {
  ASSERT_TRUE(AddText(*session_, R"(graph "reader" {
  variable %v : float32[n]
  %y = ReadVariable(%v)
  output %y "y"
})")
                  .ok());
  auto reader = *session_->NewRun(0);
  EXPECT_EQ(reader->Execute({}).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE((*session_->FindVariable("v"))->Set(Floats({7, 8, 9}).tensor()).ok());
  ASSERT_TRUE(reader->Execute({}).ok());
  EXPECT_THAT(Values(reader->Output(0)->tensor()), ElementsAre(7, 8, 9));
}

TEST_P(VariableTest, LoopsAssignWhatTheyCapture) {
  ASSERT_TRUE(AddText(*session_, R"(graph "g" {
  input %m : int64[]
  variable %v : float32[2] = float32[2] {0.0, 0.0}
  const %one = float32[2] {1.0, 2.0}
  Loop(%m, _, %v) [captures = 1, body = graph "body" {
    input %i : int64[]
    input %go : bool[]
    capture %v : resource(float32[2])
    const %one = float32[2] {1.0, 2.0}
    AssignAdd(%v, %one)
    output %go "go"
  }]
  %y = ReadVariable(%v)
  output %y "y"
})")
                  .ok());
  auto run = *session_->NewRun(0);
  ASSERT_TRUE(run->BindInput(0, Value(Tensor::Int64Scalar(5))).ok());
  ASSERT_TRUE(run->Execute({}).ok());
  EXPECT_THAT(Values(run->Output(0)->tensor()), ElementsAre(5, 10));
}

TEST(VariableErrorTest, TypesAndShapesAreChecked) {
  const auto session = NewSession({});
  EXPECT_THAT(std::string(AddText(*session, R"(graph "g" {
  input %x : int64[2]
  variable %v : float32[2]
  Assign(%v, %x)
})")
                              .message()),
              HasSubstr("assigns int64[2] to a variable of type float32[2]"));
  EXPECT_THAT(std::string(AddText(*session, R"(graph "g" {
  variable %v : float32[2]
  %y = Relu(%v)
})")
                              .message()),
              HasSubstr("resource"));
  ASSERT_TRUE(AddText(*session, R"(graph "g" {
  input %x : float32[n]
  variable %w : float32[2]
  Assign(%w, %x)
})")
                  .ok());
  auto run = *session->NewRun(0);
  ASSERT_TRUE(run->BindInput(0, Floats({1, 2, 3})).ok());
  EXPECT_THAT(std::string(run->Execute({}).message()), HasSubstr("got shape [3], want float32[2]"));
  EXPECT_EQ(session->FindVariable("nobody").status().code(), absl::StatusCode::kNotFound);
}

TEST(VariableThreadsTest, ConcurrentAddsAllCount) {
  const auto session = NewSession({{"threads", "1"}});
  ASSERT_TRUE(AddText(*session, kCounter).ok());
  constexpr int kThreads = 4, kRuns = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      auto run = *session->NewRun(0);
      ASSERT_TRUE(run->BindInput(0, Floats({1, 2})).ok());
      for (int i = 0; i < kRuns; ++i) {
        ASSERT_TRUE(run->Execute({}).ok());
        const std::vector<float> seen = Values(run->Output(1)->tensor());
        ASSERT_EQ((seen[0] - 1) * 2, seen[1] - 10);  // never half of an update
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Values(*(*session->FindVariable("counter"))->Get()),
              ElementsAre(1 + kThreads * kRuns, 10 + 2 * kThreads * kRuns));
}

TEST(VariableAllocationTest, ASteadyUpdateAllocatesNothing) {
  if (!testing::CountsAllocations()) GTEST_SKIP() << "SKIPPED: sanitizers bring their own malloc";
  const auto session = NewSession({{"threads", "1"}});
  ASSERT_TRUE(AddText(*session, kCounter).ok());
  auto run = *session->NewRun(0);
  ASSERT_TRUE(run->BindInput(0, Floats({1, 2})).ok());
  ASSERT_TRUE(run->BindOutput(0, *Tensor::Create(DType::kF32, {2})).ok());
  ASSERT_TRUE(run->BindOutput(1, *Tensor::Create(DType::kF32, {2})).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(run->Execute({}).ok());
  const std::int64_t before = testing::AllocationCount();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(run->Execute({}).ok());
  EXPECT_EQ(testing::AllocationCount(), before);
}

}  // namespace
}  // namespace npurt::session
