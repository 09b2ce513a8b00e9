// The library itself: version, names of constants, the clock, and reports about all of it.
#include <time.h>

#include "absl/strings/str_join.h"
#include "base/cpu_isa.h"
#include "handles.h"
#include "ops/op_def.h"
#include "ops/ops_info.h"

#define NPURT_TEXT_OF_(x) #x
#define NPURT_TEXT_OF(x) NPURT_TEXT_OF_(x)
#define NPURT_VERSION_TEXT           \
  NPURT_TEXT_OF(NPURT_VERSION_MAJOR) \
  "." NPURT_TEXT_OF(NPURT_VERSION_MINOR) "." NPURT_TEXT_OF(NPURT_VERSION_PATCH)

namespace npurt::capi {
namespace {

#if defined(__clang__)
constexpr const char kCompiler[] = "clang " __clang_version__;
#else
constexpr const char kCompiler[] = "gcc " __VERSION__;
#endif

constexpr const char* kStatusNames[] = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

std::string BuildReport() {
  return absl::StrCat("{\"version\": \"", NPURT_VERSION_TEXT, "\", \"abi\": ", NPURT_ABI_MAJOR,
                      ", \"compiler\": \"", kCompiler, "\", \"isa\": \"",
                      IsaText(IsaUpTo("best").value_or(0)), "\"}");
}

std::string CpuReport() { return absl::StrCat("{\"isa\": \"", IsaText(DetectedIsa()), "\"}"); }

std::string OperatorsReport() {
  std::vector<std::string> names;
  for (const ops::OpDef* op : ops::AllOps()) names.push_back(absl::StrCat("\"", op->name, "\""));
  return absl::StrCat("[", absl::StrJoin(names, ", "), "]");
}

}  // namespace

absl::Status GiveText(std::string text, npurt_text** out_text) {
  NPURT_RETURN_IF_ERROR(WantAll("out_text", out_text));
  *out_text = new npurt_text{std::move(text)};
  return absl::OkStatus();
}

}  // namespace npurt::capi

using namespace npurt;        // NOLINT: the C functions below are the outside of this file
using namespace npurt::capi;  // NOLINT

const char* npurt_version(void) { return NPURT_VERSION_TEXT; }
uint32_t npurt_abi(void) { return NPURT_ABI_MAJOR; }

const char* npurt_status_name(npurt_status status) {
  const bool known = status >= 0 && status <= NPURT_UNAUTHENTICATED;
  return kStatusNames[known ? status : NPURT_UNKNOWN];
}

const char* npurt_dtype_name(npurt_dtype dtype) {
  return IsDType(dtype) ? DTypeName(static_cast<DType>(dtype)).data() : nullptr;
}

npurt_dtype npurt_dtype_find(const char* name) {
  return name == nullptr ? NPURT_DTYPE_NONE : static_cast<npurt_dtype>(DTypeFromName(name));
}

uint32_t npurt_dtype_bits(npurt_dtype dtype) {
  if (!IsDType(dtype) || dtype == NPURT_STRING) return 0;
  return static_cast<uint32_t>(DTypeBits(static_cast<DType>(dtype)));
}

int64_t npurt_now_ns(void) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

npurt_status npurt_library_report(npurt_report kind, npurt_text** out_text, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    switch (kind) {
      case NPURT_REPORT_BUILD:
        return GiveText(BuildReport(), out_text);
      case NPURT_REPORT_CPU:
        return GiveText(CpuReport(), out_text);
      case NPURT_REPORT_OPERATORS:
        return GiveText(OperatorsReport(), out_text);
      case NPURT_REPORT_OPTIONS:
        return GiveText(options::TableJson(), out_text);
      case NPURT_REPORT_OPS_INFO:
        return GiveText(ops::OpsInfoJson(), out_text);
      default:
        return absl::InvalidArgumentError(
            absl::StrCat("got report ", kind, ", want BUILD, CPU, OPERATORS, OPTIONS or OPS_INFO"));
    }
  });
}
