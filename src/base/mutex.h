// Mutex, MutexLock and CondVar: std::mutex with clang's thread-safety annotations.
//
// Members say which lock guards them (NPURT_GUARDED_BY) and functions which lock they need
// (NPURT_REQUIRES); clang checks both with -Wthread-safety, other compilers see plain std types.
// A Mutex may be constructed at compile time, so a namespace-scope one needs no constructor at
// load and, being trivially destructible on Linux, no destructor at exit.
//
// Thread safety: what std::mutex and std::condition_variable promise.
#ifndef NPURT_BASE_MUTEX_H_
#define NPURT_BASE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define NPURT_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define NPURT_THREAD_ANNOTATION(x)
#endif

#define NPURT_CAPABILITY(x) NPURT_THREAD_ANNOTATION(capability(x))
#define NPURT_SCOPED_CAPABILITY NPURT_THREAD_ANNOTATION(scoped_lockable)
#define NPURT_GUARDED_BY(x) NPURT_THREAD_ANNOTATION(guarded_by(x))
#define NPURT_PT_GUARDED_BY(x) NPURT_THREAD_ANNOTATION(pt_guarded_by(x))
#define NPURT_REQUIRES(...) NPURT_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define NPURT_EXCLUDES_LOCK(...) NPURT_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define NPURT_ACQUIRE(...) NPURT_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define NPURT_RELEASE(...) NPURT_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define NPURT_TRY_ACQUIRE(...) NPURT_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define NPURT_NO_THREAD_SAFETY_ANALYSIS NPURT_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace npurt {

class NPURT_CAPABILITY("mutex") Mutex {
 public:
  constexpr Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() NPURT_ACQUIRE() { mutex_.lock(); }
  void Unlock() NPURT_RELEASE() { mutex_.unlock(); }
  bool TryLock() NPURT_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a Mutex until the end of the scope.
class NPURT_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) NPURT_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() NPURT_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable for one Mutex. Wakes may be spurious: wait in a loop.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void Wait(Mutex& mutex) NPURT_REQUIRES(mutex) NPURT_NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    cond_.wait(lock);
    lock.release();
  }

  // False if `deadline` passed first.
  template <typename Clock, typename Duration>
  bool WaitUntil(Mutex& mutex, std::chrono::time_point<Clock, Duration> deadline)
      NPURT_REQUIRES(mutex) NPURT_NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool in_time = cond_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }

  void Signal() { cond_.notify_one(); }
  void SignalAll() { cond_.notify_all(); }

 private:
  std::condition_variable cond_;
};

}  // namespace npurt

#endif  // NPURT_BASE_MUTEX_H_
