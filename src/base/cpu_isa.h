// IsaSet: which instruction sets this CPU and its operating system offer to kernels.
//
// The idea: a set is a few bits, one per *tier that kernels are written for* rather than one per
// CPUID flag. A kernel row names the bits it needs; it may run if all are in the allowed set, which
// is what was detected, limited by the options max_isa and disable_isa.
//
// Thread safety: all functions may be called from any thread.
#ifndef NPURT_BASE_CPU_ISA_H_
#define NPURT_BASE_CPU_ISA_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace npurt {

using IsaSet = std::uint32_t;

namespace isa {

inline constexpr IsaSet kGeneric = 0;
inline constexpr IsaSet kAvx2 = 1u << 0;    // with FMA and F16C
inline constexpr IsaSet kAvx512 = 1u << 1;  // F, BW, DQ, VL
inline constexpr IsaSet kAvx512Vnni = 1u << 2;
inline constexpr IsaSet kAvx512Fp16 = 1u << 3;
inline constexpr IsaSet kAmx = 1u << 4;  // tiles, bf16 and int8; permission is asked later

}  // namespace isa

// Whether `set` holds every bit of `needs`.
constexpr bool HasAll(IsaSet set, IsaSet needs) { return (set & needs) == needs; }

// What CPU and operating system support. Asked once, then remembered.
IsaSet DetectedIsa();

// Every set up to a tier of the option max_isa: "generic", "avx2", "avx512" (without its
// extensions) or "best" (everything). Nothing for another text. Intersect with DetectedIsa().
std::optional<IsaSet> IsaUpTo(absl::string_view tier);

// The one set called `name` ("avx2", "avx512", "avx512_vnni", "avx512_fp16", "amx").
std::optional<IsaSet> IsaNamed(absl::string_view name);

// `set` without `removed` and without what builds on it: without avx2 there is no avx512 either.
IsaSet WithoutIsa(IsaSet set, IsaSet removed);

// The names in `set`, joined by '+'; "generic" for none.
std::string IsaText(IsaSet set);

}  // namespace npurt

#endif  // NPURT_BASE_CPU_ISA_H_
