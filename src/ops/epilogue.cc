// Epilogue: see epilogue.h.
#include "ops/epilogue.h"

#include <cmath>

namespace npurt::ops {

using kernels::Activation;
using kernels::Epilogue;

Epilogue EpilogueOf(const Attributes& attributes) {
  Epilogue e;
  e.activation = static_cast<Activation>(attributes.Int("activation", 0));
  e.alpha = attributes.Float("activation_alpha", 0);
  e.beta = attributes.Float("activation_beta", 0);
  return e;
}

namespace {

// NaN stays NaN.
double Clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

}  // namespace

double ApplyActivation(const Epilogue& e, double x) {
  const double alpha = e.alpha, beta = e.beta;
  switch (e.activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kClip:
      return Clamp(x, alpha, beta);
    case Activation::kLeakyRelu:
      return x < 0 ? alpha * x : x;
    case Activation::kHardSigmoid:
      return Clamp(alpha * x + beta, 0, 1);
    case Activation::kHardSwish:
      return x * Clamp(x / 6 + 0.5, 0, 1);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kGelu:
      return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::kGeluTanh:
      return x / 2 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  }
  return x;
}

}  // namespace npurt::ops
