// Guard: the one place where a Status or an exception becomes what C sees.
//
// Every function that can fail runs its body in Guard. No exception leaves it: bad_alloc is
// RESOURCE_EXHAUSTED, anything else INTERNAL. Callback structs are taken over by TakeCallback
// before anything else is looked at, so that their destructors run exactly once on every path.
//
// Thread safety: functions without state.
#ifndef NPURT_CAPI_GUARD_H_
#define NPURT_CAPI_GUARD_H_

#include <npurt/npurt.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace npurt::capi {

// A new npurt_error with all that `status` tells; a static one if there is no memory for it.
npurt_error* NewError(const absl::Status& status) noexcept;
npurt_status ToC(absl::StatusCode code);
// A callback's answer; numbers that are no status are UNKNOWN.
absl::Status FromC(npurt_status status, absl::string_view message);

// Turns what happened into a status and, where wanted, an error object.
npurt_status Fail(const absl::Status& status, npurt_error** error) noexcept;
npurt_status FailNow(npurt_error** error) noexcept;  // in a catch block

template <typename Body>
npurt_status Guard(npurt_error** error, Body&& body) noexcept {
  try {
    const absl::Status status = body();
    if (__builtin_expect(status.ok(), 1)) return NPURT_OK;
    return Fail(status, error);
  } catch (...) {
    return FailNow(error);
  }
}

// For functions whose only failure is a wrong argument: 0 then.
template <typename T, typename Body>
T Quietly(T otherwise, Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    return otherwise;
  }
}

// INVALID_ARGUMENT unless the pointer is there. Arguments: WantAll("graph", graph, "node", node).
inline absl::Status WantAll() { return absl::OkStatus(); }
template <typename... Rest>
absl::Status WantAll(const char* name, const void* pointer, Rest... rest) {
  if (__builtin_expect(pointer == nullptr, 0))
    return absl::InvalidArgumentError(absl::StrCat(name, " must not be NULL"));
  return WantAll(rest...);
}

// A user's struct in the size that this library knows: a shorter one than the first release had, or
// a longer one with something in the tail, is refused.
template <typename T>
absl::StatusOr<T> CopyIn(const T* user, const char* what) {
  NPURT_RETURN_IF_ERROR(WantAll(what, user));
  std::uint32_t size;
  std::memcpy(&size, user, sizeof size);
  if (size < sizeof(T))
    return absl::InvalidArgumentError(absl::StrCat(what, ": struct_size is ", size, ", want ",
                                                   sizeof(T), " (use npurt_..._init)"));
  const unsigned char* tail = reinterpret_cast<const unsigned char*>(user) + sizeof(T);
  if (std::any_of(tail, tail + (size - sizeof(T)), [](unsigned char c) { return c != 0; }))
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": fields after byte ", sizeof(T), " are not known to this version"));
  T copy;
  std::memcpy(&copy, user, sizeof copy);
  return copy;
}

// CopyIn for structs that may be left out.
template <typename T>
absl::StatusOr<T> CopyInOr(const T* user, const T& otherwise, const char* what) {
  if (user == nullptr) return otherwise;
  return CopyIn(user, what);
}

template <typename T>
absl::Status WantNoFlags(const T& value, const char* what, std::uint32_t known = 0) {
  if ((value.flags & ~known) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": unknown flags ", value.flags & ~known));
}

// Checks a struct that is to be filled, before any work is done.
template <typename T>
absl::Status WantOut(const T* user, const char* what) {
  NPURT_RETURN_IF_ERROR(WantAll(what, user));
  std::uint32_t size;
  std::memcpy(&size, user, sizeof size);
  if (size >= sizeof(T)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": struct_size is ", size, ", want ", sizeof(T), " (use npurt_..._init)"));
}

// Fills it; struct_size and fields of a newer caller stay.
template <typename T>
void CopyOut(T value, T* user) {
  std::memcpy(&value.struct_size, user, sizeof value.struct_size);
  std::memcpy(user, &value, sizeof value);
}

// The user's callbacks in a shared copy; `destroy` runs with the last copy of it, or now, on
// failure.
template <typename T>
absl::StatusOr<std::shared_ptr<const T>> TakeCallback(const T* user, const char* what) {
  NPURT_RETURN_IF_ERROR(WantAll(what, user));
  const auto destroy = [](const T* callback) {
    if (callback->destroy != nullptr) callback->destroy(callback->user_data);
    delete callback;
  };
  T* copy = new (std::nothrow) T;
  if (copy == nullptr) {
    std::uint32_t size;
    std::memcpy(&size, user, sizeof size);
    if (size >= sizeof(T) && user->destroy != nullptr) user->destroy(user->user_data);
    return absl::ResourceExhaustedError(absl::StrCat("no memory for ", what));
  }
  std::uint32_t size;
  std::memcpy(&size, user, sizeof size);
  std::memset(copy, 0, sizeof *copy);
  if (size >= sizeof(T)) std::memcpy(copy, user, sizeof *copy);
  std::shared_ptr<const T> taken(copy, destroy);  // runs `destroy` itself if it throws
  NPURT_RETURN_IF_ERROR(CopyIn(user, what));
  return taken;
}

// Calls the deleter at the end of the scope unless the memory has found an owner.
class PendingDeleter {
 public:
  PendingDeleter(const npurt_deleter* deleter, void* data) : data_(data) {
    if (deleter != nullptr) deleter_ = *deleter;
  }
  ~PendingDeleter() { Run(); }
  PendingDeleter(const PendingDeleter&) = delete;
  PendingDeleter& operator=(const PendingDeleter&) = delete;

  // An owner that runs the deleter; null if there is none to run.
  std::shared_ptr<const void> Take() {
    if (deleter_.release == nullptr) return nullptr;
    const npurt_deleter deleter = std::exchange(deleter_, {});
    return std::shared_ptr<const void>(data_, [deleter](const void* data) {
      deleter.release(deleter.user_data, const_cast<void*>(data));
    });
  }

 private:
  void Run() {
    if (deleter_.release != nullptr) deleter_.release(deleter_.user_data, data_);
  }
  npurt_deleter deleter_ = {};
  void* data_;
};

// The floating-point mode a C program starts with, until the end of the scope: kernels flush
// denormals, callbacks must not notice.
class HostFloatMode {
 public:
#if defined(__x86_64__)
  HostFloatMode() : kernels_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(0x1F80); }
  ~HostFloatMode() { __builtin_ia32_ldmxcsr(kernels_); }

 private:
  unsigned kernels_;
#else
  HostFloatMode() {}
  ~HostFloatMode() {}
#endif
};

// Reference counts, for the structs behind the handles: `std::atomic<int> refs`.
template <typename T>
T* Retain(T* handle) noexcept {
  if (handle != nullptr) handle->refs.fetch_add(1, std::memory_order_relaxed);
  return handle;
}
template <typename T>
void Release(T* handle) noexcept {
  if (handle != nullptr && handle->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete handle;
}

// A reference as a C++ owner.
template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* handle) : handle_(Retain(handle)) {}
  Ref(const Ref& other) : Ref(other.handle_) {}
  Ref(Ref&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Ref() { Release(handle_); }
  T* get() const { return handle_; }
  T* operator->() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  T* handle_ = nullptr;
};

}  // namespace npurt::capi

#endif  // NPURT_CAPI_GUARD_H_
