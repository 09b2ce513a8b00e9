#include "submitter.h"

namespace npurt::capi {

namespace {
// Of the thread, while it is in Work. Says nothing to anybody but the thread itself.
constinit thread_local void* g_queue_of_thread = nullptr;
}  // namespace

Submitter::Submitter(std::shared_ptr<const npurt_executor> executor, int max_threads)
    : executor_(std::move(executor)) {
  MutexLock lock(queue_->mutex);
  queue_->max_threads = max_threads;
}

Submitter::~Submitter() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(queue_->mutex);
    queue_->closed = true;
    queue_->changed.SignalAll();
    threads.swap(queue_->threads);
  }
  for (std::thread& thread : threads) {
    if (thread.get_id() == std::this_thread::get_id())
      thread.detach();  // it ends by itself, as soon as it is back in Work
    else
      thread.join();
  }
}

void Submitter::Work(const std::shared_ptr<Queue>& queue) {
  g_queue_of_thread = const_cast<std::shared_ptr<Queue>*>(&queue);
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

bool Submitter::StartIfShort(const std::shared_ptr<Queue>& queue) {
  const int threads = static_cast<int>(queue->threads.size());
  if (queue->closed || static_cast<int>(queue->tasks.size()) <= queue->idle ||
      threads - queue->waiting >= queue->max_threads)
    return true;
  try {
    queue->threads.reserve(queue->threads.size() + 1);
    queue->threads.emplace_back([queue] { Work(queue); });
    return true;
  } catch (...) {
    return false;
  }
}

Submitter::Waiting::Waiting()
    : queue_(g_queue_of_thread == nullptr
                 ? nullptr
                 : *static_cast<const std::shared_ptr<Queue>*>(g_queue_of_thread)) {
  if (queue_ == nullptr) return;
  MutexLock lock(queue_->mutex);
  ++queue_->waiting;
  StartIfShort(queue_);
}

Submitter::Waiting::~Waiting() {
  if (queue_ == nullptr) return;
  MutexLock lock(queue_->mutex);
  --queue_->waiting;
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
  MutexLock lock(queue_->mutex);
  queue_->tasks.push_back(std::move(task));
  queue_->changed.Signal();
  // If no thread can be started, those there are will get to it.
  if (StartIfShort(queue_) || !queue_->threads.empty()) return absl::OkStatus();
  queue_->tasks.pop_back();
  return absl::UnavailableError("no thread can be started");
}

}  // namespace npurt::capi
