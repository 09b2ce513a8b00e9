// Runs: bindings, execution, and what the host's callbacks see of it.
#include "run.h"

namespace npurt::capi {
namespace {

using options::Option;

// Holds a run that only one call may use.
class Claim {
 public:
  explicit Claim(npurt_run* run) {
    if (run == nullptr) {
      status_ = WantAll("run", run);
    } else if (run->busy.exchange(true, std::memory_order_acquire)) {
      status_ = absl::FailedPreconditionError("the run is executing");
    } else {
      run_ = run;
    }
  }
  ~Claim() {
    if (run_ != nullptr) run_->busy.store(false, std::memory_order_release);
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  const absl::Status& status() const { return status_; }
  void Keep() { run_ = nullptr; }  // somebody else gives it back

 private:
  npurt_run* run_ = nullptr;
  absl::Status status_;
};

absl::Status WantPort(std::size_t index, std::size_t count, const char* what) {
  if (index < count) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat(what, " ", index, ": the graph has ", count, " ", what, "s"));
}

std::string PortName(const InfoStorage& port, const char* what) {
  return absl::StrCat(what, " '", port.View().name, "'");
}

bool IsBoundDirectly(const npurt_value& value) {
  return value.row_major && value.value.tensor().dtype() != DType::kString;
}

absl::StatusOr<std::unique_ptr<npurt_run>> NewRun(npurt_session* session, std::uint32_t graph) {
  auto made = std::make_unique<npurt_run>();
  made->session = Ref<npurt_session>(session);
  NPURT_ASSIGN_OR_RETURN(made->run, session->session->NewRun(static_cast<int>(graph)));
  {
    MutexLock lock(session->mutex);
    made->ports = &session->ports[graph];
  }
  made->inputs.resize(made->ports->inputs.size());
  made->outputs.resize(made->ports->outputs.size());
  return made;
}

absl::Status BindInput(npurt_run* run, std::size_t index, npurt_value* value,
                       bool donate = false) {
  NPURT_RETURN_IF_ERROR(WantPort(index, run->inputs.size(), "input"));
  Value plain;
  if (value != nullptr) {
    NPURT_ASSIGN_OR_RETURN(plain, RowMajor(*value));
  }
  donate = donate && value != nullptr && value->row_major && !value->read_only;
  NPURT_RETURN_IF_ERROR(run->run->BindInput(index, std::move(plain), donate));
  const bool again = value != nullptr && !value->row_major;
  run->inputs[index] = again ? Ref<npurt_value>(value) : Ref<npurt_value>();
  return absl::OkStatus();
}

absl::Status BindOutput(npurt_run* run, std::size_t index, npurt_value* value) {
  NPURT_RETURN_IF_ERROR(WantPort(index, run->outputs.size(), "output"));
  Tensor tensor;
  if (value != nullptr) {
    const InfoStorage& port = run->ports->outputs[index];
    if (!value->value.is_tensor() || value->type != port.View().type)
      return absl::InvalidArgumentError(absl::StrCat(PortName(port, "output"), ": got a ",
                                                     value->type, ", want a ", port.View().type));
    if (value->read_only)
      return absl::InvalidArgumentError(
          absl::StrCat(PortName(port, "output"), ": the tensor is read-only"));
    if (!ElementsAreApart(*value))
      return absl::InvalidArgumentError(
          absl::StrCat(PortName(port, "output"), ": elements of the tensor overlap"));
    if (IsBoundDirectly(*value)) tensor = value->value.tensor();
  }
  NPURT_RETURN_IF_ERROR(run->run->BindOutput(index, std::move(tensor)));
  run->outputs[index] = Ref<npurt_value>(value);
  return absl::OkStatus();
}

// npurt_run_params, checked.
struct Params {
  std::int64_t deadline_ns = 0;
  Ref<npurt_cancel> cancel;
  bool atomic_outputs = false;
};
absl::StatusOr<Params> ParamsOf(const npurt_run_params* user, const npurt_run& run) {
  Params params;
  const options::Options& set = run.session->session->options();
  if (user == nullptr) return params;
  NPURT_ASSIGN_OR_RETURN(const npurt_run_params given, CopyIn(user, "params"));
  NPURT_RETURN_IF_ERROR(WantNoFlags(given, "params"));
  params.deadline_ns = given.deadline_ns;
  params.cancel = Ref<npurt_cancel>(given.cancel);
  if (given.options != nullptr) {
    options::Options own = set;
    NPURT_RETURN_IF_ERROR(own.SetRunText(given.options));
    params.atomic_outputs = own.Bool(Option::atomic_outputs);
  }
  return params;
}

// REQUIRES: the run is claimed.
absl::Status Execute(npurt_run* run, const Params& params) {
  NPURT_RETURN_IF_ERROR(WantSession(run->session.get()));
  for (std::size_t i = 0; i < run->inputs.size(); ++i)
    if (run->inputs[i]) {
      NPURT_ASSIGN_OR_RETURN(Value plain, RowMajor(*run->inputs[i].get()));
      NPURT_RETURN_IF_ERROR(run->run->BindInput(i, std::move(plain)));
    }
  const auto late = [&](std::size_t i) {
    return run->outputs[i] && (params.atomic_outputs || !IsBoundDirectly(*run->outputs[i].get()));
  };
  for (std::size_t i = 0; params.atomic_outputs && i < run->outputs.size(); ++i)
    if (late(i)) NPURT_RETURN_IF_ERROR(run->run->BindOutput(i, Tensor()));
  session::RunParams given;
  given.deadline_ns = params.deadline_ns;
  given.cancel = params.cancel ? &params.cancel->triggered : nullptr;
  absl::Status status = run->run->Execute(given);
  for (std::size_t i = 0; status.ok() && i < run->outputs.size(); ++i) {
    if (!late(i)) continue;
    absl::StatusOr<Value> result = run->run->Output(i);
    status = result.ok() ? Scatter(result->tensor(), run->outputs[i].get()) : result.status();
    if (!status.ok()) status = Annotate(status, PortName(run->ports->outputs[i], "output"));
  }
  for (std::size_t i = 0; params.atomic_outputs && i < run->outputs.size(); ++i)
    if (run->outputs[i] && IsBoundDirectly(*run->outputs[i].get()))
      status.Update(run->run->BindOutput(i, run->outputs[i]->value.tensor()));
  return status;
}

absl::StatusOr<Ref<npurt_value>> OutputOf(const npurt_run& run, std::size_t index) {
  NPURT_RETURN_IF_ERROR(WantPort(index, run.outputs.size(), "output"));
  NPURT_ASSIGN_OR_RETURN(Value result, run.run->Output(index));
  if (run.outputs[index]) return run.outputs[index];
  // The declared type also says what an empty sequence would hold.
  const ValueType& declared = run.run->graph().outputs[index].type;
  npurt_value* made = result.is_tensor() || declared.kind != result.kind()
                          ? NewValue(std::move(result))
                          : NewValue(std::move(result), declared);
  Ref<npurt_value> value(made);
  Release(made);
  return value;
}

session::OutputAllocator AllocatorOf(std::shared_ptr<const npurt_output_allocator> callbacks) {
  return [callbacks = std::move(callbacks)](
             std::size_t output, DType dtype, absl::Span<const std::int64_t> dims,
             std::size_t bytes) -> absl::StatusOr<std::pair<void*, std::shared_ptr<const void>>> {
    void* data = nullptr;
    npurt_deleter deleter = {};
    const npurt_status status =
        callbacks->allocate(callbacks->user_data, output, static_cast<npurt_dtype>(dtype),
                            dims.data(), dims.size(), bytes, &data, &deleter);
    if (status != NPURT_OK)
      return FromC(status, absl::StrCat("the allocator of output ", output, " returned ", status));
    PendingDeleter pending(&deleter, data);
    if (data == nullptr && bytes > 0)
      return absl::ResourceExhaustedError(
          absl::StrCat("the allocator of output ", output, " gave no memory"));
    return std::make_pair(data, pending.Take());
  };
}

session::Observer ObserverOf(std::shared_ptr<const npurt_observer> callbacks) {
  return [callbacks = std::move(callbacks)](const std::string& name,
                                            const Value& value) -> absl::Status {
    npurt_value* made = value.kind() == ValueKind::kNone ? nullptr : NewValue(value);
    const Ref<npurt_value> held(made);
    Release(made);
    const HostFloatMode host_mode;
    const npurt_status status = callbacks->observe(callbacks->user_data, name.c_str(), made);
    return FromC(status, absl::StrCat("value '", name, "': the observer returned ", status));
  };
}

// The end of a submitted run.
void Finish(npurt_future* future, const npurt_completion* completion, const absl::Status& status) {
  {
    MutexLock lock(future->mutex);
    future->status = status;
    future->ready = true;
    future->changed.SignalAll();
  }
  if (completion == nullptr || completion->done == nullptr) return;
  npurt_error* error = status.ok() ? nullptr : NewError(status);
  completion->done(completion->user_data, ToC(status.code()), error);
  npurt_error_release(error);
}

absl::Status ExecuteQuietly(npurt_run* run, const Params& params) {
  try {
    return Execute(run, params);
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "no memory");
  } catch (...) {
    return absl::Status(absl::StatusCode::kInternal, "unexpected exception");
  }
}

// The index of the port called `name`.
absl::StatusOr<std::size_t> Find(const std::vector<InfoStorage>& ports, const char* name,
                                 const char* what) {
  if (name == nullptr) return absl::InvalidArgumentError(absl::StrCat(what, " name is NULL"));
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (std::strcmp(ports[i].View().name, name) == 0) return i;
  return absl::NotFoundError(absl::StrCat("the graph has no ", what, " '", name, "'"));
}

absl::StatusOr<std::vector<std::size_t>> FindAll(const std::vector<InfoStorage>& ports,
                                                 const char* const* names, std::size_t count,
                                                 const char* what) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t index = i;
    if (names != nullptr) {
      NPURT_ASSIGN_OR_RETURN(index, Find(ports, names[i], what));
    }
    found.push_back(index);
  }
  return found;
}

}  // namespace
}  // namespace npurt::capi

