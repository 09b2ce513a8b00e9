// What of a window lies inside an image: shared by the channels-last kernels.
//
// Thread safety: pure functions.
#ifndef NPURT_KERNELS_CHANNELS_LAST_WINDOW_H_
#define NPURT_KERNELS_CHANNELS_LAST_WINDOW_H_

#include <algorithm>
#include <cstdint>

#include "base/checked_math.h"
#include "kernels/conv/conv.h"

namespace npurt::kernels {

struct Range {
  std::int64_t first, end;
};

// The taps of output `o` that lie inside dimension `d` of the image; first >= end if none does.
inline Range TapsInside(const ConvProblem& p, int d, std::int64_t o) {
  const std::int64_t at = o * p.stride[d] - p.pad[d];  // of tap 0
  return {at >= 0 ? 0 : std::min(p.kernel[d], CeilDiv(-at, p.dilation[d])),
          at >= p.in[d] ? 0 : std::min(p.kernel[d], CeilDiv(p.in[d] - at, p.dilation[d]))};
}

// The outputs whose tap `tap` lies inside dimension `d` of the image.
inline Range OutputsReached(const ConvProblem& p, int d, std::int64_t tap) {
  const std::int64_t at = tap * p.dilation[d] - p.pad[d];  // of output 0
  return {std::min(at >= 0 ? 0 : CeilDiv(-at, p.stride[d]), p.out[d]),
          std::min(at >= p.in[d] ? 0 : CeilDiv(p.in[d] - at, p.stride[d]), p.out[d])};
}

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_CHANNELS_LAST_WINDOW_H_
