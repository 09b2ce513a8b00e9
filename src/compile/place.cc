#include "compile/place.h"

#include <algorithm>

#include "base/checked_math.h"
#include "memory/verifier.h"

namespace npurt::compile {
namespace {

using exec::Base;
using exec::kNone;
using Offer = ops::BindContext::Offer;
constexpr std::size_t kAlignment = 64;

std::size_t TotalBytes(absl::Span<const memory::BufferRequest> requests) {
  std::size_t total = 0;
  for (const auto& request : requests)
    if (!CheckedAdd(total, request.bytes, &total)) return SIZE_MAX;
  return total;
}

// Whether buffers that may share bytes in one list may do so in the other: everything but sizes.
bool SameLives(absl::Span<const memory::BufferRequest> a,
               absl::Span<const memory::BufferRequest> b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](auto& x, auto& y) {
           return x.defined_by == y.defined_by && x.in_place_of == y.in_place_of &&
                  x.used_by == y.used_by;
         });
}

}  // namespace

memory::Schedule ScheduleOf(const exec::Program& program) {
  memory::Schedule schedule;
  schedule.step_count = static_cast<int>(program.steps.size());
  if (program.stream_count == 1) return schedule;
  schedule.streams.resize(program.stream_count);
  std::vector<int> signal_of(program.event_count, kNone);
  for (int s = 0; s < schedule.step_count; ++s) {
    schedule.streams[program.steps[s].stream].push_back(s);
    if (program.steps[s].signal != kNone) signal_of[program.steps[s].signal] = s;
  }
  for (int s = 0; s < schedule.step_count; ++s)
    for (int event : program.steps[s].wait) schedule.events.push_back({signal_of[event], s});
  return schedule;
}

Placement::Placement(const exec::Program& program, int participants)
    : program_(program), participants_(participants), producer_(program.values.size(), -1) {
  nodes_.resize(program.values.size());
  for (std::size_t v = 0; v < nodes_.size(); ++v) nodes_[v].parent = static_cast<int>(v);
  for (std::size_t s = 0; s < program.steps.size(); ++s)
    for (int v : program.steps[s].outputs)
      if (v != kNone) producer_[v] = static_cast<int>(s);
}

void Placement::AddOffer(int step, const Offer& offer) { offers_.push_back({step, offer}); }

int Placement::RootOf(int value, std::size_t* offset) const {
  *offset = 0;
  while (nodes_[value].parent != value) {
    *offset += nodes_[value].offset;
    value = nodes_[value].parent;
  }
  return value;
}

bool Placement::GrantView(const exec::Plan& plan, const Granted& asked) {
  const exec::Step& step = program_.steps[asked.step];
  const int out = step.outputs[asked.offer.out], in = step.inputs[asked.offer.in];
  if (nodes_[out].parent != out) return false;
  const Base in_home = program_.values[in].home, out_home = program_.values[out].home;
  if (in_home == Base::kPool || in_home == Base::kVariable) return false;
  std::size_t size;
  if (!CheckedAdd(asked.offer.byte_offset, plan.values[out].bytes, &size) ||
      size > plan.values[in].bytes)
    return false;
  if (out_home == Base::kArena && !nodes_[out].contains) {
    nodes_[out].parent = in;
    nodes_[out].offset = asked.offer.byte_offset;
    return true;
  }
  // The output is the caller's buffer: then the input may be produced right there.
  if (out_home != Base::kOutput || asked.offer.byte_offset != 0) return false;
  std::size_t offset;
  const int root = RootOf(in, &offset);
  if (program_.values[root].home != Base::kArena || offset != 0 || producer_[root] < 0 ||
      program_.steps[producer_[root]].late || plan.values[root].bytes != plan.values[out].bytes ||
      program_.stream_count > 1)
    return false;
  nodes_[root].parent = out;
  nodes_[out].contains = true;
  return true;
}

bool Placement::GrantInside(const exec::Plan& plan, const Granted& asked) {
  const exec::Step& step = program_.steps[asked.step];
  const int out = step.outputs[asked.offer.out], in = step.inputs[asked.offer.in];
  if (program_.stream_count > 1) return false;
  std::size_t offset, out_offset;
  const int root = RootOf(in, &offset);
  const int out_root = RootOf(out, &out_offset);
  const Base out_home = program_.values[out_root].home;
  std::size_t size;
  if (program_.values[root].home != Base::kArena || root == out_root || offset != 0 ||
      producer_[root] < 0 || program_.steps[producer_[root]].late ||
      plan.values[root].bytes != plan.values[in].bytes ||
      (out_home != Base::kArena && out_home != Base::kOutput) ||
      !CheckedAdd(asked.offer.byte_offset, plan.values[in].bytes, &size) ||
      size > plan.values[out].bytes)
    return false;
  // Kernels of later tiers may want whole cache lines.
  if (asked.offer.byte_offset % kAlignment != 0) return false;
  nodes_[root].parent = out;
  nodes_[root].offset = asked.offer.byte_offset;
  nodes_[out].contains = true;
  return true;
}

