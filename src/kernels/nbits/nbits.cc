// Selection, layout and the tile loop of products with weights of few bits.
#include "kernels/nbits/nbits.h"

#include <algorithm>

#include "base/checked_math.h"
#include "base/cpu_isa.h"
#include "kernels/gemm/gemm.h"

namespace npurt::kernels {

const NbitsKernel kNbitsKernels[] = {
#define NPURT_NBITS(isa_set, set, tile_n) \
  {"nbits_f32_" #set, isa_set, tile_n, nbits_dot_##set, nbits_unpack_##set},
#include "kernels/nbits/nbits.inc"
#undef NPURT_NBITS
};
const int kNbitsKernelCount = static_cast<int>(sizeof kNbitsKernels / sizeof kNbitsKernels[0]);

const NbitsKernel& SelectNbits(std::uint32_t allowed) {
  const NbitsKernel* kernel = kNbitsKernels;
  while (!HasAll(allowed, kernel->needs)) ++kernel;  // the last one needs nothing
  return *kernel;
}

bool LayOutNbits(const NbitsKernel& kernel, const NbitsProblem& p, NbitsLayout* l) {
  std::int64_t words, scales;
  l->panels = CeilDiv(p.n, kernel.tile_n);
  return CheckedMul(CeilDiv(p.k, 32 / p.bits), kernel.tile_n, &l->panel_words) &&
         CheckedMul(CeilDiv(p.k, p.block), kernel.tile_n, &l->panel_scales) &&
         CheckedMul(l->panel_words, l->panels, &words) &&
         CheckedMul(l->panel_scales, l->panels, &scales) &&
         CheckedMul(words, std::int64_t{4}, &l->scales_offset) &&
         CheckedMul(scales, std::int64_t{4}, &scales) &&
         CheckedAdd(l->scales_offset, scales, &l->zeros_offset) &&
         CheckedAdd(l->zeros_offset, scales, &l->bytes);
}

namespace {

constexpr std::int64_t kUnpackedK = 256;  // a multiple of the k in a word; as the kc of gemm

}  // namespace

NbitsTiling PlanNbits(const NbitsKernel& kernel, const NbitsProblem& p) {
  NbitsTiling t;
  if (p.m == 0 || p.n == 0) return t;
  const std::int64_t panels = CeilDiv(p.n, kernel.tile_n);
  const double panel_bytes = static_cast<double>(p.k) * kernel.tile_n * p.bits / 8 + 1;
  if (p.m <= kNbitsRows) {
    // About a quarter of a megabyte of weights.
    t.panels_per_tile =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(262144 / panel_bytes), 1, panels);
  } else {
    // Half of a second-level cache of unpacked weights at most; 128 columns use rows of A well.
    t.panels_per_tile = std::clamp<std::int64_t>(128 / kernel.tile_n, 1, panels);
    t.scratch_bytes =
        static_cast<std::size_t>(t.panels_per_tile * kernel.tile_n * kUnpackedK) * sizeof(float);
  }
  t.tiles = CeilDiv(panels, t.panels_per_tile);
  const double columns = static_cast<double>(t.panels_per_tile * kernel.tile_n);
  t.flops_per_tile = 2 * static_cast<double>(p.m + 2) * static_cast<double>(p.k) * columns;
  t.bytes_per_tile = panel_bytes * static_cast<double>(t.panels_per_tile) +
                     4 * static_cast<double>(p.m) * (static_cast<double>(p.k) + columns);
  return t;
}

void RunNbitsTile(const NbitsCall& call, std::int64_t tile, void* scratch) {
  const NbitsProblem& p = *call.problem;
  const NbitsLayout& l = *call.layout;
  const NbitsKernel& kernel = *call.kernel;
  const std::int64_t first = tile * call.tiling->panels_per_tile;
  const std::int64_t last = std::min(l.panels, first + call.tiling->panels_per_tile);
  const auto* const bytes = static_cast<const char*>(call.packed);
  const auto panel_at = [&](std::int64_t i, std::int64_t k, std::int64_t count) {
    return NbitsPanel{reinterpret_cast<const std::int32_t*>(bytes) + i * l.panel_words,
                      reinterpret_cast<const float*>(bytes + l.scales_offset) + i * l.panel_scales,
                      reinterpret_cast<const float*>(bytes + l.zeros_offset) + i * l.panel_scales,
                      k,
                      count,
                      p.block,
                      p.bits};
  };
  const auto cols_of = [&](std::int64_t i) {
    return static_cast<int>(std::min<std::int64_t>(kernel.tile_n, p.n - i * kernel.tile_n));
  };
  if (p.m <= kNbitsRows) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t column = i * kernel.tile_n;
      kernel.dot({panel_at(i, 0, p.k), call.a, p.k,
                  call.bias == nullptr ? nullptr : call.bias + column, call.c + column, p.n,
                  static_cast<int>(p.m), cols_of(i)});
    }
    return;
  }
  auto* const unpacked = static_cast<float*>(scratch);
  for (std::int64_t k = 0; k < p.k; k += kUnpackedK) {
    const std::int64_t count = std::min(kUnpackedK, p.k - k);
    for (std::int64_t i = first; i < last; ++i)
      kernel.unpack(panel_at(i, k, count), unpacked + (i - first) * kUnpackedK * kernel.tile_n);
    for (std::int64_t row = 0; row < p.m; row += call.gemm->tile_m)
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t column = i * kernel.tile_n;
        Epilogue epilogue;
        if (call.bias != nullptr) epilogue.column_bias = call.bias + column;
        GemmArgs args;
        args.a = call.a + row * p.k + k;
        args.a_row_stride = p.k;
        args.a_k_stride = 1;
        args.b = unpacked + (i - first) * kUnpackedK * kernel.tile_n;
        args.b_stride = kernel.tile_n;
        args.c = call.c + row * p.n + column;
        args.c_stride = p.n;
        args.k = count;
        args.rows = static_cast<int>(std::min<std::int64_t>(call.gemm->tile_m, p.m - row));
        args.cols = cols_of(i);
        args.b_is_panel = true;
        args.first = k == 0;
        args.last = k + count == p.k;
        args.epilogue = &epilogue;
        call.gemm->run(args);
      }
  }
}

}  // namespace npurt::kernels
