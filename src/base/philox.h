// Philox 4x32-10: four random words from a counter of 128 bits and a key of 64, without any state.
//
// Ten rounds, each two multiplications whose halves change places, as defined in "Parallel random
// numbers: as easy as 1, 2, 3" (J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, 2011). Element
// i of a tensor depends on i and the key alone, so threads and tiles may compute it in any order.
//
// Thread safety: pure functions.
#ifndef NPURT_BASE_PHILOX_H_
#define NPURT_BASE_PHILOX_H_

#include <array>
#include <cstdint>

namespace npurt {

using PhiloxWords = std::array<std::uint32_t, 4>;

constexpr PhiloxWords Philox(PhiloxWords counter, std::uint64_t key) {
  constexpr std::uint64_t kMultiply0 = 0xD2511F53, kMultiply1 = 0xCD9E8D57;
  constexpr std::uint32_t kStep0 = 0x9E3779B9, kStep1 = 0xBB67AE85;  // golden ratio, sqrt(3) - 1
  std::uint32_t key0 = static_cast<std::uint32_t>(key),
                key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = kMultiply0 * counter[0], b = kMultiply1 * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(a)};
    key0 += kStep0;
    key1 += kStep1;
  }
  return counter;
}

// A bijection of 64 bits that makes keys of small numbers differ in all bits (the finaliser of
// SplitMix64).
constexpr std::uint64_t MixBits(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// Two words as a number in [0, 1) with 53 bits.
constexpr double UnitDouble(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = std::uint64_t{high} << 21 ^ low >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace npurt

#endif  // NPURT_BASE_PHILOX_H_
