#include "session/run.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "exec/float_mode.h"

namespace npurt::session {
namespace {

using exec::Base;
using options::Option;

// Counts the run in and out, on every path.
class Admission {
 public:
  Admission(Session* session, void (Session::*leave)()) : session_(session), leave_(leave) {}
  ~Admission() { (session_->*leave_)(); }
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

 private:
  Session* session_;
  void (Session::*leave_)();
};

struct Range {
  const std::byte* begin;
  const std::byte* end;
};

Range RangeOf(const Tensor& tensor) {
  const auto* data = static_cast<const std::byte*>(tensor.data());
  return {data, data + tensor.bytes()};
}

bool Overlap(const Tensor& a, const Tensor& b) {
  const Range x = RangeOf(a), y = RangeOf(b);
  return a.bytes() > 0 && b.bytes() > 0 && x.begin < y.end && y.begin < x.end;
}

absl::Status CopyInto(const Tensor& from, Tensor* to, const std::string& name) {
  if (from.dims() != to->dims() || from.dtype() != to->dtype())
    return absl::InvalidArgumentError(absl::StrCat(
        "output '", name, "': the bound tensor is ", DTypeName(to->dtype()),
        ShapeString(absl::MakeConstSpan(to->dims())), ", the result ", DTypeName(from.dtype()),
        ShapeString(absl::MakeConstSpan(from.dims()))));
  if (from.dtype() == DType::kString) {
    for (std::int64_t i = 0; i < from.element_count(); ++i)
      to->set<std::string>(i, from.at<std::string>(i));
  } else if (from.bytes() > 0) {
    std::memcpy(to->mutable_data(), from.data(), from.bytes());
  }
  return absl::OkStatus();
}

}  // namespace

// Passes on the values that the user asked for, under the names of the caller's graph.
class Run::ObserverAdapter final : public exec::Observer {
 public:
  explicit ObserverAdapter(const Run& run) : run_(run) {
    for (std::size_t i = 0; i < run.observed_.size(); ++i) wanted_[run.observed_[i]] = false;
  }
  virtual ~ObserverAdapter() = default;

  absl::Status Observe(const exec::Program& program, int value, const Slot& slot) override {
    const exec::ProgramValue& info = program.values[value];
    if (!wanted_.empty()) {
      auto found = wanted_.find(info.name);
      if (found == wanted_.end()) return absl::OkStatus();
      found->second = true;
    }
    if (slot.kind != ValueKind::kTensor) return run_.observer_(info.name, *slot.value);
    // A copy: the caller may keep it, the arena goes on.
    const Tensor view = Tensor::Borrow(slot.dtype, {slot.dims, std::size_t(slot.rank)}, slot.data,
                                       nullptr);
    NPURT_ASSIGN_OR_RETURN(Tensor copy, Tensor::Create(view.dtype(), view.dims()));
    NPURT_RETURN_IF_ERROR(CopyInto(view, &copy, info.name));
    return run_.observer_(info.name, Value(std::move(copy)));
  }

  // Tells of names that no step made.
  absl::Status Finish() {
    for (const auto& [name, seen] : wanted_)
      if (!seen) NPURT_RETURN_IF_ERROR(run_.observer_(name, Value()));
    return absl::OkStatus();
  }

