// Handles of runs and futures.
//
// Thread safety: as npurt.h says.
#ifndef NPURT_CAPI_RUN_H_
#define NPURT_CAPI_RUN_H_

#include "session.h"

struct npurt_run {
  std::atomic<int> refs{1};
  npurt::capi::Ref<npurt_session> session;
  const npurt_session::Ports* ports;  // of the session
  std::unique_ptr<npurt::session::Run> run;
  std::atomic<bool> busy{false};
  // Inputs with gaps are made row-major at each execution; outputs with gaps, or of strings, are
  // written after it. The others are bound as they are.
  std::vector<npurt::capi::Ref<npurt_value>> inputs, outputs;
};

struct npurt_future {
  std::atomic<int> refs{1};
  npurt::Mutex mutex;
  npurt::CondVar changed;
  bool ready NPURT_GUARDED_BY(mutex) = false;
  absl::Status status NPURT_GUARDED_BY(mutex);
};

#endif  // NPURT_CAPI_RUN_H_