std::shared_ptr<const LayoutCache::Layout> LayoutCache::Find(
    absl::Span<const memory::BufferRequest> requests,
    std::shared_ptr<const Layout>* smaller) const {
  constexpr std::size_t kMaxWaste = 4, kSmall = std::size_t{1} << 20;
  const std::size_t total = TotalBytes(requests);
  MutexLock lock(mutex_);
  for (const auto& layout : layouts_) {
    if (!SameLives(layout->requests, requests)) continue;
    const bool fits = std::equal(
        requests.begin(), requests.end(), layout->requests.begin(),
        [](const auto& wanted, const auto& there) { return wanted.bytes <= there.bytes; });
    if (fits && (layout->total_bytes <= kSmall || layout->total_bytes / kMaxWaste <= total))
      return layout;
    if (!fits && *smaller == nullptr) *smaller = layout;
  }
  return nullptr;
}

void LayoutCache::Add(std::shared_ptr<const Layout> layout) {
  MutexLock lock(mutex_);
  ++added_;
  layouts_.push_front(std::move(layout));
  if (layouts_.size() > kMaxLayouts) layouts_.pop_back();
}

std::int64_t LayoutCache::added() const {
  MutexLock lock(mutex_);
  return added_;
}

absl::StatusOr<memory::MemoryPlan> Placement::PlaceRequests(
    std::vector<memory::BufferRequest> requests, LayoutCache* layouts) const {
  if (layouts != nullptr) {
    std::shared_ptr<const LayoutCache::Layout> smaller;
    if (const auto found = layouts->Find(requests, &smaller)) return found->placed;
    if (smaller != nullptr)
      for (std::size_t r = 0; r < requests.size(); ++r)
        if (requests[r].bytes > smaller->requests[r].bytes &&
            !CheckedMul(requests[r].bytes, std::size_t{2}, &requests[r].bytes))
          return absl::ResourceExhaustedError("the arena does not fit the address space");
  }
  const memory::Schedule schedule = ScheduleOf(program_);
  NPURT_ASSIGN_OR_RETURN(const memory::StepOrder order,
                         memory::StepOrder::FromSchedule(schedule));
  NPURT_ASSIGN_OR_RETURN(memory::MemoryPlan placed,
                         memory::PlanMemory(requests, order, kAlignment));
  NPURT_RETURN_IF_ERROR(memory::VerifyPlan(requests, schedule, kAlignment, placed));
  if (layouts != nullptr) {
    auto layout = std::make_shared<LayoutCache::Layout>();
    layout->total_bytes = TotalBytes(requests);
    layout->requests = std::move(requests);
    layout->placed = placed;
    layouts->Add(std::move(layout));
  }
  return placed;
}

// The buffers of some of the requests; what would be written over is one of them or nothing.
std::vector<memory::BufferRequest> Placement::BuffersOf(const std::vector<Request>& requests,
                                                        absl::Span<const int> some) {
  std::vector<int> now(requests.size(), -1);
  for (std::size_t i = 0; i < some.size(); ++i) now[some[i]] = static_cast<int>(i);
  std::vector<memory::BufferRequest> buffers;
  for (const int r : some) {
    buffers.push_back(requests[r].buffer);
    int& in_place_of = buffers.back().in_place_of;
    if (in_place_of >= 0) in_place_of = now[in_place_of];
  }
  return buffers;
}

