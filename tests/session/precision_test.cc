// Precision modes in numbers: what is rounded, what is not, on both devices.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include <nlohmann/json.hpp>

#include "graph/text.h"
#include "session/report.h"
#include "session/run.h"
#include "session/session.h"

namespace npurt::session {
namespace {

constexpr float kTiny = 1.0f / 4096;  // a float16, and a bfloat16; 1 + kTiny is neither

std::shared_ptr<Session> NewSession(options::Profile profile, const std::string& text) {
  options::Options options(profile);
  const absl::Status set = options.SetText(text);
  EXPECT_TRUE(set.ok()) << set;
  auto session = Session::Create(options, {});
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *session : nullptr;
}

// Output 0 of a graph whose first input gets `x`, and the second, if there is one, true.
float Result(const std::string& graph_text, std::vector<float> x, const std::string& option_text,
             options::Profile profile = options::Profile::kNative) {
  auto graph = graph::FromText(graph_text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  const auto session = NewSession(profile, option_text);
  if (!graph.ok() || session == nullptr) return 0;
  const std::size_t inputs = (*graph)->inputs().size();
  const auto added = session->AddGraph(*std::move(graph), "", {});
  EXPECT_TRUE(added.ok()) << added.status();
  if (!added.ok()) return 0;
  auto run = session->NewRun(*added);
  const std::int64_t count = static_cast<std::int64_t>(x.size());
  EXPECT_TRUE((*run)->BindInput(0, Value(*Tensor::FromSpan<float>({1, count}, x))).ok());
  if (inputs > 1) {
    Tensor yes = *Tensor::Create(DType::kBool, {});
    yes.set(0, true);
    EXPECT_TRUE((*run)->BindInput(1, Value(yes)).ok());
  }
  const absl::Status status = (*run)->Execute({});
  EXPECT_TRUE(status.ok()) << status;
  const auto value = (*run)->Output(0);
  EXPECT_EQ(value->tensor().dtype(), DType::kF32);
  return value->tensor().at<float>(0);
}

constexpr const char* kSum = R"(graph "g" {
  input %x : float32[1, 1]
  const %c = float32[1] {0.000244140625}
  %y = Add(%x, %c)
  output %y "y"
})";

TEST(PrecisionModesTest, AChosenTypeIsRoundedTo) {
  for (const char* device : {"device=cpu\n", "device=reference\n"}) {
    const auto sum = [&](const std::string& mode) { return Result(kSum, {1}, device + mode); };
    EXPECT_EQ(sum(""), 1 + kTiny) << device;
    EXPECT_EQ(sum("precision_mode_v2=fp16"), 1) << device;
    EXPECT_EQ(sum("precision_mode=force_fp32"), 1 + kTiny) << device;
    // Gray, behind an input.
    EXPECT_EQ(sum("precision_mode_v2=mixed_float16"), 1 + kTiny) << device;
  }
}

TEST(PrecisionModesTest, TheDefaultsOfTheProfilesCount) {
  EXPECT_EQ(Result(kSum, {1}, "graph_run_mode=0", options::Profile::kSession), 1);
  EXPECT_EQ(Result(kSum, {1}, "", options::Profile::kSession), 1 + kTiny);
  EXPECT_EQ(Result(kSum, {1}, "", options::Profile::kRunConfig), 1 + kTiny);
}

std::string Product(int columns) {
  return "graph \"g\" {\n  input %x : float32[1, " + std::to_string(columns) +
         "]\n  %t = Transpose(%x)\n  %y = MatMul(%x, %t)\n  output %y \"y\"\n}";
}

TEST(PrecisionModesTest, MatrixOperatorsSumInFloat32) {
  // In float16 the sum would stop at 2048.
  for (const char* device : {"device=cpu\n", "device=reference\n"})
    for (const char* mode : {"fp16", "mixed_float16", "mixed_bfloat16"})
      EXPECT_EQ(Result(Product(4096), std::vector<float>(4096, 1),
                       std::string(device) + "precision_mode_v2=" + mode),
                4096)
          << device << mode;
}

TEST(PrecisionModesTest, CubeModeRoundsWhatGoesInAndNotWhatComesOut) {
  // 1 and 1/64: the sum of squares is 1 + 1/4096; 1 + 1/4096 as an input is 1.
  for (const char* device : {"device=cpu\n", "device=reference\n"}) {
    const std::string mode = std::string(device) + "precision_mode_v2=cube_fp16in_fp32out";
    EXPECT_EQ(Result(Product(2), {1, 1.0f / 64}, mode), 1 + kTiny) << device;
    EXPECT_EQ(Result(Product(1), {1 + kTiny}, mode), 1) << device;
  }
}

constexpr const char* kBranch = R"(graph "g" {
  input %x : float32[1, 1]
  input %c : bool[]
  %y = If(%c, %x) [captures = 1, else_branch = graph "e" {
    capture %x : float32[1, 1]
    %a = Relu(%x)
    output %a "a"
  }, then_branch = graph "t" {
    capture %x : float32[1, 1]
    const %k = float32[1] {0.000244140625}
    %b = Add(%x, %k) name "inside"
    output %b "b"
  }] name "if"
  output %y "y"
})";

