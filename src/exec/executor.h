// Executor: a host's thread pool, which then lends the threads that help a run.
//
// Thread safety: both calls from any thread.
#ifndef NPURT_EXEC_EXECUTOR_H_
#define NPURT_EXEC_EXECUTOR_H_

namespace npurt::exec {

class Executor {
 public:
  virtual ~Executor() = default;

  // How many threads may compute at once, the caller of a run included.
  virtual int Concurrency() = 0;

  // Runs task(argument) once, soon, on some thread. False: it will not run. Must not wait. Nothing
  // depends on a task being run: a run is correct with any number of threads that arrive.
  virtual bool Submit(void (*task)(void* argument), void* argument) = 0;
};

}  // namespace npurt::exec

#endif  // NPURT_EXEC_EXECUTOR_H_
