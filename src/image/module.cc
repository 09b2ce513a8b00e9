// The library's side of codec.h: finds and loads the module, once a process.
#include <dlfcn.h>

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "image/image.h"

namespace npurt::image {
namespace {

// Whatever lies in this object, whose file dladdr names.
constexpr char kHere = 0;

// Beside the library (or the program, if it is linked into one), or wherever the loader looks. It
// stays loaded, as the library does.
void* OpenModule() {
  Dl_info self;
  if (dladdr(&kHere, &self) != 0 && self.dli_fname != nullptr) {
    const std::string path = self.dli_fname;
    const std::size_t slash = path.rfind('/');
    if (slash != std::string::npos)
      if (void* module = dlopen(absl::StrCat(path.substr(0, slash + 1), kModule).c_str(),
                                RTLD_NOW | RTLD_LOCAL))
        return module;
  }
  return dlopen(kModule, RTLD_NOW | RTLD_LOCAL);
}

absl::StatusOr<Decode> FindDecode() {
  static constinit std::atomic<Decode> found{nullptr};
  if (const Decode decode = found.load(std::memory_order_acquire)) return decode;
  void* module = OpenModule();
  if (module == nullptr)
    return absl::UnimplementedError(
        absl::StrCat("pictures of this format need ", kModule,
                     " beside the library (build with -Dimage_decoders=enabled)"));
  const auto decode = reinterpret_cast<Decode>(dlsym(module, kDecode));
  if (decode == nullptr)
    return absl::FailedPreconditionError(
        absl::StrCat(kModule, " is of another version, it lacks ", kDecode));
  found.store(decode, std::memory_order_release);
  return decode;
}

struct Receiver {
  std::uint64_t max_pixels;
  Picture picture = {};
  absl::Status status = absl::OkStatus();
};

std::uint8_t* Allocate(void* user, std::uint64_t width, std::uint64_t height) {
  auto* receiver = static_cast<Receiver*>(user);
  if (width > 0 && height > receiver->max_pixels / width) {
    receiver->status = absl::InvalidArgumentError(
        absl::StrCat("a picture of ", width, " x ", height, " pixels, want ", receiver->max_pixels,
                     " at most in a file of this size"));
    return nullptr;
  }
  absl::StatusOr<Picture> picture = NewPicture(width, height);
  if (!picture.ok()) {
    receiver->status = picture.status();
    return nullptr;
  }
  receiver->picture = *std::move(picture);
  return receiver->picture.rgb.get();
}

void Fail(void* user, const char* why) {
  static_cast<Receiver*>(user)->status =
      absl::InvalidArgumentError(absl::StrCat("the picture is damaged: ", why));
}

}  // namespace

absl::StatusOr<Picture> DecodeByModule(Format format, Bytes file) {
  NPURT_ASSIGN_OR_RETURN(const Decode decode, FindDecode());
  Receiver receiver = {
      file.size() < kMaxPixels / kMaxPixelsPerByte ? file.size() * kMaxPixelsPerByte : kMaxPixels};
  const Sink sink = {&receiver, receiver.max_pixels, Allocate, Fail};
  if (!decode(format, file.data(), file.size(), &sink))
    return receiver.status.ok() ? absl::InvalidArgumentError("the picture is damaged")
                                : receiver.status;
  return std::move(receiver.picture);
}

}  // namespace npurt::image