using namespace npurt;        // NOLINT: the C functions below are the outside of this file
using namespace npurt::capi;  // NOLINT

npurt_status npurt_run_create(npurt_session* session, uint32_t graph, npurt_run** out_run,
                              npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("out_run", out_run));
    NPURT_RETURN_IF_ERROR(WantSession(session));
    NPURT_ASSIGN_OR_RETURN(std::unique_ptr<npurt_run> made, NewRun(session, graph));
    *out_run = made.release();
    return absl::OkStatus();
  });
}

npurt_status npurt_run_bind_input(npurt_run* run, size_t index, npurt_value* value, uint32_t flags,
                                  npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("run", run));
    if ((flags & ~std::uint32_t{NPURT_BIND_DONATE}) != 0)
      return absl::InvalidArgumentError(absl::StrCat("unknown flags ", flags));
    const Claim claim(run);
    NPURT_RETURN_IF_ERROR(claim.status());
    return BindInput(run, index, value, (flags & NPURT_BIND_DONATE) != 0);
  });
}

npurt_status npurt_run_bind_output(npurt_run* run, size_t index, npurt_value* value,
                                   npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    const Claim claim(run);
    NPURT_RETURN_IF_ERROR(claim.status());
    return BindOutput(run, index, value);
  });
}

npurt_status npurt_run_set_output_allocator(npurt_run* run, size_t index,
                                            const npurt_output_allocator* allocator,
                                            npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    session::OutputAllocator function;
    if (allocator != nullptr) {
      NPURT_ASSIGN_OR_RETURN(auto taken, TakeCallback(allocator, "allocator"));
      NPURT_RETURN_IF_ERROR(WantNoFlags(*taken, "allocator"));
      if (taken->allocate == nullptr)
        return absl::InvalidArgumentError("allocator.allocate must not be NULL");
      function = AllocatorOf(std::move(taken));
    }
    const Claim claim(run);
    NPURT_RETURN_IF_ERROR(claim.status());
    return run->run->SetOutputAllocator(index, std::move(function));
  });
}

