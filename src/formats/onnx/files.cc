#include "formats/onnx/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/mapping.h"

namespace npurt::formats::onnx {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::Status ErrnoError(int error, absl::string_view path) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(absl::StrCat("'", path, "': there is no such file"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(absl::StrCat("'", path, "': may not be read"));
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::ResourceExhaustedError(
          absl::StrCat("'", path, "': cannot be opened, error ", error));
    default:
      return absl::UnavailableError(absl::StrCat("'", path, "': cannot be read, error ", error));
  }
}

absl::StatusOr<FileBytes> BytesOfFile(int fd, absl::string_view path, bool map,
                                      std::size_t max_bytes) {
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoError(errno, path);
  if (!S_ISREG(info.st_mode))
    return absl::PermissionDeniedError(absl::StrCat("'", path, "': is no regular file"));
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size > max_bytes)
    return absl::ResourceExhaustedError(
        absl::StrCat("'", path, "': has ", size, " bytes, the limit is ", max_bytes));
  FileBytes file;
  if (size == 0) return file;
  if (map) {
    std::shared_ptr<Mapping> mapping = Mapping::Create(fd, size);
    if (mapping == nullptr) return ErrnoError(errno, path);
    file.bytes = absl::string_view(mapping->data(), size);
    file.owner = std::move(mapping);
    return file;
  }
  std::shared_ptr<char> copy(static_cast<char*>(std::malloc(size)), std::free);
  if (copy == nullptr) return absl::ResourceExhaustedError(absl::StrCat("'", path, "': no memory"));
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = read(fd, copy.get() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(errno, path);
    if (got == 0)
      return absl::DataLossError(absl::StrCat("'", path, "': was shortened while it was read"));
    done += static_cast<std::size_t>(got);
  }
  file.bytes = absl::string_view(copy.get(), size);
  file.owner = std::move(copy);
  return file;
}

// The real path of `path`, or "".
std::string RealPath(const std::string& path) {
  char* const real = realpath(path.c_str(), nullptr);
  if (real == nullptr) return "";
  std::string copy = real;
  std::free(real);
  return copy;
}

// Opens `parts` below `folder`; a symbolic link anywhere on the way is ELOOP (or ENOTDIR).
Descriptor OpenBelow(const std::string& folder, const std::vector<std::string>& parts) {
  Descriptor at(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (std::size_t i = 0; i < parts.size() && at.get() >= 0; ++i) {
    // O_NONBLOCK: opening a pipe must not wait for its writer; it is refused afterwards.
    const int flags =
        O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (i + 1 < parts.size() ? O_DIRECTORY : 0);
    const int next = openat(at.get(), parts[i].c_str(), flags);
    const int error = errno;
    at = Descriptor(next);
    errno = error;  // closing the folder may have changed it
  }
  return at;
}

}  // namespace

absl::StatusOr<FileBytes> OpenFile(const std::string& path, bool map, std::size_t max_bytes) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return ErrnoError(errno, path);
  return BytesOfFile(file.get(), path, map, max_bytes);
}

absl::StatusOr<FileBytes> ExternalFiles::Open(absl::string_view location) {
  const std::string name(location);
  const auto found = open_.find(name);
  if (found != open_.end()) return found->second;
  if (folder_.empty())
    return absl::PermissionDeniedError(
        absl::StrCat("external data '", name, "': this model has no folder"));
  const auto refuse = [&name](absl::string_view why) {
    return absl::PermissionDeniedError(absl::StrCat("external data '", name, "': ", why));
  };
  if (name.empty() || name.find('\0') != std::string::npos) return refuse("is no file name");
  if (name[0] == '/') return refuse("is not relative to the model's folder");
  std::vector<std::string> parts;
  for (absl::string_view part : absl::StrSplit(name, '/')) {
    if (part == "..") return refuse("leads out of the model's folder");
    if (!part.empty() && part != ".") parts.emplace_back(part);
  }
  if (parts.empty()) return refuse("is no file name");

  Descriptor file = OpenBelow(folder_, parts);
  if (file.get() < 0 && (errno == ELOOP || errno == ENOTDIR)) {
    const std::string root = RealPath(folder_);
    const std::string real = RealPath(absl::StrCat(folder_, "/", name));
    if (real.empty()) return ErrnoError(ENOENT, absl::StrCat(folder_, "/", name));
    if (root.empty() || !absl::StartsWith(real, root == "/" ? root : absl::StrCat(root, "/")))
      return refuse("is a link that leads out of the model's folder");
    parts = absl::StrSplit(real.substr(root.size()), '/', absl::SkipEmpty());
    file = OpenBelow(root, parts);  // whoever changes a link meanwhile is refused
  }
  if (file.get() < 0) {
    if (errno == ELOOP) return refuse("is a link that leads out of the model's folder");
    return ErrnoError(errno, absl::StrCat(folder_, "/", name));
  }
  NPURT_ASSIGN_OR_RETURN(FileBytes bytes, BytesOfFile(file.get(), name, map_,
                                                      std::numeric_limits<std::size_t>::max()));
  open_.emplace(name, bytes);
  return bytes;
}

}  // namespace npurt::formats::onnx
