// Owners of the C handles the command uses, and how an npurt_error becomes a Status.
//
// Written on npurt.h alone: the command is also the proof that the C interface is enough.
#ifndef NPURT_CLI_HANDLES_H_
#define NPURT_CLI_HANDLES_H_

#include <npurt/npurt.h>

#include <string>
#include <utility>

#include "cli/status.h"

namespace npurt::cli {

// Owns one reference; only moves.
template <typename T, void (*Release)(T*)>
class Owned {
 public:
  Owned() = default;
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() { Release(handle_); }

  T* get() const { return handle_; }
  // For a C out-parameter; what was owned before is released.
  T** out() {
    Release(std::exchange(handle_, nullptr));
    return &handle_;
  }

 private:
  T* handle_ = nullptr;
};

using OwnedError = Owned<npurt_error, npurt_error_release>;
using OwnedText = Owned<npurt_text, npurt_text_release>;
using OwnedOptions = Owned<npurt_options, npurt_options_release>;
using OwnedValue = Owned<npurt_value, npurt_value_release>;
using OwnedModel = Owned<npurt_model, npurt_model_release>;
using OwnedSession = Owned<npurt_session, npurt_session_release>;
using OwnedRun = Owned<npurt_run, npurt_run_release>;

// The message of an error with its causes; "" for null.
inline std::string ErrorText(const npurt_error* error) {
  std::string text;
  for (; error != nullptr; error = npurt_error_cause(error)) {
    if (!text.empty()) text += "\n  because: ";
    text += npurt_error_message(error);
  }
  return text;
}

// What the user reads for a failed call: the status by name and the library's own words.
// `exit_code` is that of the phase; a bug of the library has its own.
inline Status FromLibrary(npurt_status status, const OwnedError& error, int exit_code,
                          const std::string& what, const std::string& remedy = "") {
  if (status == NPURT_OK) return Status();
  const std::string text = ErrorText(error.get());
  const std::string message =
      what + ": " + (text.empty() ? "no details" : text) + " (" + npurt_status_name(status) + ")";
  if (status == NPURT_INTERNAL)
    return Status(kExitBug, message, "This is a bug of libnpurt: please report it with the model.");
  return Status(exit_code, message, remedy);
}

inline std::string TakeText(const OwnedText& text) {
  return text.get() == nullptr
             ? std::string()
             : std::string(npurt_text_data(text.get()), npurt_text_size(text.get()));
}

}  // namespace npurt::cli

#endif  // NPURT_CLI_HANDLES_H_
