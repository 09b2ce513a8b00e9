#include "exec/context.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/checked_math.h"
#include "base/mutex.h"
#include "exec/frame.h"

namespace npurt::exec {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kLateBlockBytes = 4096;
// Handing a step to a spinning member costs a few hundred nanoseconds; what is shorter than this
// stays with the caller without asking the team.
constexpr double kWorthSharing = 4000;

// Where empty tensors lie: an address that may be passed to memcpy with a length of 0.
alignas(kCacheLine) std::byte g_nothing[kCacheLine];

std::byte* AddressOr(const void* data) {
  return data == nullptr ? g_nothing : static_cast<std::byte*>(const_cast<void*>(data));
}

std::byte* AlignPointer(std::byte* p) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  return p + (kCacheLine - address % kCacheLine) % kCacheLine;
}

// One tile, and after it a look whether the run is to stop. The one place where what operators throw
// becomes a status: the loops of references throw RunStopped, containers std::bad_alloc.
absl::Status RunTile(RunFn fn, const RunContext& run, std::int64_t tile, void* scratch,
                     const RunControl& control) {
  try {
    NPURT_RETURN_IF_ERROR(fn(run, tile, scratch));
  } catch (RunStopped& stopped) {
    return std::move(stopped.status);
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "no memory");
  }
  return CheckControl(control);
}

// The tiles of one step, as members of the team compute them.
struct TileJob {
  const RunContext* run;
  const RunControl* control;
  RunFn fn;
  std::byte* scratch;
  std::size_t scratch_bytes;
  std::atomic<bool> failed{false};
  Mutex mutex;
  absl::Status first_error NPURT_GUARDED_BY(mutex);

  static void Run(void* argument, std::int64_t tile, int participant) {
    auto* job = static_cast<TileJob*>(argument);
    if (job->failed.load(std::memory_order_relaxed)) return;
    absl::Status status = RunTile(job->fn, *job->run, tile,
                                  job->scratch + job->scratch_bytes * participant, *job->control);
    if (__builtin_expect(!status.ok(), 0)) {
      MutexLock lock(job->mutex);
      if (job->first_error.ok()) job->first_error = std::move(status);
      job->failed.store(true, std::memory_order_relaxed);
    }
  }
};

}  // namespace

absl::Status CheckControl(const RunControl& control) {
  if (control.cancel != nullptr && control.cancel->load(std::memory_order_relaxed))
    return absl::CancelledError("the run was cancelled");
  if (control.closing != nullptr && control.closing->load(std::memory_order_relaxed))
    return absl::CancelledError("the session is closing");
  if (control.deadline_ns != 0) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec * 1'000'000'000LL + now.tv_nsec >= control.deadline_ns)
      return absl::DeadlineExceededError("the deadline of the run has passed");
  }
  return absl::OkStatus();
}

