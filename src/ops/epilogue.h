// Epilogue: what the fuse pass moved into a matrix product or convolution, and how a reference loop
// applies it. See EpilogueSupport in op_def.h for the attributes.
//
// Thread safety: pure functions.
#ifndef NPURT_OPS_EPILOGUE_H_
#define NPURT_OPS_EPILOGUE_H_

#include "kernels/activation.h"
#include "ops/op_def.h"
#include "ops/poller.h"

namespace npurt::ops {

// The activation and its parameters; no bias, no residual.
kernels::Epilogue EpilogueOf(const Attributes& attributes);

double ApplyActivation(const kernels::Epilogue& epilogue, double x);

// What a reference stores for the exact sum `x`: integers wrap around, floats get the activation.
template <typename T, typename Sum>
T Finished(const kernels::Epilogue& epilogue, Sum x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x);
  } else {
    return T(ApplyActivation(epilogue, x));
  }
}

// What sums of T are kept in.
template <typename T>
using SumOf = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

// Whether the fuse pass has added a Relu to an operator on bytes.
inline bool HasRelu(const Attributes& attributes) {
  return attributes.Int("activation") == static_cast<std::int64_t>(kernels::Activation::kRelu);
}

// The instruction sets for a matrix kernel under the options of the program.
inline IsaSet MatrixIsa(const PrepareContext& context) {
  // The generic kernels are compiled for no set at all, so they are the same everywhere.
  return context.same_bits_on_every_isa() ? isa::kGeneric : context.isa();
}

// Nanoseconds of one core for SetTiles: whichever of arithmetic and memory takes longer.
inline double CostOf(double flops, double bytes) {
  return flops / 50 > bytes / 10 ? flops / 50 : bytes / 10;
}

}  // namespace npurt::ops

#endif  // NPURT_OPS_EPILOGUE_H_
