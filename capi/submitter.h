// Submitter: threads on which submitted runs are driven, or the host's executor.
//
// Threads start when there is more to do than they can take, up to a bound, sleep while there is
// nothing, and are joined by the destructor. A run that is driven here is helped by the session's
// team like any other. A thread that waits for the host (Waiting) does not count against the bound, so
// that other runs find one.
//
// Thread safety: Submit from any thread.
#ifndef NPURT_CAPI_SUBMITTER_H_
#define NPURT_CAPI_SUBMITTER_H_

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "guard.h"

namespace npurt::capi {

class Submitter {
  struct Queue;

 public:
  Submitter(std::shared_ptr<const npurt_executor> executor, int max_threads);
  // What was submitted is done first. May run on one of the threads itself, when the last owner of
  // a session is a run that ends there.
  ~Submitter();
  Submitter(const Submitter&) = delete;
  Submitter& operator=(const Submitter&) = delete;

  // Until the end of the scope the calling thread, if it is one of a submitter's, only waits.
  class Waiting {
   public:
    Waiting();
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    const std::shared_ptr<Queue> queue_;
  };

  // Runs `task` once, soon, on another thread. UNAVAILABLE: nobody takes it.
  absl::Status Submit(std::function<void()> task);

 private:
  // What threads share with the submitter, which may be gone before the thread that destroyed it.
  struct Queue {
    Mutex mutex;
    CondVar changed;
    std::deque<std::function<void()>> tasks NPURT_GUARDED_BY(mutex);
    std::vector<std::thread> threads NPURT_GUARDED_BY(mutex);
    int max_threads NPURT_GUARDED_BY(mutex) = 0;
    int idle NPURT_GUARDED_BY(mutex) = 0;
    int waiting NPURT_GUARDED_BY(mutex) = 0;
    bool closed NPURT_GUARDED_BY(mutex) = false;
  };
  static void Work(const std::shared_ptr<Queue>& queue);
  // Starts a thread if there is more to do than threads to do it. False if that failed.
  static bool StartIfShort(const std::shared_ptr<Queue>& queue) NPURT_REQUIRES(queue->mutex);
  absl::Status SubmitToHost(std::function<void()> task);

  const std::shared_ptr<const npurt_executor> executor_;
  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
};

}  // namespace npurt::capi

#endif  // NPURT_CAPI_SUBMITTER_H_