Context::Context(std::shared_ptr<const Program> program)
    : program_(std::move(program)),
      pool_(program_->allocator != nullptr ? *program_->allocator : memory::DefaultAllocator()) {
  const Program& p = *program_;
  slots_.resize(p.values.size());
  values_.resize(p.values.size());
  pool_tensors_.resize(p.values.size());
  pool_blocks_.resize(p.values.size());
  pool_dims_.resize(p.values.size());
  is_output_.resize(p.values.size());
  for (const ProgramPort& output : p.outputs) is_output_[output.value] = true;
  input_slots_.resize(p.inputs.size());
  output_slots_.resize(p.outputs.size());
  runs_.resize(p.steps.size());
  late_.resize(p.steps.size());
  stream_steps_.resize(p.stream_count);
  events_.resize(p.event_count);
  for (std::size_t v = 0; v < p.values.size(); ++v) {
    const ProgramValue& value = p.values[v];
    Slot& slot = slots_[v];
    slot.dtype = value.dtype;
    slot.kind = value.kind;
    slot.value = &values_[v];
    if (value.home == Base::kVariable) {
      if (value.kind == ValueKind::kResource)
        slot.data = p.resources[value.index].get();
      else
        read_variables_.push_back(static_cast<int>(v));
    }
    if (value.home == Base::kConstant) {
      const Tensor& tensor = p.constants[value.index];
      slot.data = const_cast<void*>(tensor.data());
      slot.dims = tensor.dims().data();
      slot.rank = tensor.rank();
      slot.count = tensor.element_count();
    }
  }
  // One shared slot stands for absent operands.
  slots_.emplace_back();
  std::size_t operand_count = 0;
  for (const Step& step : p.steps) operand_count += step.inputs.size() + step.outputs.size();
  operands_.reserve(operand_count);
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    const Step& step = p.steps[s];
    RunContext& run = runs_[s];
    const auto add = [&](const std::vector<int>& list) {
      Slot** first = operands_.data() + operands_.size();
      for (int v : list) operands_.push_back(v == kNone ? &slots_.back() : &slots_[v]);
      return first;
    };
    run.inputs_ = add(step.inputs);
    run.outputs_ = add(step.outputs);
    run.input_count_ = static_cast<std::int32_t>(step.inputs.size());
    run.output_count_ = static_cast<std::int32_t>(step.outputs.size());
    run.attributes_ = step.attributes;
    run.prepared_ = step.prepared;
    run.declared_ = step.declared_outputs.empty() ? nullptr : step.declared_outputs.data();
    run.declared_inputs_ = step.declared_inputs.empty() ? nullptr : step.declared_inputs.data();
    run.node_ = step.node;
    run.services_ = this;
    stream_steps_[step.stream].push_back(static_cast<int>(s));
  }
}

Context::~Context() = default;

void Context::Attach(std::shared_ptr<const Plan> plan, std::byte* arena, int participants) {
  participants_ = std::max(participants, 1);
  if (plan == plan_ && AddressOr(arena) == arena_) return;
  plan_ = std::move(plan);
  arena_ = AddressOr(arena);
  for (auto& list : input_slots_) list.clear();
  for (auto& list : output_slots_) list.clear();
  for (std::size_t v = 0; v < plan_->values.size(); ++v) {
    const PlannedValue& planned = plan_->values[v];
    Slot& slot = slots_[v];
    switch (planned.base) {
      case Base::kNone:
      case Base::kPool:
        continue;
      case Base::kConstant:
        // A weight that was packed and dropped has elements but no address, which the binder asks.
        slot.data = const_cast<void*>(program_->constants[planned.index].data());
        if (slot.data != nullptr || planned.count == 0)
          slot.data = AddressOr(slot.data) + planned.offset;
        break;
      case Base::kArena:
        slot.data = arena_ + planned.offset;
        break;
      case Base::kPlan:
        slot.data = plan_->storage[planned.index].get() + planned.offset;
        break;
      case Base::kInput:
        input_slots_[planned.index].push_back({static_cast<int>(v), planned.offset});
        break;
      case Base::kOutput:
        output_slots_[planned.index].push_back({static_cast<int>(v), planned.offset});
        break;
      case Base::kVariable:
        break;
    }
    slot.dims = planned.dims;
    slot.rank = planned.rank;
    slot.count = planned.count;
  }
  for (std::size_t s = 0; s < runs_.size(); ++s) runs_[s].bound_ = plan_->steps[s].bound;
}

void Context::SetInput(int input, const void* data) {
  for (const auto& [value, offset] : input_slots_[input])
    slots_[value].data = AddressOr(data) + offset;
}

void Context::SetInputValue(int input, Value value) {
  const int v = program_->inputs[input].value;
  values_[v] = std::move(value);
  slots_[v].kind = values_[v].kind();
}

void Context::SetOutput(int output, void* data) {
  for (const auto& [value, offset] : output_slots_[output])
    slots_[value].data = AddressOr(data) + offset;
}

