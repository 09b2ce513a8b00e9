// Activation: the elementwise functions that matrix and convolution kernels apply to their result.
//
// Thread safety: values.
#ifndef NPURT_KERNELS_ACTIVATION_H_
#define NPURT_KERNELS_ACTIVATION_H_

#include <cstdint>

namespace npurt::kernels {

// The numbers stand in node attributes ("activation"): do not renumber.
enum class Activation : std::int32_t {
  kNone = 0,
  kRelu = 1,         // max(x, 0)
  kClip = 2,         // min(max(x, alpha), beta)
  kLeakyRelu = 3,    // x < 0 ? alpha * x : x
  kHardSigmoid = 4,  // max(0, min(1, alpha * x + beta))
  kHardSwish = 5,    // x * max(0, min(1, x / 6 + 1 / 2))
  kSigmoid = 6,
  kSilu = 7,  // x * sigmoid(x)
  kTanh = 8,
  kGelu = 9,       // x / 2 * (1 + erf(x / sqrt 2))
  kGeluTanh = 10,  // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
};

// What a kernel does to a finished sum, in this order; then it is stored.
struct Epilogue {
  float scale = 1;                     // times the sum
  const float* row_bias = nullptr;     // one per output row, times bias_scale
  const float* column_bias = nullptr;  // one per output column, times bias_scale
  float bias_scale = 1;
  const float* residual = nullptr;   // one per output, times residual_scale
  std::int64_t residual_stride = 0;  // floats between its rows
  float residual_scale = 1;
  Activation activation = Activation::kNone;
  float alpha = 0, beta = 0;  // of the activation
};

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_ACTIVATION_H_
