// Placement: decides which values share bytes, then where in the arena they lie.
//
// Operators offer; this class grants. A view (Reshape) makes its output part of its input; a value
// produced inside another (the inputs of a Concat) makes the input part of the output, so that
// nothing needs copying. Values that share bytes form a tree whose root is placed: in the arena, in a
// constant, or in a buffer of the caller. In-place requests between roots go to the memory planner,
// which alone knows when values die.
//
// A donated input is a room of its own: what is made after its last use, or in place of it, may lie
// there instead of in the arena. Values move there, large ones first, as long as the memory planner
// finds them a place.
//
// Grants are refused where they would be wrong: nothing that a step writes may lie in a constant or in
// an input that was not donated; two values never both claim to contain a third; values inside one another across
// streams are left alone, since their order of birth is not one.
//
// Thread safety: used by one thread.
#ifndef NPURT_COMPILE_PLACE_H_
#define NPURT_COMPILE_PLACE_H_

#include <deque>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "base/mutex.h"
#include "base/status.h"
#include "exec/program.h"
#include "memory/planner.h"
#include "memory/step_order.h"
#include "ops/op_def.h"

namespace npurt::compile {

// LayoutCache: where values lay in plans made before.
//
// A plan for other shapes whose values have the same lives and sizes no larger may use the same
// addresses. So a cache that grows by a row in every run is placed anew only when it outgrows its
// layout: what grew then gets twice the bytes it needs.
//
// Thread safety: all calls from any thread.
class LayoutCache {
 public:
  struct Layout {
    std::vector<memory::BufferRequest> requests;
    memory::MemoryPlan placed;
    std::size_t total_bytes = 0;  // of all requests
  };

  // The newest layout in which `requests` fit without wasting most of it, or null. `smaller` becomes the
  // newest of the same lives that is too small, or null.
  std::shared_ptr<const Layout> Find(absl::Span<const memory::BufferRequest> requests,
                                     std::shared_ptr<const Layout>* smaller) const
      NPURT_EXCLUDES_LOCK(mutex_);
  void Add(std::shared_ptr<const Layout> layout) NPURT_EXCLUDES_LOCK(mutex_);
  // How many were added.
  std::int64_t added() const NPURT_EXCLUDES_LOCK(mutex_);

 private:
  static constexpr std::size_t kMaxLayouts = 8;

  mutable Mutex mutex_;
  std::deque<std::shared_ptr<const Layout>> layouts_ NPURT_GUARDED_BY(mutex_);  // newest first
  std::int64_t added_ NPURT_GUARDED_BY(mutex_) = 0;
};

class Placement {
 public:
  Placement(const exec::Program& program, int participants);

  // Inputs of the program, ascending. Their memory starts at a multiple of 64 and nobody else has it.
  void Donate(absl::Span<const int> inputs) { donated_.assign(inputs.begin(), inputs.end()); }
  // In the order of the steps.
  void AddOffer(int step, const ops::BindContext::Offer& offer);

  // Fills the addresses of `plan` (whose values have their sizes), its arena and its bounds, and
  // marks steps that have nothing left to do. The result has passed the verifier. `layouts` null: no
  // byte more than these shapes need.
  absl::Status Place(exec::Plan* plan, LayoutCache* layouts);

 private:
  struct Granted {
    int step;
    ops::BindContext::Offer offer;
  };
  struct Node {
    int parent;                // itself: a root
    std::size_t offset = 0;    // in the parent
    bool contains = false;     // others were put inside
  };

  int RootOf(int value, std::size_t* offset) const;
  bool GrantView(const exec::Plan& plan, const Granted& asked);
  bool GrantInside(const exec::Plan& plan, const Granted& asked);
  // A value of its own bytes, and those that share them.
  struct Request {
    memory::BufferRequest buffer;
    int value;                 // the root
    int in_place_of_input = -1;  // the step that makes it can write over this input, another root
    int input = -1;            // it lies in this donated input ...
    std::size_t offset = 0;    // ... so far from its start
  };
  static std::vector<memory::BufferRequest> BuffersOf(const std::vector<Request>& requests,
                                                      absl::Span<const int> some);
  std::vector<Request> CollectRequests(const exec::Plan& plan,
                                       absl::Span<const Granted> in_place) const;
  // Gives requests a place in the input, if they have none yet.
  absl::Status FillDonated(int input, const exec::Plan& plan, std::vector<Request>* requests) const;
  absl::Status UseDonated(const exec::Plan& plan, std::vector<Request>* requests) const;
  absl::StatusOr<memory::MemoryPlan> PlaceRequests(std::vector<memory::BufferRequest> requests,
                                                   LayoutCache* layouts) const;

  const exec::Program& program_;
  int participants_;
  std::vector<int> donated_;
  std::vector<Granted> offers_;
  std::vector<Node> nodes_;
  std::vector<int> producer_;  // step that makes a value, -1
  std::vector<int> roots_;     // of each value, once offers are granted
};

// The schedule of a program for the planner and the verifier.
memory::Schedule ScheduleOf(const exec::Program& program);

}  // namespace npurt::compile

#endif  // NPURT_COMPILE_PLACE_H_