 private:
  const Run& run_;
  HashMap<std::string, bool> wanted_;
};

Run::Run(std::shared_ptr<Session> session, const SessionGraph* graph)
    : session_(std::move(session)),
      graph_(graph),
      context_(graph->compiled.program),
      team_({session_->threads(), static_cast<int>(session_->options().Int(Option::spin_us)),
             session_->hooks_.executor.get(), session_.get()}),
      inputs_(graph->inputs.size()),
      donated_(graph->inputs.size()),
      input_dims_(graph->inputs.size()),
      bound_outputs_(graph->outputs.size()),
      output_allocators_(graph->outputs.size()),
      fresh_outputs_(graph->outputs.size()),
      outputs_(graph->outputs.size()) {}

Run::~Run() = default;

int Run::input_count() const { return static_cast<int>(inputs_.size()); }
int Run::output_count() const { return static_cast<int>(outputs_.size()); }

absl::Status Run::BindInput(std::size_t index, Value value, bool donate) {
  if (index >= inputs_.size())
    return absl::OutOfRangeError(
        absl::StrCat("input ", index, ": the graph has ", inputs_.size(), " inputs"));
  const PortInfo& port = graph_->inputs[index];
  if (value.kind() != ValueKind::kNone) {
    if (value.kind() != port.type.kind)
      return absl::InvalidArgumentError(
          absl::StrCat("input '", port.name, "': got another kind of value, want ",
                       port.type.ToString()));
    if (value.is_tensor() && value.tensor().dtype() != port.type.dtype)
      return absl::InvalidArgumentError(absl::StrCat(
          "input '", port.name, "': got ", DTypeName(value.tensor().dtype()),
          ShapeString(absl::MakeConstSpan(value.tensor().dims())), ", want ",
          port.type.ToString()));
    if (value.is_tensor() && port.type.has_rank) {
      const Dims& dims = value.tensor().dims();
      bool fits = dims.size() == port.type.dims.size();
      for (std::size_t d = 0; fits && d < dims.size(); ++d)
        fits = !port.type.dims[d].is_constant() || port.type.dims[d].value() == dims[d];
      if (!fits)
        return absl::InvalidArgumentError(
            absl::StrCat("input '", port.name, "': got shape ",
                         ShapeString(absl::MakeConstSpan(dims)), ", want ",
                         ShapeString(absl::MakeConstSpan(port.type.dims))));
    }
  }
  inputs_[index] = std::move(value);
  donated_[index] = donate;
  input_dims_[index] = inputs_[index].is_tensor()
                           ? absl::MakeConstSpan(inputs_[index].tensor().dims())
                           : absl::Span<const std::int64_t>();
  bindings_changed_ = true;
  return absl::OkStatus();
}

absl::Status Run::BindOutput(std::size_t index, Tensor tensor) {
  if (index >= outputs_.size())
    return absl::OutOfRangeError(
        absl::StrCat("output ", index, ": the graph has ", outputs_.size(), " outputs"));
  const PortInfo& port = graph_->outputs[index];
  if (tensor.defined() &&
      (port.type.kind != ValueKind::kTensor || port.type.dtype != tensor.dtype()))
    return absl::InvalidArgumentError(
        absl::StrCat("output '", port.name, "': got a tensor of ", DTypeName(tensor.dtype()),
                     ", want ", port.type.ToString()));
  bound_outputs_[index] = std::move(tensor);
  bindings_changed_ = true;
  return absl::OkStatus();
}

absl::Status Run::SetOutputAllocator(std::size_t index, OutputAllocator allocator) {
  if (index >= outputs_.size())
    return absl::OutOfRangeError(
        absl::StrCat("output ", index, ": the graph has ", outputs_.size(), " outputs"));
  output_allocators_[index] = std::move(allocator);
  return absl::OkStatus();
}

void Run::SetObserver(Observer observer, std::vector<std::string> names) {
  observer_ = std::move(observer);
  observed_ = std::move(names);
}

void Run::SetArena(void* data, std::size_t bytes) {
  own_arena_ = static_cast<std::byte*>(data);
  own_arena_bytes_ = bytes;
}

absl::Status Run::CheckOverlaps() const {
  for (std::size_t o = 0; o < bound_outputs_.size(); ++o) {
    const Tensor& output = bound_outputs_[o];
    if (!output.defined()) continue;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].is_tensor() && Overlap(output, inputs_[i].tensor()))
        return absl::InvalidArgumentError(
            absl::StrCat("output '", graph_->outputs[o].name, "' overlaps input '",
                         graph_->inputs[i].name, "'"));
    for (std::size_t p = 0; p < o; ++p)
      if (bound_outputs_[p].defined() && Overlap(output, bound_outputs_[p]))
        return absl::InvalidArgumentError(
            absl::StrCat("output '", graph_->outputs[o].name, "' overlaps output '",
                         graph_->outputs[p].name, "'"));
  }
  return absl::OkStatus();
}

void Run::FindUsableDonations() {
  usable_donations_.clear();
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!donated_[i] || !inputs_[i].is_tensor()) continue;
    const Tensor& tensor = inputs_[i].tensor();
    bool use = tensor.dtype() != DType::kString && tensor.bytes() > 0 &&
               reinterpret_cast<std::uintptr_t>(tensor.data()) % memory::kAlignment == 0;
    for (std::size_t other = 0; use && other < inputs_.size(); ++other)
      use = other == i || !inputs_[other].is_tensor() || !Overlap(tensor, inputs_[other].tensor());
    if (use) usable_donations_.push_back(static_cast<int>(i));
  }
}

