// Distance: how far two tensors lie apart, in every measure that `npurt compare` shows, and how
// much of it is allowed.
//
// Floating tensors are compared as numbers, also when their types differ; all others exactly. Pure
// functions.
#ifndef NPURT_CLI_DISTANCE_H_
#define NPURT_CLI_DISTANCE_H_

#include <string>
#include <vector>

#include "cli/array.h"
#include "cli/status.h"

namespace npurt::cli {

struct Distance {
  // What one side has where it is not finite or at the end of its type's range.
  struct Side {
    std::size_t nan = 0, inf = 0;
    std::size_t overflow =
        0;  // |x| at or beyond the largest number of the type; the other is finite
  };

  std::string problem;         // "", or why there is nothing to measure: other shapes or types
  bool exact = true;           // not floating: every difference counts
  std::size_t count = 0;       // numbers compared; a complex one is two
  std::size_t differing = 0;   // numbers that are not equal (NaN equals NaN)
  std::size_t not_finite = 0;  // of these: where one side is NaN or infinite
  double range = 0;            // the largest finite |a|
  double max_abs = 0;          // of |a - b|, both finite
  double max_rel = 0;          // of |a - b| / max(|a|, |b|): at most 2
  double cosine = 1;           // of the angle between both, as vectors; 1 if both are zero
  double ulp = 0;              // most steps between them in the coarsest type at hand
  Side a, b;

  // max_abs as a part of the range; infinite if that is zero and max_abs is not.
  double part_of_range() const;
};

// `a` is what is right. `rounded_to`: a type that numbers of either were rounded to, as they may be
// stored in a wider one; NONE if there is none.
Distance Measure(const Array& a, const Array& b, npurt_dtype rounded_to = NPURT_DTYPE_NONE);

// Of two that have several parts: the worst of each measure.
void Merge(const Distance& part, Distance* whole);

// How coarse a floating type is: the smaller, the finer. -1 for types that are none.
int Coarseness(npurt_dtype dtype);

// What is allowed: |a - b| <= absolute + relative * range, and at least this cosine. NaN and
// infinity must stand where they stand in `a`, whatever the limits.
struct Limits {
  bool numbers = true;  // absolute and relative are checked
  double absolute = 0, relative = 0;
  double cosine = -1;  // -1: not checked
};

// For results that were computed in a type of this coarseness, or finer.
Limits DefaultLimits(int coarseness);

// "abs=1e-3,rel=1e-2,cosine=0.999": what is named is checked, the rest is not.
Status ParseLimits(const std::string& text, Limits* out);
std::string Describe(const Limits& limits);

// How often the error fits into what is allowed: above 1 it is too large.
double Excess(const Distance& distance, const Limits& limits);

}  // namespace npurt::cli

#endif  // NPURT_CLI_DISTANCE_H_
