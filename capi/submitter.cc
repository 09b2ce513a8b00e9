#include "submitter.h"

namespace npurt::capi {

Submitter::~Submitter() {
  {
    MutexLock lock(queue_->mutex);
    queue_->closed = true;
    queue_->changed.SignalAll();
  }
  MutexLock lock(mutex_);
  for (std::thread& thread : threads_) {
    if (thread.get_id() == std::this_thread::get_id())
      thread.detach();  // it ends by itself, as soon as it is back in Work
    else
      thread.join();
  }
}

void Submitter::Work(const std::shared_ptr<Queue>& queue) {
  for (;;) {
    std::function<void()> task;
    {
      MutexLock lock(queue->mutex);
      ++queue->idle;
      while (queue->tasks.empty() && !queue->closed) queue->changed.Wait(queue->mutex);
      --queue->idle;
      if (queue->tasks.empty()) return;
      task = std::move(queue->tasks.front());
      queue->tasks.pop_front();
    }
    task();
  }
}

absl::Status Submitter::SubmitToHost(std::function<void()> task) {
  auto boxed = std::make_unique<std::function<void()>>(std::move(task));
  const npurt_status status = executor_->submit(
      executor_->user_data,
      [](void* argument) {
        const std::unique_ptr<std::function<void()>> run(
            static_cast<std::function<void()>*>(argument));
        (*run)();
      },
      boxed.get());
  if (status != NPURT_OK)
    return absl::UnavailableError(absl::StrCat("the executor refused with status ", status));
  boxed.release();  // NOLINT: the executor runs it
  return absl::OkStatus();
}

absl::Status Submitter::Submit(std::function<void()> task) {
  if (executor_ != nullptr) return SubmitToHost(std::move(task));
  MutexLock lock(mutex_);
  bool start = false;
  {
    MutexLock queue_lock(queue_->mutex);
    queue_->tasks.push_back(std::move(task));
    start = static_cast<int>(queue_->tasks.size()) > queue_->idle &&
            static_cast<int>(threads_.size()) < max_threads_;
    queue_->changed.Signal();
  }
  if (!start) return absl::OkStatus();
  try {
    threads_.reserve(threads_.size() + 1);
    threads_.emplace_back([queue = queue_] { Work(queue); });
  } catch (...) {
    if (!threads_.empty()) return absl::OkStatus();  // the others will get to it
    MutexLock queue_lock(queue_->mutex);
    queue_->tasks.pop_back();
    return absl::UnavailableError("no thread can be started");
  }
  return absl::OkStatus();
}

}  // namespace npurt::capi
