// UnseededKey: what a random node without a seed of its own starts from.
//
// Thread safety: pure function.
#ifndef NPURT_OPS_RANDOM_KEY_H_
#define NPURT_OPS_RANDOM_KEY_H_

#include <cstdint>

#include "base/philox.h"
#include "base/run_context.h"

namespace npurt::ops {

// Differs between nodes and between runs; the same for the same seed of the session.
inline std::uint64_t UnseededKey(const RunContext& run) {
  return MixBits(run.random_key() + MixBits(static_cast<std::uint64_t>(run.node())));
}

}  // namespace npurt::ops

#endif  // NPURT_OPS_RANDOM_KEY_H_
