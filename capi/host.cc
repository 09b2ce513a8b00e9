// Host: what the host lends to models and sessions, and the cancel token.
#include "handles.h"

namespace npurt::capi {
namespace {

class HostAllocator final : public memory::Allocator {
 public:
  explicit HostAllocator(std::shared_ptr<const npurt_allocator> host) : host_(std::move(host)) {}
  void* Allocate(std::size_t bytes, std::size_t alignment, memory::Kind kind) override {
    return host_->allocate(host_->user_data, bytes, alignment, static_cast<npurt_memory>(kind));
  }
  void Free(void* data, std::size_t bytes, std::size_t alignment, memory::Kind kind) override {
    host_->release(host_->user_data, data, bytes, alignment, static_cast<npurt_memory>(kind));
  }

 private:
  std::shared_ptr<const npurt_allocator> host_;
};

absl::Status WantUnused(const npurt_host* host) {
  NPURT_RETURN_IF_ERROR(WantAll("host", host));
  if (!host->frozen.load(std::memory_order_acquire)) return absl::OkStatus();
  return absl::FailedPreconditionError("host: a model or session uses it already");
}

template <typename T>
absl::Status WantFunction(const T& function, const char* name) {
  if (function != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " must not be NULL"));
}

template <typename T>
absl::Status SetOnce(std::shared_ptr<const T> value, std::shared_ptr<const T>* slot,
                     const char* what) {
  if (*slot != nullptr) return absl::AlreadyExistsError(absl::StrCat("host: has its ", what));
  *slot = std::move(value);
  return absl::OkStatus();
}

}  // namespace
}  // namespace npurt::capi

using namespace npurt;        // NOLINT: the C functions below are the outside of this file
using namespace npurt::capi;  // NOLINT

npurt_status npurt_host_create(npurt_host** out_host, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("out_host", out_host));
    *out_host = new npurt_host;
    return absl::OkStatus();
  });
}

npurt_status npurt_host_set_allocator(npurt_host* host, const npurt_allocator* allocator,
                                      npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_ASSIGN_OR_RETURN(auto taken, TakeCallback(allocator, "allocator"));
    NPURT_RETURN_IF_ERROR(WantUnused(host));
    NPURT_RETURN_IF_ERROR(WantNoFlags(*taken, "allocator"));
    NPURT_RETURN_IF_ERROR(WantFunction(taken->allocate, "allocator.allocate"));
    NPURT_RETURN_IF_ERROR(WantFunction(taken->release, "allocator.release"));
    auto memory = std::make_shared<HostAllocator>(taken);
    NPURT_RETURN_IF_ERROR(SetOnce(std::move(taken), &host->allocator, "allocator"));
    host->memory = std::move(memory);
    return absl::OkStatus();
  });
}

npurt_status npurt_host_set_executor(npurt_host* host, const npurt_executor* executor,
                                     npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_ASSIGN_OR_RETURN(auto taken, TakeCallback(executor, "executor"));
    NPURT_RETURN_IF_ERROR(WantUnused(host));
    NPURT_RETURN_IF_ERROR(WantNoFlags(*taken, "executor"));
    NPURT_RETURN_IF_ERROR(WantFunction(taken->concurrency, "executor.concurrency"));
    NPURT_RETURN_IF_ERROR(WantFunction(taken->submit, "executor.submit"));
    return SetOnce(std::move(taken), &host->executor, "executor");
  });
}

npurt_status npurt_host_set_log(npurt_host* host, const npurt_log_sink* sink, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_ASSIGN_OR_RETURN(auto taken, TakeCallback(sink, "sink"));
    NPURT_RETURN_IF_ERROR(WantUnused(host));
    NPURT_RETURN_IF_ERROR(WantFunction(taken->write, "sink.write"));
    return SetOnce(std::move(taken), &host->log, "log");
  });
}

npurt_status npurt_host_add_operator(npurt_host* host, const npurt_operator* op,
                                     npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_ASSIGN_OR_RETURN(auto taken, TakeCallback(op, "op"));
    NPURT_RETURN_IF_ERROR(WantUnused(host));
    NPURT_RETURN_IF_ERROR(WantNoFlags(*taken, "op", 15));
    NPURT_RETURN_IF_ERROR(WantAll("op.type", taken->type));
    NPURT_RETURN_IF_ERROR(WantFunction(taken->compute, "op.compute"));
    if (taken->min_inputs > taken->max_inputs || taken->min_outputs > taken->max_outputs ||
        taken->max_outputs == 0)
      return absl::InvalidArgumentError("op: wrong limits of inputs or outputs");
    npurt_host::Operator added = {taken->type, taken->domain == nullptr ? "" : taken->domain,
                                  nullptr};
    for (const npurt_host::Operator& other : host->operators)
      if (other.type == added.type && other.domain == added.domain)
        return absl::AlreadyExistsError(absl::StrCat("operator '", added.type, "' of domain '",
                                                     added.domain, "' was added before"));
    added.callbacks = std::move(taken);
    host->operators.push_back(std::move(added));
    return absl::OkStatus();
  });
}

npurt_host* npurt_host_retain(npurt_host* host) { return Retain(host); }
void npurt_host_release(npurt_host* host) { Release(host); }

npurt_status npurt_cancel_create(npurt_cancel** out_cancel, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("out_cancel", out_cancel));
    *out_cancel = new npurt_cancel;
    return absl::OkStatus();
  });
}

void npurt_cancel_trigger(npurt_cancel* cancel) {
  if (cancel != nullptr) cancel->triggered.store(true, std::memory_order_release);
}

int32_t npurt_cancel_triggered(const npurt_cancel* cancel) {
  return cancel != nullptr && cancel->triggered.load(std::memory_order_acquire) ? 1 : 0;
}

npurt_cancel* npurt_cancel_retain(npurt_cancel* cancel) { return Retain(cancel); }
void npurt_cancel_release(npurt_cancel* cancel) { Release(cancel); }
