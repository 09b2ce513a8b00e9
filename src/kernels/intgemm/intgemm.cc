// Intgemm: the table of kernels, words, packing and the tile driver. See intgemm.h.
#include "kernels/intgemm/intgemm.h"

#include <algorithm>
#include <cstring>

#include "base/checked_math.h"
#include "base/cpu_isa.h"

namespace npurt::kernels {

const IntGemmKernel kIntGemmKernels[] = {
#define NPURT_INTGEMM(isa_set, name, tile_m, tile_n, bytes) \
  {#name, name, isa_set, tile_m, tile_n, bytes},
#include "kernels/intgemm/intgemm.inc"
#undef NPURT_INTGEMM
};
const int kIntGemmKernelCount =
    static_cast<int>(sizeof kIntGemmKernels / sizeof kIntGemmKernels[0]);

const IntGemmKernel* SelectIntGemmKernel(std::uint32_t allowed, bool no_bytes) {
  const IntGemmKernel* kernel = kIntGemmKernels;
  // The last one needs nothing.
  while (!HasAll(allowed, kernel->needs) || (no_bytes && kernel->bytes)) ++kernel;
  return kernel;
}

IntForm IntFormOf(const IntGemmKernel& kernel, bool is_signed, bool want_signed) {
  const bool flips = kernel.bytes && is_signed != want_signed;
  return {kernel.bytes, is_signed, static_cast<std::uint8_t>(flips ? 0x80 : 0)};
}

std::int32_t PartOf(const IntForm& form, std::int32_t value, std::int32_t zero) {
  return form.bytes ? (value ^ form.flip) & 255 : value - zero;
}

namespace {

typedef std::uint8_t Bytes __attribute__((vector_size(16)));
typedef std::int16_t Shorts __attribute__((vector_size(16)));

std::int32_t ValueAt(bool is_signed, const void* from, std::int64_t i) {
  const unsigned char byte = static_cast<const unsigned char*>(from)[i];
  return is_signed ? static_cast<std::int8_t>(byte) : byte;
}

Bytes LoadBytes(const void* p) {
  Bytes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// Eight bytes from the lower half of `x`, as int16.
Shorts LowShorts(bool is_signed, Bytes x) {
  const Bytes zero = {};
  // A byte in the upper half of an int16, brought down with or without its sign.
  const Bytes high = __builtin_shufflevector(zero, x, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6,
                                             22, 7, 23);
  typedef std::uint16_t Unsigned __attribute__((vector_size(16)));
  return is_signed ? reinterpret_cast<Shorts>(high) >> 8
                   : reinterpret_cast<Shorts>(reinterpret_cast<Unsigned>(high) >> 8);
}
Bytes UpperHalf(Bytes x) {
  return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15);
}

void StoreShort(std::int32_t value, void* to, std::int64_t i) {
  const std::int16_t part = static_cast<std::int16_t>(value);
  std::memcpy(static_cast<char*>(to) + 2 * i, &part, 2);
}

}  // namespace

void FillWords(const IntForm& form, const void* from, std::int64_t step, std::int64_t k,
               std::int32_t zero, std::int32_t rest, void* words) {
  const unsigned char* const in = static_cast<const unsigned char*>(from);
  std::int64_t i = 0;
  if (form.bytes) {
    unsigned char* const out = static_cast<unsigned char*>(words);
    if (step == 1 && form.flip == 0) {
      std::memcpy(out, in, static_cast<std::size_t>(k));
      i = k;
    } else if (step == 1) {
      for (; i + 16 <= k; i += 16) {
        const Bytes x = LoadBytes(in + i) ^ form.flip;
        std::memcpy(out + i, &x, sizeof x);
      }
    }
    for (; i < k; ++i) out[i] = in[i * step] ^ form.flip;
    for (; i < RoundUp(k, 4); ++i) out[i] = static_cast<unsigned char>(rest);
    return;
  }
  if (step == 1) {
    const Shorts less = Shorts{} + static_cast<std::int16_t>(zero);
    for (; i + 16 <= k; i += 16) {
      const Bytes x = LoadBytes(in + i);
      const Shorts low = LowShorts(form.is_signed, x) - less;
      const Shorts high = LowShorts(form.is_signed, UpperHalf(x)) - less;
      std::memcpy(static_cast<char*>(words) + 2 * i, &low, sizeof low);
      std::memcpy(static_cast<char*>(words) + 2 * i + 16, &high, sizeof high);
    }
  }
  for (; i < k; ++i) StoreShort(ValueAt(form.is_signed, in, i * step) - zero, words, i);
  for (; i < RoundUp(k, 2); ++i) StoreShort(rest, words, i);
}

std::int32_t SumOfParts(bool bytes, bool parts_are_signed, const void* words, std::int64_t k) {
  std::uint32_t sum = 0;  // wraps
  if (bytes) {
    std::int64_t i = 0;
    for (std::int64_t block = 64; k - i >= 16; block = 64) {  // as many as int16 can hold
      Shorts shorts = {};
      for (; block > 0 && k - i >= 16; --block, i += 16) {
        const Bytes x = LoadBytes(static_cast<const char*>(words) + i);
        shorts += LowShorts(parts_are_signed, x) + LowShorts(parts_are_signed, UpperHalf(x));
      }
      for (int lane = 0; lane < 8; ++lane) sum += static_cast<std::uint32_t>(shorts[lane]);
    }
    for (; i < k; ++i)
      sum += static_cast<std::uint32_t>(ValueAt(parts_are_signed, words, i));
  } else {
    for (std::int64_t i = 0; i < k; ++i) {
      std::int16_t part;
      std::memcpy(&part, static_cast<const char*>(words) + 2 * i, 2);
      sum += static_cast<std::uint32_t>(part);
    }
  }
  return static_cast<std::int32_t>(sum);
}

void InterleaveRows(const IntForm& form, const void* const rows[4], std::int32_t zero,
                    std::int32_t rest, std::int64_t count, Word* to) {
  const int parts = form.bytes ? 4 : 2;
  std::int64_t i = 0;
  if (form.bytes) {
    const Bytes pad = Bytes{} + static_cast<std::uint8_t>(rest);
    for (; i + 16 <= count; i += 16) {
      Bytes x[4];
      for (int p = 0; p < 4; ++p)
        x[p] = rows[p] == nullptr
                   ? pad
                   : LoadBytes(static_cast<const char*>(rows[p]) + i) ^ form.flip;
      const auto zip_low = [](Bytes a, Bytes b) {
        return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      };
      const auto zip_high = [](Bytes a, Bytes b) {
        return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30,
                                       15, 31);
      };
      const auto zip_pairs = [](Bytes a, Bytes b, bool high) {
        typedef std::uint16_t Pairs __attribute__((vector_size(16)));
        const Pairs u = reinterpret_cast<Pairs>(a), v = reinterpret_cast<Pairs>(b);
        return high ? __builtin_shufflevector(u, v, 4, 12, 5, 13, 6, 14, 7, 15)
                    : __builtin_shufflevector(u, v, 0, 8, 1, 9, 2, 10, 3, 11);
      };
      const Bytes a = zip_low(x[0], x[1]), b = zip_high(x[0], x[1]);
      const Bytes c = zip_low(x[2], x[3]), d = zip_high(x[2], x[3]);
      const decltype(zip_pairs(a, c, false)) words[4] = {
          zip_pairs(a, c, false), zip_pairs(a, c, true), zip_pairs(b, d, false),
          zip_pairs(b, d, true)};
      std::memcpy(to + i, words, sizeof words);
    }
  } else {
    const Shorts pad = Shorts{} + static_cast<std::int16_t>(rest);
    const Shorts less = Shorts{} + static_cast<std::int16_t>(zero);
    for (; i + 16 <= count; i += 16) {
      Shorts x[2][2];
      for (int p = 0; p < 2; ++p) {
        if (rows[p] == nullptr) {
          x[p][0] = x[p][1] = pad;
          continue;
        }
        const Bytes bytes = LoadBytes(static_cast<const char*>(rows[p]) + i);
        x[p][0] = LowShorts(form.is_signed, bytes) - less;
        x[p][1] = LowShorts(form.is_signed, UpperHalf(bytes)) - less;
      }
      Shorts words[4];
      for (int half = 0; half < 2; ++half) {
        words[2 * half] =
            __builtin_shufflevector(x[0][half], x[1][half], 0, 8, 1, 9, 2, 10, 3, 11);
        words[2 * half + 1] =
            __builtin_shufflevector(x[0][half], x[1][half], 4, 12, 5, 13, 6, 14, 7, 15);
      }
      std::memcpy(to + i, words, sizeof words);
    }
  }
  for (; i < count; ++i) {
    Word word = 0;
    for (int p = 0; p < parts; ++p) {
      const std::int32_t part =
          rows[p] == nullptr ? rest : PartOf(form, ValueAt(form.is_signed, rows[p], i), zero);
      word |= (static_cast<Word>(part) & (form.bytes ? 255u : 65535u)) << (p * (form.bytes ? 8 : 16));
    }
    to[i] = word;
  }
}

namespace {

// Whether A is the operand of unsigned bytes: only if both would have to be flipped, it is not.
bool AIsUnsigned(const IntGemmProblem& p) { return !p.a_signed || p.b_signed; }
IntForm FormOfA(const IntGemmKernel& kernel, const IntGemmProblem& p) {
  return IntFormOf(kernel, p.a_signed, !AIsUnsigned(p));
}
IntForm FormOfB(const IntGemmKernel& kernel, const IntGemmProblem& p) {
  return IntFormOf(kernel, p.b_signed, AIsUnsigned(p));
}

std::int32_t ZeroAt(const std::int32_t* zero, int step, std::int64_t i) {
  return zero == nullptr ? 0 : zero[i * step];
}

// Columns [col, col + cols) of B to panels, and the sums of (b - zero) of each.
void PackColumns(const IntGemmKernel& kernel, const IntGemmProblem& p, const void* b,
                 const std::int32_t* b_zero, int zero_step, std::int64_t col, std::int64_t cols,
                 Word* panels, std::int32_t* sums) {
  const IntForm form = FormOfB(kernel, p);
  const bool parts_signed = AIsUnsigned(p);
  const std::int64_t nr = kernel.tile_n, words = CeilDiv(p.k, kernel.per_word());
  for (std::int64_t c0 = 0; c0 < cols; c0 += nr, panels += nr * words) {
    const std::int64_t count = std::min(nr, cols - c0);
    const std::int32_t zero = ZeroAt(b_zero, zero_step, col + c0);
    std::uint32_t sum[64] = {};
    for (std::int64_t w = 0; w < words; ++w) {
      Word* const to = panels + w * nr;
      const void* rows[4] = {};
      for (int i = 0; i < kernel.per_word(); ++i) {
        const std::int64_t k = w * kernel.per_word() + i;
        if (k < p.k) rows[i] = static_cast<const char*>(b) + k * p.n + col + c0;
      }
      InterleaveRows(form, rows, zero, 0, count, to);
      if (!form.bytes && zero_step != 0) {  // another zero point per column
        for (std::int64_t c = 1; c < count; ++c) {
          const std::int32_t own = ZeroAt(b_zero, zero_step, col + c0 + c);
          for (int i = 0; i < 2; ++i)
            if (rows[i] != nullptr)
              StoreShort(ValueAt(form.is_signed, rows[i], c) - own, to + c, i);
        }
      }
      for (std::int64_t c = count; c < nr; ++c) to[c] = 0;
      for (std::int64_t c = 0; c < count; ++c) {
        const Word x = to[c];
        if (!form.bytes) {
          sum[c] += static_cast<std::uint32_t>(static_cast<std::int16_t>(x)) +
                    static_cast<std::uint32_t>(static_cast<std::int16_t>(x >> 16));
        } else if (parts_signed) {
          sum[c] += static_cast<std::uint32_t>(static_cast<std::int8_t>(x)) +
                    static_cast<std::uint32_t>(static_cast<std::int8_t>(x >> 8)) +
                    static_cast<std::uint32_t>(static_cast<std::int8_t>(x >> 16)) +
                    static_cast<std::uint32_t>(static_cast<std::int8_t>(x >> 24));
        } else {
          sum[c] += (x & 255) + (x >> 8 & 255) + (x >> 16 & 255) + (x >> 24);
        }
      }
    }
    for (std::int64_t c = 0; c < count; ++c) {
      const std::int32_t own = ZeroOf(form, ZeroAt(b_zero, zero_step, col + c0 + c));
      sums[c0 + c] = static_cast<std::int32_t>(sum[c] - static_cast<std::uint32_t>(p.k) *
                                                            static_cast<std::uint32_t>(own));
    }
  }
}

// Rows whose distance is an odd number of cache lines spread over all sets of a cache.
std::int64_t RowStride(std::int64_t words) { return (CeilDiv(words, 16) | 1) * 16; }

bool SizesFit(const IntGemmProblem& p, std::int64_t words) {
  std::int64_t bytes;
  return CheckedMul(p.m, words + 32, &bytes) && CheckedMul(bytes, std::int64_t{8}, &bytes) &&
         CheckedMul(p.n + 64, words + 1, &bytes) && CheckedMul(bytes, std::int64_t{4}, &bytes) &&
         CheckedMul(p.m, p.n, &bytes) && CheckedMul(bytes, std::int64_t{4}, &bytes);
}

}  // namespace

std::int64_t PackedIntBSize(const IntGemmKernel& kernel, std::int64_t k, std::int64_t n) {
  const std::int64_t words = CeilDiv(k, kernel.per_word());
  if (!SizesFit({.n = n, .k = k}, words)) return 0;
  return (RoundUp(n, kernel.tile_n) * words + n) * 4;
}

void PackIntB(const IntGemmKernel& kernel, const IntGemmProblem& problem, const void* b,
              const std::int32_t* b_zero, int b_zero_step, void* packed) {
  Word* const panels = static_cast<Word*>(packed);
  const std::int64_t words = CeilDiv(problem.k, kernel.per_word());
  PackColumns(kernel, problem, b, b_zero, b_zero_step, 0, problem.n, panels,
              static_cast<std::int32_t*>(packed) + RoundUp(problem.n, kernel.tile_n) * words);
}

IntGemmTiling PlanIntGemm(const IntGemmProblem& p, const IntGemmKernel& kernel) {
  IntGemmTiling t;
  t.kernel = &kernel;
  t.words = CeilDiv(p.k, kernel.per_word());
  if (!SizesFit(p, t.words)) {
    t.tiles = -1;
    return t;
  }
  if (p.m == 0 || p.n == 0) return t;
  const std::int64_t mr = kernel.tile_m, nr = kernel.tile_n;
  // As in PlanGemm; a product of words counts as one.
  const double ops_per_element = 2.0 * static_cast<double>(std::max<std::int64_t>(t.words, 1));
  const double ops = ops_per_element * static_cast<double>(p.m) * static_cast<double>(p.n);
  const double target = std::clamp(ops / 32, 2e6, 4e7);
  std::int64_t rows = std::min<std::int64_t>(p.m, 240), cols = std::min<std::int64_t>(p.n, 512);
  std::int64_t least_cols = nr;
  if (p.gathers_a) {  // a quarter of a megabyte of rows, each for many columns
    rows = std::min(rows, std::max<std::int64_t>(2 * mr, (256 << 10) / (4 * std::max<std::int64_t>(t.words, 1))));
    least_cols = std::min<std::int64_t>(cols, 128);
  }
  const auto too_big = [&] {
    return ops_per_element * static_cast<double>(rows) * static_cast<double>(cols) > target * 1.5;
  };
  while (too_big() && (rows > mr || cols > least_cols)) {
    if (cols > least_cols && (cols >= rows || rows <= mr)) {
      cols = std::max(least_cols, cols / 2);
    } else {
      rows = std::max(mr, rows / 2);
    }
  }
  t.tile_rows = std::min(p.m, RoundUp(CeilDiv(p.m, CeilDiv(p.m, rows)), mr));
  t.tile_cols = std::min(p.n, RoundUp(CeilDiv(p.n, CeilDiv(p.n, cols)), nr));
  t.tiles_m = CeilDiv(p.m, t.tile_rows);
  t.tiles = t.tiles_m * CeilDiv(p.n, t.tile_cols);
  const IntForm form = FormOfA(kernel, p);
  t.rows_in_place =
      !p.gathers_a && form.bytes && form.flip == 0 && p.k % 4 == 0 && (p.k % 4096 != 0 || t.tile_rows <= 4);
  const auto aligned = [](std::int64_t bytes) { return RoundUp(bytes, 64); };
  t.a_offset = p.packed_b ? 0 : aligned(RoundUp(t.tile_cols, nr) * t.words * 4);
  t.row_offset = t.a_offset + (t.rows_in_place ? 0 : t.tile_rows * RowStride(t.words) * 4 + kIntRowsSlack);
  t.column_offset = t.row_offset + aligned(t.tile_rows * 4);
  t.scratch_bytes = static_cast<std::size_t>(t.column_offset + 3 * aligned(t.tile_cols * 4));
  t.flops_per_tile = ops_per_element * static_cast<double>(t.tile_rows) *
                     static_cast<double>(t.tile_cols) * (kernel.bytes ? 1 : 2);
  t.bytes_per_tile = static_cast<double>(p.k * (t.tile_rows + t.tile_cols)) +
                     static_cast<double>(t.tile_rows * t.tile_cols);
  return t;
}

void RunIntGemmTile(const IntGemmCall& call, std::int64_t tile, void* scratch) {
  const IntGemmProblem& p = *call.problem;
  const IntGemmTiling& t = *call.tiling;
  const IntGemmKernel& kernel = *t.kernel;
  const std::int64_t mr = kernel.tile_m, nr = kernel.tile_n;
  const std::int64_t row = tile % t.tiles_m * t.tile_rows, col = tile / t.tiles_m * t.tile_cols;
  const std::int64_t rows = std::min(t.tile_rows, p.m - row);
  const std::int64_t cols = std::min(t.tile_cols, p.n - col);
  char* const memory = static_cast<char*>(scratch);
  const auto column_array = [&](int i) {
    return reinterpret_cast<std::int32_t*>(memory + t.column_offset +
                                           i * RoundUp(t.tile_cols * 4, 64));
  };

  const Word* panels;
  const std::int32_t* sums;
  if (p.packed_b) {
    panels = static_cast<const Word*>(call.b) + col * t.words;
    sums = static_cast<const std::int32_t*>(call.b) + RoundUp(p.n, nr) * t.words + col;
  } else {
    Word* const own = static_cast<Word*>(scratch);
    PackColumns(kernel, p, call.b, call.b_zero, call.b_zero_step, col, cols, own, column_array(0));
    panels = own;
    sums = column_array(0);
  }

  const IntForm a_form = FormOfA(kernel, p), b_form = FormOfB(kernel, p);
  const auto a_zero = [&](std::int64_t r) {
    if (call.a_zero == nullptr) return 0;
    const std::int64_t i =
        call.a_zero_count == 1 ? 0 : (call.first_row + row + r) % call.a_zero_count;
    return ValueAt(p.a_signed, call.a_zero, i);
  };
  const char* a = static_cast<const char*>(call.a) + (p.gathers_a ? 0 : row * p.k);
  std::int64_t a_stride = p.k / 4;
  if (!t.rows_in_place) {
    a_stride = RowStride(t.words);
    char* const words = memory + t.a_offset;
    if (call.rows != nullptr) {
      call.rows->fill(*call.rows, a_form, row, rows, a_stride * 4, words);
    } else {
      for (std::int64_t r = 0; r < rows; ++r)
        FillWords(a_form, a + r * p.k, 1, p.k, a_zero(r), 0, words + r * a_stride * 4);
    }
    a = words;
  }

  IntEpilogue e = call.epilogue;
  if (e.row_bias != nullptr) e.row_bias += row;
  if (e.column_bias != nullptr) e.column_bias += col;
  if (e.row_scale != nullptr && !e.one_row_scale) e.row_scale += row;
  if (e.column_scale != nullptr) e.column_scale += col;
  if (e.column_add != nullptr) e.column_add += col;
  if (const std::int32_t zero = ZeroOf(a_form, a_zero(0)); zero != 0) {
    std::int32_t* const add = column_array(1);
    for (std::int64_t c = 0; c < cols; ++c)
      add[c] = static_cast<std::int32_t>(
          static_cast<std::uint32_t>(e.column_add == nullptr ? 0 : e.column_add[c]) -
          static_cast<std::uint32_t>(zero) * static_cast<std::uint32_t>(sums[c]));
    e.column_add = add;
  }
  std::int32_t* const factor = column_array(2);
  bool corrects_rows = false;
  for (std::int64_t c = 0; c < cols; ++c) {
    factor[c] = ZeroOf(b_form, ZeroAt(call.b_zero, call.b_zero_step, col + c));
    corrects_rows = corrects_rows || factor[c] != 0;
  }
  if (corrects_rows) {
    std::int32_t* const row_sums = reinterpret_cast<std::int32_t*>(memory + t.row_offset);
    for (std::int64_t r = 0; r < rows; ++r)
      row_sums[r] = SumOfParts(kernel.bytes, !AIsUnsigned(p), a + r * a_stride * 4, p.k);
    e.row_factor = row_sums;
    e.column_factor = factor;
  }

  const std::int64_t element = e.to_bytes ? 1 : 4;
  IntGemmArgs args;
  args.a_row_stride = a_stride;
  args.a_word_stride = 1;
  args.c_stride = p.n;
  args.words = t.words;
  args.a_is_unsigned = AIsUnsigned(p);
  for (std::int64_t c = 0; c < cols; c += nr) {
    args.b = panels + c * t.words;
    args.cols = static_cast<int>(std::min(nr, cols - c));
    for (std::int64_t r = 0; r < rows; r += mr) {
      args.rows = static_cast<int>(std::min(mr, rows - r));
      args.a = a + r * a_stride * 4;
      args.c = static_cast<char*>(call.c) + ((row + r) * p.n + col + c) * element;
      IntEpilogue here = e;
      if (here.row_bias != nullptr) here.row_bias += r;
      if (here.row_scale != nullptr && !here.one_row_scale) here.row_scale += r;
      if (here.row_factor != nullptr) here.row_factor += r;
      if (here.column_factor != nullptr) here.column_factor += c;
      if (here.column_add != nullptr) here.column_add += c;
      if (here.column_bias != nullptr) here.column_bias += c;
      if (here.column_scale != nullptr) here.column_scale += c;
      args.epilogue = &here;
      kernel.run(args);
    }
  }
}

}  // namespace npurt::kernels