bool Context::InPool(int value) const {
  return plan_ == nullptr || plan_->values[value].base == Base::kPool;
}

int Context::ValueOf(const Slot* slot) const {
  const std::ptrdiff_t value = slot - slots_.data();
  return value < 0 || value >= static_cast<std::ptrdiff_t>(program_->values.size())
             ? kNone
             : static_cast<int>(value);
}

void Context::Forget(int value) {
  pool_tensors_[value] = {};
  if (pool_blocks_[value] != nullptr) pool_.Give(std::exchange(pool_blocks_[value], nullptr));
  values_[value] = {};
  if (InPool(value)) slots_[value].data = nullptr;
}

absl::Status Context::Reserve(int value, absl::Span<const std::int64_t> dims) {
  const DType dtype = program_->values[value].dtype;
  Slot& slot = slots_[value];
  if (is_output_[value] || dtype == DType::kString) {
    NPURT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(dtype, dims));
    pool_tensors_[value] = std::move(tensor);
    slot.data = pool_tensors_[value].mutable_data();
    slot.dims = pool_tensors_[value].dims().data();
    slot.rank = pool_tensors_[value].rank();
    slot.count = pool_tensors_[value].element_count();
    return absl::OkStatus();
  }
  NPURT_ASSIGN_OR_RETURN(const std::int64_t count, ElementCount(dims));
  std::size_t bytes;
  if (!BytesOf(dtype, count, &bytes))
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of shape ", ShapeString(dims), " is too large"));
  pool_dims_[value].assign(dims.begin(), dims.end());
  if (pool_blocks_[value] != nullptr) pool_.Give(std::exchange(pool_blocks_[value], nullptr));
  pool_blocks_[value] = pool_.Take(bytes);
  if (pool_blocks_[value] == nullptr)
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", bytes, " bytes of '", program_->values[value].name, "'"));
  slot.data = pool_blocks_[value];
  slot.dims = pool_dims_[value].data();
  slot.rank = static_cast<std::int32_t>(dims.size());
  slot.count = count;
  return absl::OkStatus();
}

absl::Status Context::AllocateOutput(Slot* output, absl::Span<const std::int64_t> dims) {
  const int value = ValueOf(output);
  if (value == kNone) return absl::OkStatus();
  const auto known = absl::MakeConstSpan(output->dims, output->rank);
  // A value with a place in the plan keeps it: its shape was inferred, and must agree.
  if (!InPool(value)) {
    if (known != dims)
      return absl::InternalError(absl::StrCat("'", program_->values[value].name, "': computed ",
                                              ShapeString(dims), ", inferred ",
                                              ShapeString(known)));
    return absl::OkStatus();
  }
  if (output->data != nullptr && known == dims) return absl::OkStatus();  // inferred just before
  return Reserve(value, dims);
}

absl::StatusOr<Frame*> Context::OpenFrame(const RunContext& run, int subgraph) {
  const std::ptrdiff_t index = &run - runs_.data();
  const Step& step = program_->steps[index];
  if (frames_.empty()) frames_.resize(runs_.size());
  auto& frames = frames_[index];
  if (frames.empty()) frames.resize(step.callees.size());
  if (subgraph < 0 || subgraph >= static_cast<int>(frames.size()))
    return absl::InternalError("the step has no such subgraph");
  const Callee& callee = *step.callees[subgraph];
  if (callee.program == nullptr) return callee.error;
  if (frames[subgraph] == nullptr)
    frames[subgraph] = std::make_unique<ContextFrame>(step.callees[subgraph], this);
  return frames[subgraph].get();
}

