// Status: absl::Status and StatusOr, with the two macros and the annotation that the library uses.
//
// An error is written once, where the facts are ("A has 64 columns, B has 32 rows"); each layer
// above adds its place with Annotate ("node 'logits': ...") and nothing else.
//
// Thread safety: values.
#ifndef NPURT_BASE_STATUS_H_
#define NPURT_BASE_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npurt {

// `status` with "where: " before its message; keeps the code and all payloads. OK stays OK.
absl::Status Annotate(const absl::Status& status, absl::string_view where);

namespace status_internal {

inline const absl::Status& ToStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& ToStatus(const absl::StatusOr<T>& result) {
  return result.status();
}

}  // namespace status_internal
}  // namespace npurt

#define NPURT_STATUS_CONCAT_(a, b) a##b
#define NPURT_STATUS_CONCAT(a, b) NPURT_STATUS_CONCAT_(a, b)

// Returns from the function if `expr` (Status or StatusOr) is an error.
#define NPURT_RETURN_IF_ERROR(...)                              \
  do {                                                          \
    auto&& npurt_status_ = (__VA_ARGS__);                       \
    if (__builtin_expect(!npurt_status_.ok(), 0))               \
      return ::npurt::status_internal::ToStatus(npurt_status_); \
  } while (false)

// `lhs` is a declaration or an lvalue; the expression is a StatusOr. Commas inside the expression
// are fine; a declaration with a comma (std::pair<A, B>) needs parentheses around neither: use
// auto.
#define NPURT_ASSIGN_OR_RETURN(lhs, ...) \
  NPURT_ASSIGN_OR_RETURN_(NPURT_STATUS_CONCAT(npurt_result_, __LINE__), lhs, __VA_ARGS__)
#define NPURT_ASSIGN_OR_RETURN_(result, lhs, ...)                           \
  auto result = (__VA_ARGS__);                                              \
  if (__builtin_expect(!result.ok(), 0)) return std::move(result).status(); \
  lhs = std::move(result).value()

#endif  // NPURT_BASE_STATUS_H_