npurt_status npurt_run_set_observer(npurt_run* run, const npurt_observer* observer,
                                    npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    session::Observer function;
    std::vector<std::string> names;
    if (observer != nullptr) {
      NPURT_ASSIGN_OR_RETURN(auto taken, TakeCallback(observer, "observer"));
      NPURT_RETURN_IF_ERROR(WantNoFlags(*taken, "observer"));
      if (taken->observe == nullptr)
        return absl::InvalidArgumentError("observer.observe must not be NULL");
      if (taken->names != nullptr)
        for (std::size_t i = 0; i < taken->name_count; ++i) {
          NPURT_RETURN_IF_ERROR(WantAll("observer.names[]", taken->names[i]));
          names.push_back(taken->names[i]);
        }
      function = ObserverOf(std::move(taken));
    }
    const Claim claim(run);
    NPURT_RETURN_IF_ERROR(claim.status());
    run->run->SetObserver(std::move(function), std::move(names));
    return absl::OkStatus();
  });
}

npurt_status npurt_run_set_arena(npurt_run* run, void* data, size_t bytes, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    const Claim claim(run);
    NPURT_RETURN_IF_ERROR(claim.status());
    run->run->SetArena(data, data == nullptr ? 0 : bytes);
    return absl::OkStatus();
  });
}

npurt_status npurt_run_execute(npurt_run* run, const npurt_run_params* params,
                               npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    const Claim claim(run);
    NPURT_RETURN_IF_ERROR(claim.status());
    NPURT_ASSIGN_OR_RETURN(const Params given, ParamsOf(params, *run));
    return Execute(run, given);
  });
}

