// SeededMutator: lets a fuzzer begin with inputs that are made here, so that no corpus is needed.
//
// An input too short to be anything is replaced by one of the seeds; all others are mutated as
// ever.
//
// Thread safety: one thread, as libFuzzer's.
#ifndef NPURT_TESTS_FUZZ_SEEDS_H_
#define NPURT_TESTS_FUZZ_SEEDS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace npurt::fuzz {

inline std::size_t SeededMutator(const std::vector<std::string>& seeds, std::uint8_t* data,
                                 std::size_t size, std::size_t max_size, unsigned random) {
  if (size >= 8 && random % 256 != 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string& seed = seeds[random / 256 % seeds.size()];
  size = std::min(seed.size(), max_size);
  std::memcpy(data, seed.data(), size);
  return size;
}

}  // namespace npurt::fuzz

#endif  // NPURT_TESTS_FUZZ_SEEDS_H_