absl::Status Context::MoveOutput(Slot* output, Frame& frame, int i) {
  const int value = ValueOf(output);
  if (value == kNone) return absl::OkStatus();
  const Slot& from = frame.output(i);
  const ProgramValue& info = program_->values[value];
  if (from.kind != ValueKind::kTensor) {
    values_[value] = frame.Take(i);
    output->kind = from.kind;
    return absl::OkStatus();
  }
  if (from.dtype != info.dtype || output->kind != ValueKind::kTensor)
    return absl::InvalidArgumentError(absl::StrCat("'", info.name, "': the subgraph yields ",
                                                   DTypeName(from.dtype), ", want ",
                                                   DTypeName(info.dtype)));
  if (!InPool(value)) {
    NPURT_RETURN_IF_ERROR(AllocateOutput(output, absl::MakeConstSpan(from.dims, from.rank)));
    std::size_t bytes = 0;
    if (!BytesOf(from.dtype, from.count, &bytes)) return absl::InternalError("size of an output");
    if (bytes > 0) std::memcpy(output->data, from.data, bytes);
    return absl::OkStatus();
  }
  pool_tensors_[value] = frame.Take(i).tensor();
  const Tensor& tensor = pool_tensors_[value];
  output->data = AddressOr(tensor.data());
  output->dims = tensor.dims().data();
  output->rank = tensor.rank();
  output->count = tensor.element_count();
  return absl::OkStatus();
}

absl::StatusOr<bool> Context::ShareOutput(Slot* output, const Tensor& tensor) {
  const int value = ValueOf(output);
  if (value == kNone) return true;
  if (plan_->values[value].base != Base::kVariable) return false;
  const auto known = absl::MakeConstSpan(output->dims, static_cast<std::size_t>(output->rank));
  if (tensor.dtype() != output->dtype || known != absl::MakeConstSpan(tensor.dims()))
    return absl::InternalError(
        absl::StrCat("variable '", program_->values[value].name, "' has another type than declared"));
  pool_tensors_[value] = tensor;
  output->data = AddressOr(tensor.data());
  return true;
}

Tensor Context::TakePoolTensor(int value) { return std::exchange(pool_tensors_[value], {}); }
Value Context::TakeValue(int value) { return std::exchange(values_[value], {}); }

void* Context::LateStorage(std::size_t bytes, std::size_t alignment) {
  std::size_t start = AlignUp(late_used_, alignment);
  if (late_blocks_.empty() || start + bytes > late_block_bytes_) {
    late_block_bytes_ = std::max(kLateBlockBytes, bytes);
    late_blocks_.push_back(std::make_unique<std::byte[]>(late_block_bytes_));
    start = 0;
  }
  late_used_ = start + bytes;
  return late_blocks_.back().get() + start;
}

absl::Status Context::RunTiles(int index, const PlannedStep& planned, Team* team) {
  const Step& step = program_->steps[index];
  RunContext& run = runs_[index];
  run.counts_accesses_ = planned.tiles <= 1;
  std::byte* scratch = arena_ + plan_->values_bytes;
  std::size_t scratch_bytes = plan_->scratch_bytes;
  if (step.late && late_scratch_bytes_ > 0) {
    scratch_bytes = AlignUp(late_scratch_bytes_, kCacheLine);
    const std::size_t needed = scratch_bytes * participants_ + kCacheLine;
    if (needed > late_scratch_capacity_) {
      late_scratch_ = std::make_unique<std::byte[]>(needed);
      late_scratch_capacity_ = needed;
    }
    scratch = AlignPointer(late_scratch_.get());
  }
  const std::int64_t tiles = planned.tiles;
  if (team == nullptr || participants_ == 1 || tiles <= 1 ||
      planned.cost_per_tile * static_cast<double>(tiles) < kWorthSharing) {
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      absl::Status status = RunTile(step.run, run, tile, scratch, *control_);
      if (__builtin_expect(!status.ok(), 0)) return status;
    }
    return absl::OkStatus();
  }
  TileJob job;
  job.run = &run;
  job.control = control_;
  job.fn = step.run;
  job.scratch = scratch;
  job.scratch_bytes = scratch_bytes;
  team->ParallelFor(tiles, &TileJob::Run, &job, participants_,
                    planned.cost_per_tile * static_cast<double>(tiles));
  MutexLock lock(job.mutex);
  return std::move(job.first_error);
}

