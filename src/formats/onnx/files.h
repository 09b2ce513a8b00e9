// Files: the bytes of a model and of its external data, mapped read-only or copied.
//
// A mapping is cheap however large the file is, and its pages are shared with other processes. Who
// does not trust whoever may shorten the file meanwhile (then a read of a mapping is a bus error)
// has it copied. External data lies in the folder of the model: a location is walked folder by
// folder without following symbolic links; a link that stays inside the folder is resolved first.
//
// Thread safety: FileBytes is a value; ExternalFiles is used by one thread.
#ifndef NPURT_FORMATS_ONNX_FILES_H_
#define NPURT_FORMATS_ONNX_FILES_H_

#include <memory>
#include <string>

#include "base/hash_map.h"
#include "absl/strings/string_view.h"
#include "base/status.h"

namespace npurt::formats::onnx {

struct FileBytes {
  absl::string_view bytes;
  std::shared_ptr<const void> owner;  // keeps `bytes`
};

// NOT_FOUND, PERMISSION_DENIED, or RESOURCE_EXHAUSTED for more than `max_bytes`.
absl::StatusOr<FileBytes> OpenFile(const std::string& path, bool map, std::size_t max_bytes);

class ExternalFiles {
 public:
  // `folder` empty: there is none, and every location is refused.
  ExternalFiles(std::string folder, bool map) : folder_(std::move(folder)), map_(map) {}

  // The file at `location`, a relative path with '/' inside the folder. PERMISSION_DENIED if it
  // leads outside, or is no regular file. Opens each file once.
  absl::StatusOr<FileBytes> Open(absl::string_view location);

 private:
  std::string folder_;
  bool map_;
  HashMap<std::string, FileBytes> open_;
};

}  // namespace npurt::formats::onnx

#endif  // NPURT_FORMATS_ONNX_FILES_H_
