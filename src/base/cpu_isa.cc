// IsaSet: detection by CPUID and XGETBV, and the names.
#include "base/cpu_isa.h"

#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace npurt {
namespace {

struct NamedIsa {
  const char* name;
  IsaSet bit;
  IsaSet builds_on;
};
constexpr NamedIsa kNamed[] = {
    {"avx2", isa::kAvx2, isa::kGeneric},
    {"avx512", isa::kAvx512, isa::kAvx2},
    {"avx512_vnni", isa::kAvx512Vnni, isa::kAvx2 | isa::kAvx512},
    {"avx512_fp16", isa::kAvx512Fp16, isa::kAvx2 | isa::kAvx512},
    {"amx", isa::kAmx, isa::kAvx2 | isa::kAvx512},
};

#if defined(__x86_64__)

// XCR0: which register files the operating system saves. Only valid if CPUID reports OSXSAVE.
std::uint64_t SavedRegisters() {
  std::uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

IsaSet Detect() {
  // Bit numbers: Intel SDM volume 2A, CPUID leaves 1 and 7; volume 1, chapter 13 for XCR0.
  constexpr std::uint64_t kYmm = 0x6, kZmm = 0xe6, kTiles = 0x60000;
  unsigned a, b, c, d;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return isa::kGeneric;
  const unsigned wanted =
      (1u << 12) | (1u << 27) | (1u << 28) | (1u << 29);  // FMA OSXSAVE AVX F16C
  if ((c & wanted) != wanted) return isa::kGeneric;
  const std::uint64_t saved = SavedRegisters();
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return isa::kGeneric;
  if ((saved & kYmm) != kYmm || (b & (1u << 5)) == 0) return isa::kGeneric;
  IsaSet found = isa::kAvx2;
  const unsigned avx512 = (1u << 16) | (1u << 17) | (1u << 30) | (1u << 31);  // F DQ BW VL
  if ((saved & kZmm) != kZmm || (b & avx512) != avx512) return found;
  found |= isa::kAvx512;
  if ((c & (1u << 11)) != 0) found |= isa::kAvx512Vnni;
  if ((d & (1u << 23)) != 0) found |= isa::kAvx512Fp16;
  const unsigned amx = (1u << 22) | (1u << 24) | (1u << 25);  // BF16 TILE INT8
  if ((saved & kTiles) == kTiles && (d & amx) == amx) found |= isa::kAmx;
  return found;
}

#else

IsaSet Detect() { return isa::kGeneric; }

#endif

constexpr IsaSet kKnown = 1u << 31;
constinit std::atomic<IsaSet> cached{0};

}  // namespace

IsaSet DetectedIsa() {
  // Two threads may both detect: they find the same.
  IsaSet set = cached.load(std::memory_order_relaxed);
  if (set == 0) {
    set = Detect() | kKnown;
    cached.store(set, std::memory_order_relaxed);
  }
  return set & ~kKnown;
}

std::optional<IsaSet> IsaUpTo(absl::string_view tier) {
  if (tier == "generic") return isa::kGeneric;
  if (tier == "avx2") return isa::kAvx2;
  if (tier == "avx512") return isa::kAvx2 | isa::kAvx512;
  if (tier == "best") return ~kKnown;
  return std::nullopt;
}

std::optional<IsaSet> IsaNamed(absl::string_view name) {
  for (const NamedIsa& row : kNamed)
    if (name == row.name) return row.bit;
  return std::nullopt;
}

IsaSet WithoutIsa(IsaSet set, IsaSet removed) {
  set &= ~removed;
  // In order of the table, so that what builds on a set removed here goes too.
  for (const NamedIsa& row : kNamed)
    if (!HasAll(set, row.builds_on)) set &= ~row.bit;
  return set;
}

std::string IsaText(IsaSet set) {
  std::string text;
  for (const NamedIsa& row : kNamed) {
    if (!HasAll(set, row.bit)) continue;
    if (!text.empty()) text += '+';
    text += row.name;
  }
  return text.empty() ? "generic" : text;
}

}  // namespace npurt