// One request for each root in the arena, with the lives of all that share its bytes.
std::vector<Placement::Request> Placement::CollectRequests(
    const exec::Plan& plan, absl::Span<const Granted> in_place) const {
  std::vector<int> request_of(nodes_.size(), -1);
  std::vector<Request> requests;
  for (std::size_t v = 0; v < nodes_.size(); ++v) {
    if (roots_[v] != static_cast<int>(v) || program_.values[v].home != Base::kArena) continue;
    request_of[v] = static_cast<int>(requests.size());
    Request request;
    request.value = static_cast<int>(v);
    request.buffer.bytes = plan.values[v].bytes;
    request.buffer.defined_by = producer_[v] < 0 ? memory::kBeforeFirstStep : producer_[v];
    request.buffer.name = program_.values[v].name;
    requests.push_back(std::move(request));
  }
  for (std::size_t v = 0; v < nodes_.size(); ++v) {
    const int r = request_of[roots_[v]];
    if (r < 0 || producer_[v] < 0) continue;
    // With one stream the order of steps is the order of births.
    memory::BufferRequest& buffer = requests[r].buffer;
    if (program_.stream_count == 1) buffer.defined_by = std::min(buffer.defined_by, producer_[v]);
    buffer.used_by.push_back(producer_[v]);
  }
  for (std::size_t s = 0; s < program_.steps.size(); ++s)
    for (int v : program_.steps[s].inputs)
      if (v != kNone && request_of[roots_[v]] >= 0)
        requests[request_of[roots_[v]]].buffer.used_by.push_back(static_cast<int>(s));
  for (const Granted& asked : in_place) {
    const exec::Step& step = program_.steps[asked.step];
    const int out = step.outputs[asked.offer.out], in = step.inputs[asked.offer.in];
    if (roots_[out] != out || roots_[in] != in || nodes_[out].contains || nodes_[in].contains ||
        request_of[out] < 0 || plan.values[out].bytes != plan.values[in].bytes)
      continue;
    Request& request = requests[request_of[out]];
    if (request.buffer.in_place_of != -1 || request.in_place_of_input != -1) continue;
    // Another operand in the same bytes would be read after they were overwritten.
    const auto shares = std::count_if(step.inputs.begin(), step.inputs.end(),
                                      [&](int v) { return v != kNone && roots_[v] == in; });
    if (shares != 1) continue;
    if (request_of[in] >= 0)
      request.buffer.in_place_of = request_of[in];
    else if (program_.values[in].home == Base::kInput)
      request.in_place_of_input = program_.values[in].index;
  }
  return requests;
}

absl::Status Placement::FillDonated(int input, const exec::Plan& plan,
                                    std::vector<Request>* requests) const {
  // Each try is a plan of its own.
  constexpr std::size_t kMostTries = 64;
  const int value = program_.inputs[static_cast<std::size_t>(input)].value;
  if (roots_[value] != value || program_.values[value].home != Base::kInput) return absl::OkStatus();
  Request room;
  room.value = value;
  room.buffer.bytes = plan.values[value].bytes;
  room.buffer.name = program_.values[value].name;
  for (std::size_t s = 0; s < program_.steps.size(); ++s)
    for (int v : program_.steps[s].inputs)
      if (v != kNone && roots_[v] == value) room.buffer.used_by.push_back(static_cast<int>(s));

  std::vector<int> tries;
  for (std::size_t r = 0; r < requests->size(); ++r) {
    const std::size_t bytes = (*requests)[r].buffer.bytes;
    if ((*requests)[r].input < 0 && bytes > 0 && bytes <= room.buffer.bytes)
      tries.push_back(static_cast<int>(r));
  }
  std::stable_sort(tries.begin(), tries.end(), [&](int a, int b) {
    return (*requests)[a].buffer.bytes > (*requests)[b].buffer.bytes;
  });
  tries.resize(std::min(tries.size(), kMostTries));

  const memory::Schedule schedule = ScheduleOf(program_);
  NPURT_ASSIGN_OR_RETURN(const memory::StepOrder order, memory::StepOrder::FromSchedule(schedule));
  std::vector<int> inside;
  memory::MemoryPlan placed;
  for (const int r : tries) {
    inside.push_back(r);
    std::vector<memory::BufferRequest> buffers = BuffersOf(*requests, inside);
    for (std::size_t i = 0; i < inside.size(); ++i)
      if ((*requests)[inside[i]].in_place_of_input == input)
        buffers[i].in_place_of = static_cast<int>(inside.size());
    buffers.push_back(room.buffer);
    auto tried = memory::PlanMemory(buffers, order, kAlignment);
    bool fits = tried.ok();
    for (std::size_t i = 0; fits && i < buffers.size(); ++i)
      fits = tried->offsets[i] + buffers[i].bytes <= room.buffer.bytes;
    if (!fits) {
      inside.pop_back();
      continue;
    }
    NPURT_RETURN_IF_ERROR(memory::VerifyPlan(buffers, schedule, kAlignment, *tried));
    placed = *std::move(tried);
  }
  for (std::size_t i = 0; i < inside.size(); ++i) {
    (*requests)[inside[i]].input = input;
    (*requests)[inside[i]].offset = placed.offsets[i];
  }
  return absl::OkStatus();
}