TEST(PrecisionModesTest, BranchesAreComputedInTheModeToo) {
  EXPECT_EQ(Result(kBranch, {1}, ""), 1 + kTiny);
  EXPECT_EQ(Result(kBranch, {1}, "precision_mode_v2=fp16"), 1);
}

TEST(PrecisionModesTest, TheReportTellsOfEveryNode) {
  for (const char* mode : {"origin", "fp16"}) {
    const auto session =
        NewSession(options::Profile::kNative, std::string("precision_mode_v2=") + mode);
    const auto added = session->AddGraph(*graph::FromText(kBranch), "", {});
    ASSERT_TRUE(added.ok()) << added.status();
    const auto json = nlohmann::json::parse(
        PlanJson(**session->GraphAt(*added), session->precision()), nullptr, false);
    const auto& precision = json["precision"];
    EXPECT_EQ(precision["option"], std::string("precision_mode_v2=") + mode);
    const auto found = std::find_if(precision["nodes"].begin(), precision["nodes"].end(),
                                    [](const auto& node) { return node["name"] == "inside"; });
    ASSERT_NE(found, precision["nodes"].end());
    const bool half = std::string(mode) == "fp16";
    EXPECT_EQ((*found)["graph"], "if/then_branch");
    EXPECT_EQ((*found)["list"], "gray");
    EXPECT_EQ((*found)["rule"], half ? "forced to float16" : "origin: its own types");
    EXPECT_EQ((*found)["outputs"][0]["original"], "float32");
    EXPECT_EQ((*found)["outputs"][0]["chosen"], half ? "float16" : "float32");
    EXPECT_EQ(precision["casts"].empty(), !half);
  }
}

TEST(PrecisionModesTest, FilesThatNameNothingAreToldOf) {
  const std::string path = ::testing::TempDir() + "npurt_custom_" + std::to_string(getpid());
  std::ofstream(path) << "nobody::InputDtype:float16,OutputDtype:float16\n"
                         "inside::InputDtype:float32,OutputDtype:float32\n"
                         "OpType::Relu:InputDtype:float16,OutputDtype:float16\n"
                         "OpType::Sqrt:InputDtype:float16,OutputDtype:float16\n";
  const auto session = NewSession(options::Profile::kNative,
                                  "precision_mode_v2=mixed_float16\ncustomize_dtypes=" + path);
  std::remove(path.c_str());
  const auto added = session->AddGraph(*graph::FromText(kBranch), "", {});
  ASSERT_TRUE(added.ok()) << added.status();
  const auto json = nlohmann::json::parse(
      PlanJson(**session->GraphAt(*added), session->precision()), nullptr, false);
  EXPECT_EQ(json["precision"]["warnings"],
            (std::vector<std::string>{"customize_dtypes: the graph has no node nobody",
                                      "customize_dtypes: the graph has no operator Sqrt"}));
}

}  // namespace
}  // namespace npurt::session