// Everything that only a change of bindings makes necessary.
absl::Status Run::Prepare() {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].kind() == ValueKind::kNone)
      return absl::FailedPreconditionError(
          absl::StrCat("input '", graph_->inputs[i].name, "' is not bound"));
  FindUsableDonations();
  const std::vector<int>& donated = usable_donations_;
  bool same = plan_ != nullptr && plan_->donated == donated;
  const std::int64_t* known = same ? plan_->input_dims.data() : nullptr;
  for (std::size_t i = 0; same && i < input_dims_.size(); ++i) {
    const exec::PlannedValue& planned =
        plan_->values[context_.program().inputs[i].value];
    same = static_cast<std::size_t>(planned.rank) == input_dims_[i].size() &&
           std::equal(input_dims_[i].begin(), input_dims_[i].end(), known);
    known += input_dims_[i].size();
  }
  if (!same) {
    NPURT_ASSIGN_OR_RETURN(plan_, graph_->plans->Find(input_dims_, donated));
  }
  const auto limit = static_cast<std::size_t>(session_->options().Int(Option::arena_max_bytes));
  // A plan in a layout for larger shapes is given up where memory is bounded.
  const bool bounded = limit != 0 || own_arena_ != nullptr;
  const std::size_t bound = own_arena_ != nullptr ? own_arena_bytes_ : limit;
  if (bounded && plan_->arena_bytes > bound) {
    NPURT_ASSIGN_OR_RETURN(plan_, graph_->plans->MakeExact(input_dims_, donated));
  }
  if (limit != 0 && plan_->arena_bytes > limit)
    return absl::ResourceExhaustedError(
        absl::StrCat("the run needs ", plan_->arena_bytes,
                     " bytes for intermediate values, option arena_max_bytes allows ", limit));
  for (std::size_t o = 0; o < bound_outputs_.size(); ++o) {
    const Tensor& bound = bound_outputs_[o];
    const exec::ProgramPort& port = context_.program().outputs[o];
    const exec::PlannedValue& planned = plan_->values[port.value];
    if (!bound.defined() || planned.base == Base::kPool) continue;
    const auto dims = absl::MakeConstSpan(planned.dims, planned.rank);
    if (absl::MakeConstSpan(bound.dims()) != dims)
      return absl::InvalidArgumentError(absl::StrCat(
          "output '", port.name, "': the bound tensor has shape ",
          ShapeString(absl::MakeConstSpan(bound.dims())), ", the result has ", ShapeString(dims)));
  }
  NPURT_RETURN_IF_ERROR(CheckOverlaps());
  bindings_changed_ = false;
  return absl::OkStatus();
}

