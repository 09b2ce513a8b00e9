// Inputs whose memory a run may overwrite: what it saves, and that nothing else changes.
#include <gtest/gtest.h>

#include <cstring>

#include "session/report.h"
#include "session/run.h"
#include "session/session.h"
#include "support/graphs.h"

namespace npurt::session {
namespace {

using npurt::testing::GraphBuilder;
using npurt::testing::RandomTensor;

constexpr std::int64_t kSide = 64;
constexpr std::size_t kBytes = kSide * kSide * sizeof(float);

// A session of one thread with this graph.
struct Fixture {
  explicit Fixture(std::shared_ptr<graph::Graph> graph) {
    options::Options options;
    EXPECT_TRUE(options.Set("threads", "1").ok());
    session = *Session::Create(options, {});
    const auto added = session->AddGraph(std::move(graph), "", {});
    EXPECT_TRUE(added.status().ok()) << added.status();
    run = *session->NewRun(0);
  }

  // The outputs with these inputs, of which some are donated.
  std::vector<Tensor> Execute(const std::vector<Tensor>& inputs, const std::vector<bool>& donated) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      EXPECT_TRUE(run->BindInput(i, Value(inputs[i]), donated[i]).ok());
    const absl::Status status = run->Execute({});
    EXPECT_TRUE(status.ok()) << status;
    std::vector<Tensor> outputs;
    for (int o = 0; status.ok() && o < run->output_count(); ++o)
      outputs.push_back(run->Output(static_cast<std::size_t>(o))->tensor());
    return outputs;
  }
  std::size_t Reported(const std::string& what) {
    const std::string report = MemoryJson(*session, **session->GraphAt(0));
    const std::size_t at = report.find("\"" + what + "\":");
    EXPECT_NE(at, std::string::npos) << report;
    return static_cast<std::size_t>(std::stoull(report.substr(at + what.size() + 3)));
  }

