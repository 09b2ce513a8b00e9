// What the recurrent operators RNN, GRU and LSTM share: their options, their sizes, where a row of
// an operand lies, and the fast version.
//
// Gates stand in W, R and B in the order of ONNX: RNN i; GRU z, r, h; LSTM i, o, f, c.
//
// Thread safety: pure functions and values.
#ifndef NPURT_OPS_RECURRENT_H_
#define NPURT_OPS_RECURRENT_H_

#include <cstdint>

#include "kernels/elementwise/elementwise.h"
#include "ops/op_def.h"

namespace npurt::ops::recurrent {

enum class Cell : std::uint8_t { kRnn, kGru, kLstm };
constexpr int GatesOf(Cell cell) { return cell == Cell::kRnn ? 1 : cell == Cell::kGru ? 3 : 4; }
constexpr int ActivationsOf(Cell cell) { return static_cast<int>(cell) + 1; }

// Inputs and outputs.
inline constexpr int kX = 0, kW = 1, kR = 2, kB = 3, kLengths = 4, kInitialH = 5, kInitialC = 6,
                     kP = 7, kInputs = 8;
inline constexpr int kY = 0, kYH = 1, kYC = 2;

struct ActivationRow {
  const char* name;
  double (*f)(double x, double alpha, double beta);
  kernels::ElementwiseOp op;  // kIdentity: there is no row kernel
  int params;                 // how many of alpha and beta it takes
  float alpha, beta;          // defaults
};

struct Activation {
  const ActivationRow* row = nullptr;
  float params[2] = {};

  double operator()(double x) const {
    return row->f(x, static_cast<double>(params[0]), static_cast<double>(params[1]));
  }
};

struct Options {
  Cell cell = Cell::kRnn;
  int directions = 1;
  bool reversed = false;     // the first direction
  bool batch_first = false;  // layout 1
  bool input_forget = false;
  bool linear_before_reset = false;
  float clip = 0;                 // 0: no limit
  std::int64_t hidden_size = -1;  // -1: as R has it
  Activation activations[2][3];

  bool IsReversed(int direction) const { return direction == 1 || reversed; }
};

absl::StatusOr<Options> OptionsOf(Cell cell, const Attributes& attributes);

struct Sizes {
  std::int64_t steps, batch, input, hidden;
  int directions;
  bool batch_first;

  // Rows of X, of Y and of the states.
  std::int64_t XRow(std::int64_t t, std::int64_t b) const {
    return batch_first ? b * steps + t : t * batch + b;
  }
  std::int64_t YRow(std::int64_t t, int d, std::int64_t b) const {
    return batch_first ? (b * steps + t) * directions + d : (t * directions + d) * batch + b;
  }
  std::int64_t StateRow(int d, std::int64_t b) const {
    return batch_first ? b * directions + d : d * batch + b;
  }
};

// The same of what may have symbols; checks that the shapes fit as far as they are known. `shapes`
// has an entry per input, null if absent.
struct SymbolicSizes {
  Dim steps, batch, input, hidden;
};
absl::StatusOr<SymbolicSizes> CheckShapes(const Options& options,
                                          absl::Span<const SymDims* const> shapes);

// Checks concrete shapes. Context is a BindContext or a RunContext.
template <typename Context>
absl::StatusOr<Sizes> SizesOf(const Context& context, const Options& options) {
  SymDims dims[kInputs];
  const SymDims* shapes[kInputs] = {};
  for (int i = 0; i < kInputs; ++i) {
    if (!context.has_input(i)) continue;
    dims[i] = ToSymDims(context.dims(i));
    shapes[i] = &dims[i];
  }
  NPURT_ASSIGN_OR_RETURN(const SymbolicSizes s, CheckShapes(options, shapes));
  return Sizes{s.steps.value(),  s.batch.value(),    s.input.value(),
               s.hidden.value(), options.directions, options.batch_first};
}

// Each length must lie in 0 … steps.
absl::Status CheckLengths(const RunContext& run, const Sizes& sizes);
// How many steps row `b` of the batch has.
inline std::int64_t LengthOf(const RunContext& run, const Sizes& sizes, std::int64_t b) {
  return run.has_input(kLengths) ? run.Load<std::int32_t>(kLengths, b) : sizes.steps;
}

// The fast version: float32 with constant W and R.
template <Cell kCell>
absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context);
template <Cell kCell>
absl::Status Bind(BindContext& bind);
template <Cell kCell>
absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch);

}  // namespace npurt::ops::recurrent

#endif  // NPURT_OPS_RECURRENT_H_
