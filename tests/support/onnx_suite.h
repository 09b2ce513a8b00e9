// The folders of the ONNX backend suite: each holds model.onnx and
// test_data_set_<i>/{input,output}_<j>.pb.
//
// The suite is not part of the project. NPURT_ONNX_SUITE names the folder it was unpacked into
// (with node/, simple/ … below); without it the list is empty and tests skip aloud.
//
// Thread safety: pure functions.
#ifndef NPURT_TESTS_SUPPORT_ONNX_SUITE_H_
#define NPURT_TESTS_SUPPORT_ONNX_SUITE_H_

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace npurt::tests {

inline std::vector<std::string> OnnxSuiteFolders() {
  std::vector<std::string> folders;
  const char* const root = std::getenv("NPURT_ONNX_SUITE");
  if (root == nullptr) return folders;
  std::error_code error;
  using Walk = std::filesystem::recursive_directory_iterator;
  for (Walk at(root, error), end; at != end; at.increment(error)) {
    if (error) break;
    if (at->path().filename() == "model.onnx") folders.push_back(at->path().parent_path().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace npurt::tests

#endif  // NPURT_TESTS_SUPPORT_ONNX_SUITE_H_