absl::Status Placement::UseDonated(const exec::Plan& plan, std::vector<Request>* requests) const {
  if (donated_.empty()) return absl::OkStatus();
  std::vector<Request> moved = *requests;
  for (const int input : donated_) NPURT_RETURN_IF_ERROR(FillDonated(input, plan, &moved));
  std::vector<int> all, rest;
  for (std::size_t r = 0; r < moved.size(); ++r) {
    all.push_back(static_cast<int>(r));
    if (moved[r].input < 0) rest.push_back(static_cast<int>(r));
  }
  NPURT_ASSIGN_OR_RETURN(const memory::StepOrder order,
                         memory::StepOrder::FromSchedule(ScheduleOf(program_)));
  NPURT_ASSIGN_OR_RETURN(const memory::MemoryPlan without,
                         memory::PlanMemory(BuffersOf(*requests, all), order, kAlignment));
  NPURT_ASSIGN_OR_RETURN(const memory::MemoryPlan with,
                         memory::PlanMemory(BuffersOf(moved, rest), order, kAlignment));
  // Moves that save nothing are not made: an arena that was bound for the plan without is enough.
  if (with.arena_bytes < without.arena_bytes) *requests = std::move(moved);
  return absl::OkStatus();
}

absl::Status Placement::Place(exec::Plan* plan, LayoutCache* layouts) {
  std::vector<int> views(program_.steps.size(), 0), insides(program_.steps.size(), 0);
  std::vector<Granted> in_place;
  for (const Granted& asked : offers_) {
    const exec::Step& step = program_.steps[asked.step];
    if (step.outputs[asked.offer.out] == kNone || step.inputs[asked.offer.in] == kNone) continue;
    switch (asked.offer.kind) {
      case ops::BindContext::kView:
        views[asked.step] += GrantView(*plan, asked);
        break;
      case ops::BindContext::kInside:
        insides[asked.step] += GrantInside(*plan, asked);
        break;
      case ops::BindContext::kInPlace:
        in_place.push_back(asked);
        break;
    }
  }
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    const exec::Step& step = program_.steps[s];
    const int outputs = static_cast<int>(
        std::count_if(step.outputs.begin(), step.outputs.end(), [](int v) { return v != kNone; }));
    plan->steps[s].skip = (views[s] > 0 && views[s] == outputs) ||
                          (insides[s] > 0 && insides[s] == static_cast<int>(step.inputs.size()));
  }

  roots_.resize(nodes_.size());
  std::vector<std::size_t> offsets(nodes_.size());
  for (std::size_t v = 0; v < nodes_.size(); ++v)
    roots_[v] = RootOf(static_cast<int>(v), &offsets[v]);
  std::vector<Request> requests = CollectRequests(*plan, in_place);
  NPURT_RETURN_IF_ERROR(UseDonated(*plan, &requests));
  std::vector<int> in_arena, place_of(nodes_.size(), -1), request_of(nodes_.size(), -1);
  for (std::size_t r = 0; r < requests.size(); ++r) {
    request_of[requests[r].value] = static_cast<int>(r);
    if (requests[r].input >= 0) continue;
    place_of[requests[r].value] = static_cast<int>(in_arena.size());
    in_arena.push_back(static_cast<int>(r));
  }
  NPURT_ASSIGN_OR_RETURN(const memory::MemoryPlan placed,
                         PlaceRequests(BuffersOf(requests, in_arena), layouts));
  for (std::size_t v = 0; v < nodes_.size(); ++v) {
    exec::PlannedValue& planned = plan->values[v];
    if (planned.base == Base::kPool || planned.base == Base::kNone) continue;
    const int root = roots_[v];
    planned.base = program_.values[root].home;
    planned.index = plan->values[root].index;
    planned.offset = offsets[v];
    if (planned.base != Base::kArena) continue;
    const Request& request = requests[request_of[root]];
    if (request.input >= 0) {
      planned.base = Base::kInput;
      planned.index = request.input;
      planned.offset += request.offset;
    } else {
      planned.offset += placed.offsets[place_of[root]];
    }
  }
  for (const Request& request : requests)
    if (request.input >= 0) plan->donated_bytes += request.buffer.bytes;
  plan->values_bytes = AlignUp(placed.arena_bytes, kAlignment);
  plan->lower_bound_bytes = placed.lower_bound_bytes;
  std::size_t scratch;
  if (!CheckedMul(plan->scratch_bytes, static_cast<std::size_t>(participants_), &scratch) ||
      !CheckedAdd(plan->values_bytes, scratch, &plan->arena_bytes))
    return absl::ResourceExhaustedError("the arena does not fit the address space");
  return absl::OkStatus();
}

}  // namespace npurt::compile
