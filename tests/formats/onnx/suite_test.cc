// Every file of the backend suite is read, or refused for what is not supported; and its graph's
// text reads back.
#include "formats/onnx/reader.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "support/onnx_suite.h"

namespace npurt::formats::onnx {
namespace {

TEST(OnnxSuiteTest, EveryFileIsReadOrRefusedForWhatIsNotSupported) {
  const std::vector<std::string> folders = tests::OnnxSuiteFolders();
  if (folders.empty()) GTEST_SKIP() << "NPURT_ONNX_SUITE names no folder with models";
  for (const std::string& folder : folders) {
    const auto model = ReadModel(folder + "/model.onnx");
    if (!model.ok()) {
      EXPECT_EQ(model.status().code(), absl::StatusCode::kUnimplemented) << model.status();
      continue;
    }
    const std::string text = graph::ToText(*model->graph);
    const auto parsed = graph::FromText(text);
    ASSERT_TRUE(parsed.ok()) << folder << ": " << parsed.status();
    EXPECT_EQ(graph::ToText(**parsed), text) << folder;
  }
}

}  // namespace
}  // namespace npurt::formats::onnx