absl::Status Context::RunStep(int index, Team* team) {
  const Step& step = program_->steps[index];
  const PlannedStep* planned = &plan_->steps[index];
  if (planned->skip && control_->observer == nullptr) return absl::OkStatus();
  absl::Status status;
  if (!planned->skip) {
    if (step.late) {
      for (int value : step.outputs)
        if (value != kNone && InPool(value)) Forget(value);
      late_used_ = 0;
      if (late_blocks_.size() > 1) late_blocks_.erase(late_blocks_.begin(), late_blocks_.end() - 1);
      late_scratch_bytes_ = 0;
      status = program_->binder->BindLate(index, *this);
      planned = &late_[index];
    }
    if (status.ok()) status = RunTiles(index, *planned, team);
    if (__builtin_expect(!status.ok(), 0)) return Annotate(status, step.where);
  }
  if (control_->observer != nullptr)
    for (int value : step.outputs)
      if (value != kNone)
        NPURT_RETURN_IF_ERROR(control_->observer->Observe(*program_, value, slots_[value]));
  for (int value : step.release) Forget(value);
  return absl::OkStatus();
}

absl::Status Context::RunStreams(Team* team) {
  for (Event& event : events_) {
    event.signalled = false;
    event.parked.clear();
  }
  std::vector<Cursor> cursors(program_->stream_count);
  std::vector<int> ready;
  for (int s = program_->stream_count; s-- > 0;) {
    cursors[s] = {s};
    ready.push_back(s);
  }
  while (!ready.empty()) {
    Cursor& cursor = cursors[ready.back()];
    ready.pop_back();
    const std::vector<int>& steps = stream_steps_[cursor.stream];
    for (; cursor.next < steps.size(); ++cursor.next) {
      const Step& step = program_->steps[steps[cursor.next]];
      const auto blocking = std::find_if(step.wait.begin(), step.wait.end(),
                                         [&](int e) { return !events_[e].signalled; });
      if (blocking != step.wait.end()) {
        events_[*blocking].parked.push_back(cursor.stream);
        break;
      }
      NPURT_RETURN_IF_ERROR(CheckControl(*control_));
      NPURT_RETURN_IF_ERROR(RunStep(steps[cursor.next], team));
      if (step.signal == kNone) continue;
      Event& event = events_[step.signal];
      event.signalled = true;
      ready.insert(ready.end(), event.parked.begin(), event.parked.end());
      event.parked.clear();
    }
  }
  for (const Cursor& cursor : cursors)
    if (cursor.next < stream_steps_[cursor.stream].size())
      return absl::InternalError("a stream waits for an event that nobody signals");
  return absl::OkStatus();
}

absl::Status Context::Run(Team* team, const RunControl& control) {
  control_ = &control;
  team_ = team;
  run_number_ = program_->runs_started.fetch_add(1, std::memory_order_relaxed);
  absl::Status status;
  try {
    if (program_->stream_count > 1) {
      status = RunStreams(team);
    } else {
      const int count = static_cast<int>(program_->steps.size());
      status = CheckControl(control);
      for (int s = 0; s < count && status.ok(); ++s) status = RunStep(s, team);
    }
  } catch (const std::bad_alloc&) {  // what comes next must be done then, too
    status = absl::Status(absl::StatusCode::kResourceExhausted, "no memory");
  }
  // What was not released on the way: with several streams, or after an error.
  if (!status.ok() || program_->stream_count > 1)
    for (std::size_t v = 0; v < pool_blocks_.size(); ++v)
      if (pool_blocks_[v] != nullptr) Forget(static_cast<int>(v));
  for (int value : read_variables_) pool_tensors_[value] = {};
  control_ = nullptr;
  team_ = nullptr;
  return status;
}

}  // namespace npurt::exec
