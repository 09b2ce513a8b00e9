// Status: how a piece of the command ended: an exit code, what went wrong, and what to do about it.
//
// The exit codes are part of the command's interface (`npurt --help` lists them).
#ifndef NPURT_CLI_STATUS_H_
#define NPURT_CLI_STATUS_H_

#include <string>
#include <utility>

namespace npurt::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;   // the job ran and its answer is no: tests failed, values differ
inline constexpr int kExitUsage = 2;    // wrong arguments
inline constexpr int kExitRefused = 3;  // a model, option or file that cannot be used
inline constexpr int kExitRun = 4;      // the run itself failed
inline constexpr int kExitBug = 5;      // the library reports a bug of its own (INTERNAL)

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(int exit_code, std::string message, std::string remedy = "")
      : exit_code_(exit_code), message_(std::move(message)), remedy_(std::move(remedy)) {}

  bool ok() const { return exit_code_ == kExitOk; }
  int exit_code() const { return exit_code_; }
  const std::string& message() const { return message_; }
  const std::string& remedy() const { return remedy_; }  // "" where there is none

 private:
  int exit_code_ = kExitOk;
  std::string message_;
  std::string remedy_;
};

inline Status Usage(std::string message, std::string remedy = "") {
  return Status(kExitUsage, std::move(message), std::move(remedy));
}
inline Status Refused(std::string message, std::string remedy = "") {
  return Status(kExitRefused, std::move(message), std::move(remedy));
}

#define NPURT_CLI_TRY(expression)                          \
  do {                                                     \
    ::npurt::cli::Status npurt_cli_status_ = (expression); \
    if (!npurt_cli_status_.ok()) return npurt_cli_status_; \
  } while (false)

}  // namespace npurt::cli

#endif  // NPURT_CLI_STATUS_H_
