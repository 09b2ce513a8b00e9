// Gather: brings the pixels that a convolution's taps see side by side.
//
// The idea: a tile's part of the image goes into scratch once, with its padding (the stage); from
// there every row of the right operand is plain copying of whole runs, without a look at borders.
// Where taps lie too far apart for a stage of decent size, rows come straight from the image.
//
// Thread safety: pure functions on what they are given.
#ifndef NPURT_KERNELS_CONV_GATHER_H_
#define NPURT_KERNELS_CONV_GATHER_H_

#include <algorithm>
#include <cstdint>

#include "kernels/conv/conv.h"

namespace npurt::kernels {

// An ordinary convolution that yields every out_step-th output from out_first on. Input coordinate
// of lattice point j and tap t, per dimension: j * in_step + tap_first + t * tap_step.
struct ConvPhase {
  std::int64_t lattice[kConvRank];
  std::int64_t in[kConvRank];
  std::int64_t in_step[kConvRank], tap_first[kConvRank], tap_step[kConvRank], taps[kConvRank];
  std::int64_t first_tap[kConvRank], every_tap[kConvRank];  // which taps of the kernel these are
  std::int64_t out_first[kConvRank], out_step[kConvRank];
  std::int64_t pixels, tap_count, k;
};

// The part of the image that one tile sees, put into scratch once per block of k with its padding,
// so that gathering is plain copying. A line of x is split by x modulo the stride, so that the
// pixels of any tap lie side by side.
struct ConvStage {
  std::int64_t first[kConvRank];         // input coordinate of the first element
  std::int64_t count[kConvRank];         // z and y: input lines; x: elements of one residue
  std::int64_t residues, line, channel;  // floats
};

// The phases of a problem; SetConvDimension fills one dimension of an ordinary convolution.
std::int64_t ConvPhaseCount(const ConvProblem& problem);
ConvPhase ConvPhaseOf(const ConvProblem& problem, std::int64_t index);

// Whether pixel and tap are the same place of the image: then the image itself is the right
// operand.
bool ReadsImageDirectly(const ConvPhase& phase);
// Makes the pixels of such a phase one long row, which is copied faster.
void Flatten(ConvPhase* phase);

// Lattice points between the first and the last tap, per dimension.
inline std::int64_t TapSpan(const ConvPhase& f, int d) {
  return (f.taps[d] - 1) * std::max(f.tap_step[d], -f.tap_step[d]);
}
// The stage of lattice points [from, until) per dimension, for a phase with taps.
ConvStage StageOf(const ConvPhase& phase, const std::int64_t from[kConvRank],
                  const std::int64_t until[kConvRank]);
// The smallest box of lattice points around pixels [first, first + count).
void BoxOf(const ConvPhase& phase, std::int64_t first, std::int64_t count,
           std::int64_t from[kConvRank], std::int64_t until[kConvRank]);

// Copies run over a line's end by up to this many floats: buffers end that much later.
inline constexpr std::int64_t kGatherSlack = 16;

// Elements [0, count) of a line of the image seen from `first` on in steps, zeros outside it.
void CopyLine(const float* line, std::int64_t width, std::int64_t first, std::int64_t step,
              std::int64_t count, float* to);

// Channels [0, channels) of `image` into `to`, padded.
void FillStage(const ConvPhase& phase, const ConvStage& stage, const float* image,
               std::int64_t channels, float* to);

// Where a block of the right operand goes: panels of `columns` pixels, each with its k one after
// another, as the matrix kernels read them.
struct GatherTarget {
  float* panels;
  std::int64_t columns;  // of a panel
  std::int64_t panel;    // floats from one to the next
  float* line;           // for one row of all panels, and kGatherSlack more
};
// Rows [k, k + count) of the right operand: pixels [first, first + pixels), then zeros up to
// `width`, whole panels. Through `stage` (its memory is `staged`) unless that is null.
void GatherBlock(const ConvPhase& phase, const ConvStage* stage, float* staged, const float* image,
                 std::int64_t k, std::int64_t count, std::int64_t first, std::int64_t pixels,
                 std::int64_t width, const GatherTarget& to);

// The same with the channels from that of row `k` on at `plane`: in the stage if there is one.
void GatherRows(const ConvPhase& phase, const ConvStage* stage, const float* plane, std::int64_t k,
                std::int64_t count, std::int64_t first, std::int64_t pixels, std::int64_t width,
                const GatherTarget& to);

// Puts `rows` x `pixels` finished values where a phase of a transposed convolution has its outputs.
void ScatterPhase(const ConvProblem& problem, const ConvPhase& phase, const float* from,
                  std::int64_t stride, std::int64_t rows, std::int64_t first, std::int64_t pixels,
                  float* out);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_CONV_GATHER_H_