  std::shared_ptr<Session> session;
  std::unique_ptr<Run> run;
};

Tensor CopyOf(const Tensor& tensor) {
  Tensor copy = *Tensor::Create(tensor.dtype(), tensor.dims());
  std::memcpy(copy.mutable_data(), tensor.data(), tensor.bytes());
  return copy;
}

bool Same(const Tensor& a, const Tensor& b) {
  return a.dims() == b.dims() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

// y = x w1 w2 w3, of which two results lie in the arena.
std::shared_ptr<graph::Graph> Products() {
  GraphBuilder b;
  auto value = b.Input("x", DType::kF32, {kSide, kSide});
  for (int i = 1; i <= 3; ++i) {
    const std::string name = std::to_string(i);
    value = b.Node("MatMul", {value, b.Random("w" + name, {kSide, kSide}, i)}, "p" + name);
  }
  b.Output(value);
  return b.Take();
}

TEST(DonationTest, ALaterValueLiesInTheInputAndTheArenaIsSmallerByIt) {
  Fixture f(Products());
  const Tensor x = RandomTensor({kSide, kSide}, 9);
  const Tensor want = f.Execute({x}, {false})[0];
  EXPECT_EQ(f.Reported("donated_bytes"), 0u);
  const std::size_t arena = f.Reported("arena_bytes");
  const Tensor given = CopyOf(x);
  const Tensor got = f.Execute({given}, {true})[0];
  EXPECT_EQ(f.Reported("donated_bytes"), kBytes);
  EXPECT_EQ(f.Reported("arena_bytes"), arena - kBytes);
  EXPECT_TRUE(Same(got, want));
  EXPECT_FALSE(Same(given, x)) << "the product of the product lies there now";
}

TEST(DonationTest, TheLastReaderOfAnInputWritesOverItWhereItMay) {
  GraphBuilder b;
  const auto soft = b.Node("Softmax", {b.Input("x", DType::kF32, {kSide, kSide})}, "soft");
  b.Output(b.Node("MatMul", {soft, b.Random("w", {kSide, kSide}, 1)}, "y"));
  Fixture f(b.Take());
  const Tensor x = RandomTensor({kSide, kSide}, 9);
  const Tensor want = f.Execute({x}, {false})[0];
  const std::size_t arena = f.Reported("arena_bytes");
  const Tensor given = CopyOf(x);
  EXPECT_TRUE(Same(f.Execute({given}, {true})[0], want));
  EXPECT_EQ(f.Reported("donated_bytes"), kBytes);
  EXPECT_EQ(f.Reported("arena_bytes"), arena - kBytes);
  float sum = 0;
  for (std::int64_t i = 0; i < kSide; ++i) sum += given.at<float>(i);
  EXPECT_NEAR(sum, 1, 1e-5) << "a row of the softmax";
}

TEST(DonationTest, AnInputIsAsLargeAsItIs) {
  // The input has half of the bytes of each result.
  GraphBuilder b;
  auto value = b.Input("x", DType::kF32, {kSide, kSide / 2});
  value = b.Node("MatMul", {value, b.Random("w1", {kSide / 2, kSide}, 1)}, "p1");
  value = b.Node("MatMul", {value, b.Random("w2", {kSide, kSide}, 2)}, "p2");
  b.Output(b.Node("MatMul", {value, b.Random("w3", {kSide, kSide}, 3)}, "p3"));
  Fixture f(b.Take());
  const Tensor x = RandomTensor({kSide, kSide / 2}, 9);
  const Tensor want = f.Execute({x}, {false})[0];
  const Tensor given = CopyOf(x);
  EXPECT_TRUE(Same(f.Execute({given}, {true})[0], want));
  EXPECT_EQ(f.Reported("donated_bytes"), 0u);
  EXPECT_TRUE(Same(given, x));
}

TEST(DonationTest, AnInputThatIsAlsoAnOutputOrIsReadLateKeepsItsElementsUntilThen) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {kSide, kSide});
  const auto p = b.Node("MatMul", {x, b.Random("w1", {kSide, kSide}, 1)}, "p");
  const auto q = b.Node("MatMul", {p, b.Random("w2", {kSide, kSide}, 2)}, "q");
  const auto r = b.Node("MatMul", {q, x}, "r");
  b.Output(b.Node("Softmax", {r}, "y"));
  b.Output(x);
  Attributes rows;
  rows.Set("axis", std::int64_t{0});
  b.Output(b.Node("Flatten", {x}, "flat", rows));
  Fixture f(b.Take());
  const Tensor given = RandomTensor({kSide, kSide}, 9);
  const std::vector<Tensor> want = f.Execute({CopyOf(given)}, {false});
  const std::vector<Tensor> got = f.Execute({CopyOf(given)}, {true});
  ASSERT_EQ(got.size(), 3u);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(Same(got[i], want[i])) << i;
  EXPECT_TRUE(Same(got[1], given));
}

std::shared_ptr<graph::Graph> TwoInputs() {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {kSide, kSide});
  const auto z = b.Input("z", DType::kF32, {kSide, kSide});
  const auto p = b.Node("MatMul", {x, b.Random("w1", {kSide, kSide}, 1)}, "p");
  const auto q = b.Node("MatMul", {p, b.Random("w2", {kSide, kSide}, 2)}, "q");
  b.Output(b.Node("MatMul", {q, z}, "y"));
  return b.Take();
}