// Buffers for outputs with a place in the plan.
absl::Status Run::ProvideOutputs() {
  const bool staged = session_->options().Bool(Option::atomic_outputs);
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    const exec::PlannedValue& planned = plan_->values[context_.program().outputs[o].value];
    fresh_outputs_[o] = {};
    if (planned.base != Base::kOutput) continue;
    if (bound_outputs_[o].defined() && !staged) {
      context_.SetOutput(static_cast<int>(o), bound_outputs_[o].mutable_data());
      continue;
    }
    const DType dtype = context_.program().values[context_.program().outputs[o].value].dtype;
    const auto dims = absl::MakeConstSpan(planned.dims, planned.rank);
    NPURT_ASSIGN_OR_RETURN(fresh_outputs_[o], NewTensor(o, dtype, dims, planned.bytes));
    context_.SetOutput(static_cast<int>(o), fresh_outputs_[o].mutable_data());
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> Run::NewTensor(std::size_t output, DType dtype,
                                      absl::Span<const std::int64_t> dims, std::size_t bytes) {
  if (output_allocators_[output] != nullptr && !bound_outputs_[output].defined()) {
    NPURT_ASSIGN_OR_RETURN(auto memory, output_allocators_[output](output, dtype, dims, bytes));
    return Tensor::Borrow(dtype, dims, memory.first, std::move(memory.second));
  }
  if (session_->hooks_.allocator == nullptr || bytes == 0) return Tensor::Create(dtype, dims);
  // The value may outlive the session, so it holds the host's allocator itself.
  struct Owner {
    std::shared_ptr<memory::Allocator> allocator;
    memory::Buffer buffer;
  };
  auto owner = std::make_shared<Owner>();
  owner->allocator = session_->hooks_.allocator;
  NPURT_ASSIGN_OR_RETURN(owner->buffer,
                         memory::Buffer::Allocate(*owner->allocator, bytes, memory::kAlignment,
                                                  memory::Kind::kValue));
  const void* data = owner->buffer.data();
  return Tensor::Borrow(dtype, dims, data, std::move(owner));
}

absl::Status Run::CollectOutputs() {
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    const exec::ProgramPort& port = context_.program().outputs[o];
    if (context_.output(static_cast<int>(o)).kind != ValueKind::kTensor) {
      outputs_[o] = context_.TakeValue(port.value);
      continue;
    }
    Tensor result = plan_->values[port.value].base == Base::kPool
                        ? context_.TakePoolTensor(port.value)
                        : std::move(fresh_outputs_[o]);
    if (bound_outputs_[o].defined()) {
      if (result.defined())
        NPURT_RETURN_IF_ERROR(CopyInto(result, &bound_outputs_[o], port.name));
      result = bound_outputs_[o];
    } else if (output_allocators_[o] != nullptr && plan_->values[port.value].base == Base::kPool) {
      NPURT_ASSIGN_OR_RETURN(Tensor given,
                             NewTensor(o, result.dtype(), result.dims(), result.bytes()));
      NPURT_RETURN_IF_ERROR(CopyInto(result, &given, port.name));
      result = std::move(given);
    }
    // The same handle as last time needs no new one.
    if (!outputs_[o].is_tensor() || outputs_[o].tensor().data() != result.data() ||
        outputs_[o].tensor().dims() != result.dims() || outputs_[o].tensor().owner() != result.owner())
      outputs_[o] = Value(std::move(result));
  }
  has_outputs_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::byte*> Run::Arena() {
  const std::size_t needed = plan_->arena_bytes;
  if (own_arena_ == nullptr) {
    NPURT_ASSIGN_OR_RETURN(lease_, session_->arenas_.Lease(needed));
    return lease_.data();
  }
  const std::size_t skip =
      (memory::kAlignment - reinterpret_cast<std::uintptr_t>(own_arena_) % memory::kAlignment) %
      memory::kAlignment;
  if (own_arena_bytes_ < needed + skip)
    return absl::ResourceExhaustedError(
        absl::StrCat("the arena given to this run has ", own_arena_bytes_, " bytes, it needs ",
                     needed + skip, skip > 0 ? " (aligned to 64 bytes, fewer)" : ""));
  return own_arena_ + skip;
}

absl::Status Run::ExecutePrepared(const RunParams& params) {
  NPURT_ASSIGN_OR_RETURN(std::byte* const arena, Arena());
  context_.Attach(plan_, arena, session_->threads());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].is_tensor())
      context_.SetInput(static_cast<int>(i), inputs_[i].tensor().data());
    else
      context_.SetInputValue(static_cast<int>(i), inputs_[i]);
  }
  NPURT_RETURN_IF_ERROR(ProvideOutputs());
  exec::RunControl control;
  control.cancel = params.cancel;
  control.closing = &session_->closing_;
  control.deadline_ns = params.deadline_ns;
  std::optional<ObserverAdapter> observer;
  if (observer_ != nullptr) control.observer = &observer.emplace(*this);
  absl::Status status;
  {
    std::optional<exec::ScopedFloatMode> flush;
    if (session_->options().Text(Option::denormals) == "flush" &&
        session_->device().capabilities().fast_kernels)
      flush.emplace();
    status = context_.Run(&team_, control);
    team_.Close();
  }
  NPURT_RETURN_IF_ERROR(std::move(status));
  NPURT_RETURN_IF_ERROR(CollectOutputs());
  if (observer.has_value()) return observer->Finish();
  return absl::OkStatus();
}

absl::Status Run::Execute(const RunParams& params) {
  NPURT_RETURN_IF_ERROR(session_->Enter());
  const Admission admission(session_.get(), &Session::Leave);
  absl::Status status = bindings_changed_ ? Prepare() : absl::OkStatus();
  if (status.ok()) {
    has_outputs_ = false;
    status = ExecutePrepared(params);
    lease_.Release();
  }
  (status.ok() ? session_->counters_.runs : session_->counters_.failed_runs)
      .fetch_add(1, std::memory_order_relaxed);
  return status;
}

absl::StatusOr<Value> Run::Output(std::size_t index) const {
  if (index >= outputs_.size())
    return absl::OutOfRangeError(
        absl::StrCat("output ", index, ": the graph has ", outputs_.size(), " outputs"));
  if (!has_outputs_)
    return absl::FailedPreconditionError("the run has no result: no execution succeeded");
  return outputs_[index];
}

}  // namespace npurt::session
