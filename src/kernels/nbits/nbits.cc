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

NbitsTiling PlanNbits(const NbitsKernel& kernel, const GemmKernel& gemm, const NbitsProblem& p) {
  NbitsTiling t;
  if (p.m == 0 || p.n == 0) return t;
  const std::int64_t panels = CeilDiv(p.n, kernel.tile_n);
  const double panel_bytes = static_cast<double>(p.k) * kernel.tile_n * p.bits / 8 + 1;
  const bool few = p.m <= kNbitsRows;
  // Few rows: about a quarter of a megabyte of weights. Else half of a second-level cache of
  // unpacked weights at most; 128 columns use rows of A well.
  const std::int64_t most =
      few ? static_cast<std::int64_t>(262144 / panel_bytes) : 128 / kernel.tile_n;
  t.panels_per_tile = std::clamp<std::int64_t>(most, 1, panels);
  t.tile_n = t.panels_per_tile * kernel.tile_n;
  t.tiles = CeilDiv(panels, t.panels_per_tile);
  if (!few) t.a_offset = t.tile_n * kUnpackedK;
  t.bias_offset = t.a_offset;
  if (p.half) t.bias_offset += few ? p.m * p.k : gemm.tile_m * kUnpackedK;
  t.c_offset = t.bias_offset + (p.half ? t.tile_n : 0);
  t.scratch_bytes =
      static_cast<std::size_t>(t.c_offset + (p.half ? p.m * t.tile_n : 0)) * sizeof(float);
  const double columns = static_cast<double>(t.tile_n);
  t.flops_per_tile = 2 * static_cast<double>(p.m + 2) * static_cast<double>(p.k) * columns;
  t.bytes_per_tile = panel_bytes * static_cast<double>(t.panels_per_tile) +
                     4 * static_cast<double>(p.m) * (static_cast<double>(p.k) + columns);
  return t;
}

namespace {

void Convert(RowFn row, const void* in, void* out, std::int64_t count) {
  row({{in, nullptr, nullptr}, out, static_cast<std::size_t>(count), 0, nullptr});
}

// Where a tile finds A, the bias and C as floats.
class Tile {
 public:
  Tile(const NbitsCall& call, std::int64_t tile, void* scratch)
      : call_(call),
        p_(*call.problem),
        t_(*call.tiling),
        scratch_(static_cast<float*>(scratch)),
        first_(tile * t_.panels_per_tile),
        panels_(std::min(call.layout->panels - first_, t_.panels_per_tile)),
        column_(first_ * call.kernel->tile_n),
        columns_(std::min(t_.tile_n, p_.n - column_)) {
    if (call.bias != nullptr) bias_ = Read(call.bias, column_, columns_, t_.bias_offset);
    c_ = p_.half ? scratch_ + t_.c_offset : static_cast<float*>(call.c) + column_;
    c_stride_ = p_.half ? columns_ : p_.n;
  }

  void Run() {
    p_.m <= kNbitsRows ? Dot() : Unpack();
    for (std::int64_t r = 0; p_.half && r < p_.m; ++r)
      Convert(call_.store, c_ + r * c_stride_,
              static_cast<std::uint16_t*>(call_.c) + r * p_.n + column_, columns_);
  }

 private:
  // Elements of A or the bias as floats: where they lie, or at `offset` of the scratch.
  const float* Read(const void* from, std::int64_t at, std::int64_t count, std::int64_t offset) {
    if (!p_.half) return static_cast<const float*>(from) + at;
    Convert(call_.load, static_cast<const std::uint16_t*>(from) + at, scratch_ + offset, count);
    return scratch_ + offset;
  }

  NbitsPanel PanelAt(std::int64_t i, std::int64_t k, std::int64_t count) const {
    const NbitsLayout& l = *call_.layout;
    const auto* const bytes = static_cast<const char*>(call_.packed);
    const std::int64_t panel = first_ + i;
    return {reinterpret_cast<const std::int32_t*>(bytes) + panel * l.panel_words,
            reinterpret_cast<const float*>(bytes + l.scales_offset) + panel * l.panel_scales,
            reinterpret_cast<const float*>(bytes + l.zeros_offset) + panel * l.panel_scales,
            k,
            count,
            p_.block,
            p_.bits};
  }
  int ColumnsOf(std::int64_t i) const {
    const int tile_n = call_.kernel->tile_n;
    return static_cast<int>(std::min<std::int64_t>(tile_n, columns_ - i * tile_n));
  }
  const float* BiasOf(std::int64_t i) const {
    return bias_ == nullptr ? nullptr : bias_ + i * call_.kernel->tile_n;
  }

  void Dot() {
    const float* const a = Read(call_.a, 0, p_.m * p_.k, t_.a_offset);
    for (std::int64_t i = 0; i < panels_; ++i)
      call_.kernel->dot({PanelAt(i, 0, p_.k), a, p_.k, BiasOf(i), c_ + i * call_.kernel->tile_n,
                         c_stride_, static_cast<int>(p_.m), ColumnsOf(i)});
  }

  void Unpack() {
    const int tile_n = call_.kernel->tile_n, tile_m = call_.gemm->tile_m;
    for (std::int64_t k = 0; k < p_.k; k += kUnpackedK) {
      const std::int64_t count = std::min(kUnpackedK, p_.k - k);
      for (std::int64_t i = 0; i < panels_; ++i)
        call_.kernel->unpack(PanelAt(i, k, count), scratch_ + i * kUnpackedK * tile_n);
      for (std::int64_t row = 0; row < p_.m; row += tile_m) {
        GemmArgs args;
        args.rows = static_cast<int>(std::min<std::int64_t>(tile_m, p_.m - row));
        args.a = Read(call_.a, row * p_.k + k, count, t_.a_offset);
        args.a_row_stride = p_.half ? kUnpackedK : p_.k;
        for (int r = 1; p_.half && r < args.rows; ++r)
          Read(call_.a, (row + r) * p_.k + k, count, t_.a_offset + r * kUnpackedK);
        args.a_k_stride = 1;
        args.b_stride = tile_n;
        args.c_stride = c_stride_;
        args.k = count;
        args.b_is_panel = true;
        args.first = k == 0;
        args.last = k + count == p_.k;
        for (std::int64_t i = 0; i < panels_; ++i) {
          Epilogue epilogue;
          epilogue.column_bias = BiasOf(i);
          args.epilogue = &epilogue;
          args.b = scratch_ + i * kUnpackedK * tile_n;
          args.c = c_ + row * c_stride_ + i * tile_n;
          args.cols = ColumnsOf(i);
          call_.gemm->run(args);
        }
      }
    }
  }

  const NbitsCall& call_;
  const NbitsProblem& p_;
  const NbitsTiling& t_;
  float* const scratch_;
  const std::int64_t first_, panels_, column_, columns_;  // of the tile
  const float* bias_ = nullptr;
  float* c_;
  std::int64_t c_stride_;
};

}  // namespace

void RunNbitsTile(const NbitsCall& call, std::int64_t tile, void* scratch) {
  Tile(call, tile, scratch).Run();
}

}  // namespace npurt::kernels