TEST(DonationTest, MemoryThatIsNotTheInputsAloneIsLeftAlone) {
  Fixture f(TwoInputs());
  const Tensor x = RandomTensor({kSide, kSide}, 9), copy = CopyOf(x);
  const Tensor want = f.Execute({x, copy}, {false, false})[0];
  // Bound twice.
  for (const std::vector<bool>& donated :
       {std::vector<bool>{true, false}, {false, true}, {true, true}}) {
    EXPECT_TRUE(Same(f.Execute({x, x}, donated)[0], want));
    EXPECT_EQ(f.Reported("donated_bytes"), 0u);
    EXPECT_TRUE(Same(x, copy));
  }
  // Not aligned as operators want it.
  std::vector<char> bytes(kBytes + 128);
  const std::size_t skip = 64 - reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 + 4;
  std::memcpy(bytes.data() + skip, x.data(), kBytes);
  const Tensor odd = Tensor::Borrow(DType::kF32, x.dims(), bytes.data() + skip, nullptr);
  EXPECT_TRUE(Same(f.Execute({odd, copy}, {true, false})[0], want));
  EXPECT_EQ(f.Reported("donated_bytes"), 0u);
  EXPECT_TRUE(Same(odd, x));
}

TEST(DonationTest, APlanIsForASetOfDonatedInputs) {
  Fixture f(TwoInputs());
  const Tensor x = RandomTensor({kSide, kSide}, 9), z = RandomTensor({kSide, kSide}, 10);
  const Tensor want = f.Execute({x, z}, {false, false})[0];
  for (int round = 0; round < 2; ++round)
    for (int set = 0; set < 4; ++set) {
      const std::vector<bool> donated = {(set & 1) != 0, (set & 2) != 0};
      EXPECT_TRUE(Same(f.Execute({CopyOf(x), CopyOf(z)}, donated)[0], want)) << set;
    }
  EXPECT_EQ((*f.session->GraphAt(0))->plans->stats().made, 4);
  // A run that is bound anew without the flag overwrites nothing.
  const Tensor kept = CopyOf(x);
  f.Execute({kept, z}, {true, false});
  std::memcpy(const_cast<void*>(kept.data()), x.data(), kBytes);
  EXPECT_TRUE(Same(f.Execute({kept, z}, {false, false})[0], want));
  EXPECT_TRUE(Same(kept, x));
}

TEST(DonationTest, AnArenaOfTheCallerMayBeSmallerByTheDonatedBytes) {
  Fixture f(Products());
  const Tensor x = RandomTensor({kSide, kSide}, 9);
  const Tensor want = f.Execute({x}, {false})[0];
  std::vector<char> arena(f.Reported("arena_bytes") - kBytes + 64);
  f.run->SetArena(arena.data(), arena.size());
  EXPECT_EQ(f.run->Execute({}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Same(f.Execute({CopyOf(x)}, {true})[0], want));
}

TEST(DonationTest, StreamsReadTheInputBeforeItIsOverwritten) {
  const auto make = [] {
    GraphBuilder b;
    const auto x = b.Input("x", DType::kF32, {kSide, kSide});
    auto one = x, two = x;
    for (int i = 0; i < 3; ++i) {
      const std::string n = std::to_string(i);
      one = b.Node("MatMul", {one, b.Random("v" + n, {kSide, kSide}, i)}, "one" + n);
      two = b.Node("MatMul", {b.Random("w" + n, {kSide, kSide}, 7 + i), two}, "two" + n);
    }
    b.Output(b.Node("Add", {one, two}, "y"));
    return b.Take();
  };
  const Tensor x = RandomTensor({kSide, kSide}, 9);
  for (const char* streams : {"1", "2", "3"}) {
    options::Options options;
    ASSERT_TRUE(options.Set("inter_op_streams", streams).ok());
    const auto session = *Session::Create(options, {});
    ASSERT_TRUE(session->AddGraph(make(), "", {}).ok());
    const auto run = *session->NewRun(0);
    Tensor want;
    for (bool donate : {false, true}) {
      ASSERT_TRUE(run->BindInput(0, Value(CopyOf(x)), donate).ok());
      ASSERT_TRUE(run->Execute({}).ok());
      const Tensor got = run->Output(0)->tensor();
      EXPECT_TRUE(!donate || Same(got, want)) << streams;
      want = got;
    }
  }
}

}  // namespace
}  // namespace npurt::session
