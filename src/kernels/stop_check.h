// StopCheck: how loops over long rows ask whether the run is to stop.
//
// Kernels know nothing of runs, so the loops around them hand out rows piece by piece (long_rows.h)
// and call this in between. Plain data: files of one instruction set include it.
#ifndef NPURT_KERNELS_STOP_CHECK_H_
#define NPURT_KERNELS_STOP_CHECK_H_

namespace npurt::kernels {

struct StopCheck {
  void (*call)(const void* run) = nullptr;  // throws what shall end the tile; null: nobody asks
  const void* run = nullptr;
};

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_STOP_CHECK_H_