npurt_status npurt_run_submit(npurt_run* run, const npurt_run_params* params,
                              const npurt_completion* completion, npurt_future** out_future,
                              npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    std::shared_ptr<const npurt_completion> told;
    if (completion != nullptr) {
      NPURT_ASSIGN_OR_RETURN(told, TakeCallback(completion, "completion"));
      NPURT_RETURN_IF_ERROR(WantNoFlags(*told, "completion"));
    }
    NPURT_RETURN_IF_ERROR(WantAll("out_future", out_future));
    Claim claim(run);
    NPURT_RETURN_IF_ERROR(claim.status());
    NPURT_RETURN_IF_ERROR(WantSession(run->session.get()));
    NPURT_ASSIGN_OR_RETURN(const Params given, ParamsOf(params, *run));
    npurt_future* future = new npurt_future;
    const Ref<npurt_future> held(future);
    Release(future);
    NPURT_RETURN_IF_ERROR(run->session->submitter->Submit(
        [run = Ref<npurt_run>(run), given, held, told = std::move(told)] {
          const absl::Status status = ExecuteQuietly(run.get(), given);
          run->busy.store(false, std::memory_order_release);
          Finish(held.get(), told.get(), status);
        }));
    claim.Keep();
    *out_future = Retain(held.get());
    return absl::OkStatus();
  });
}

npurt_status npurt_run_output(npurt_run* run, size_t index, npurt_value** out_value,
                              npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("out_value", out_value));
    const Claim claim(run);
    NPURT_RETURN_IF_ERROR(claim.status());
    NPURT_ASSIGN_OR_RETURN(const Ref<npurt_value> value, OutputOf(*run, index));
    *out_value = Retain(value.get());
    return absl::OkStatus();
  });
}

void npurt_run_release(npurt_run* run) { Release(run); }

npurt_status npurt_session_run(npurt_session* session, uint32_t graph,
                               const char* const* input_names, npurt_value* const* inputs,
                               size_t input_count, const char* const* output_names,
                               npurt_value** outputs, size_t output_count,
                               const npurt_run_params* params, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantSession(session));
    if (input_count > 0) NPURT_RETURN_IF_ERROR(WantAll("inputs", inputs));
    if (output_count > 0) NPURT_RETURN_IF_ERROR(WantAll("outputs", outputs));
    NPURT_ASSIGN_OR_RETURN(const std::unique_ptr<npurt_run> run, NewRun(session, graph));
    NPURT_ASSIGN_OR_RETURN(const auto in,
                           FindAll(run->ports->inputs, input_names, input_count, "input"));
    NPURT_ASSIGN_OR_RETURN(const auto out,
                           FindAll(run->ports->outputs, output_names, output_count, "output"));
    for (std::size_t i = 0; i < input_count; ++i)
      NPURT_RETURN_IF_ERROR(BindInput(run.get(), in[i], inputs[i]));
    for (std::size_t i = 0; i < output_count; ++i)
      NPURT_RETURN_IF_ERROR(BindOutput(run.get(), out[i], outputs[i]));
    NPURT_ASSIGN_OR_RETURN(const Params given, ParamsOf(params, *run));
    NPURT_RETURN_IF_ERROR(Execute(run.get(), given));
    std::vector<Ref<npurt_value>> results;
    for (std::size_t i = 0; i < output_count; ++i) {
      NPURT_ASSIGN_OR_RETURN(Ref<npurt_value> value, OutputOf(*run, out[i]));
      results.push_back(std::move(value));
    }
    for (std::size_t i = 0; i < output_count; ++i)
      if (outputs[i] == nullptr) outputs[i] = Retain(results[i].get());
    return absl::OkStatus();
  });
}

npurt_status npurt_future_wait(npurt_future* future, int64_t deadline_ns, int32_t* out_ready,
                               npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("future", future, "out_ready", out_ready));
    const auto deadline =
        std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline_ns));
    MutexLock lock(future->mutex);
    while (!future->ready) {
      if (deadline_ns == 0)
        future->changed.Wait(future->mutex);
      else if (!future->changed.WaitUntil(future->mutex, deadline))
        break;
    }
    *out_ready = future->ready ? 1 : 0;
    return absl::OkStatus();
  });
}

npurt_status npurt_future_result(npurt_future* future, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("future", future));
    MutexLock lock(future->mutex);
    if (!future->ready) return absl::FailedPreconditionError("the run has not ended yet");
    return future->status;
  });
}

npurt_future* npurt_future_retain(npurt_future* future) { return Retain(future); }
void npurt_future_release(npurt_future* future) { Release(future); }
