// Random graphs on the cpu device against the reference device.
//
// Thread safety: pure functions.
#ifndef NPURT_TESTS_FUZZ_DIFFERENTIAL_H_
#define NPURT_TESTS_FUZZ_DIFFERENTIAL_H_

#include <string>
#include <utility>
#include <vector>

#include "fuzz/random_graph.h"

namespace npurt::fuzz {

// Options and their values; "donate" is the set of donated inputs, as bits.
using Settings = std::vector<std::pair<std::string, std::string>>;
std::string SettingsText(const Settings& settings);

// The outputs of the second of two runs in a session with these options.
absl::StatusOr<std::vector<Value>> RunCase(const Case& made, const Settings& settings);

struct Finding {
  Settings settings;
  std::string what;  // empty: the devices agree
};
// How strictly outputs of the cpu were compared, and how far the worst that passed went towards its
// bound.
inline constexpr double kTight = 1e-4;  // of the largest element
struct Counts {
  long long exact = 0, tight = 0, loose = 0;
  double furthest = 0;
};
// Compares the reference device with the cpu under its default options and `more` random ones, and
// two instruction sets with each other bit by bit where they promise the same. `fixed` options come
// on top of all.
Finding Compare(const Case& made, Choices& choices, int more, const Settings& fixed = {},
                Counts* counts = nullptr);

// The smallest case found that still goes wrong under these options: nodes become inputs with the
// values that they computed.
Case Reduce(const Case& made, const Settings& settings);

// The graph as text, and the inputs as the constants of another one.
std::string CaseText(const Case& made);

}  // namespace npurt::fuzz

#endif  // NPURT_TESTS_FUZZ_DIFFERENTIAL_H_
