// Channels-last convolution of bytes: packing, plan and the rows of the product. See channels_last.h.
#include "kernels/intconv/channels_last.h"

#include <algorithm>
#include <cstring>

#include "base/checked_math.h"

namespace npurt::kernels {
namespace {

std::int64_t Taps(const ConvProblem& p) { return p.kernel[1] * p.kernel[2]; }

IntGemmProblem ProductOf(const IntConvProblem& problem) {
  const ConvProblem& p = problem.shape;
  IntGemmProblem product;
  product.m = p.batch * p.out[1] * p.out[2];
  product.n = p.out_channels;
  product.k = Taps(p) * p.in_channels;
  product.a_signed = problem.x_signed;
  product.b_signed = problem.w_signed;
  product.packed_b = true;
  product.gathers_a = !(Taps(p) == 1 && p.stride[1] == 1 && p.stride[2] == 1 && p.pad[1] == 0 &&
                        p.pad[2] == 0 && p.in[1] == p.out[1] && p.in[2] == p.out[2]);
  return product;
}

// The rows of the product as words: what each pixel sees.
class ImageRows final : public IntRows {
 public:
  ImageRows(const IntConvProblem& problem, const void* image, std::int32_t zero)
      : IntRows{&ImageRows::Fill},
        p_(problem.shape),
        image_(static_cast<const char*>(image)),
        end_(image_ + p_.batch * p_.in[1] * p_.in[2] * p_.in_channels),
        zero_(zero) {}

 private:
  static void Fill(const IntRows& rows, const IntForm& form, std::int64_t first, std::int64_t count,
                   std::int64_t row_bytes, char* to) {
    static_cast<const ImageRows&>(rows).Fill(form, first, count, row_bytes, to);
  }

  void Fill(const IntForm& form, std::int64_t first, std::int64_t count, std::int64_t row_bytes,
            char* to) const {
    const std::int64_t c = p_.in_channels, size = form.bytes ? 1 : 2, k = Taps(p_) * c;
    // Taps side by side are one run.
    const std::int64_t joined = p_.dilation[2] == 1 ? p_.kernel[2] : 1;
    std::int64_t x = first % p_.out[2], line = first / p_.out[2];
    for (std::int64_t r = 0; r < count; ++r, to += row_bytes) {
      const std::int64_t n = line / p_.out[1], top = line % p_.out[1] * p_.stride[1] - p_.pad[1];
      char* part = to;
      for (std::int64_t i = 0; i < p_.kernel[1]; ++i) {
        const std::int64_t y = top + i * p_.dilation[1];
        const char* const pixels = image_ + (n * p_.in[1] + y) * p_.in[2] * c;
        for (std::int64_t j = 0; j < p_.kernel[2]; j += joined) {
          const std::int64_t left = x * p_.stride[2] - p_.pad[2] + j * p_.dilation[2];
          std::int64_t from = joined, until = joined;  // those inside
          if (y >= 0 && y < p_.in[1]) {
            from = std::clamp<std::int64_t>(-left, 0, joined);
            until = std::clamp<std::int64_t>(p_.in[2] - left, from, joined);
          }
          Outside(form, from * c, part);
          if (until > from) Inside(form, pixels + (left + from) * c, (until - from) * c, part + from * c * size);
          Outside(form, (joined - until) * c, part + until * c * size);
          part += joined * c * size;
        }
      }
      for (std::int64_t i = k; i % (4 / size) != 0; ++i) std::memset(to + i * size, 0, static_cast<std::size_t>(size));
      if (++x == p_.out[2]) x = 0, ++line;
    }
  }

  void Outside(const IntForm& form, std::int64_t count, char* to) const {
    if (count == 0) return;
    const std::int32_t part = PartOf(form, zero_, zero_);  // 0 for int16
    std::memset(to, part, static_cast<std::size_t>(count * (form.bytes ? 1 : 2)));
  }

  // May write up to kIntRowsSlack bytes more.
  void Inside(const IntForm& form, const char* from, std::int64_t count, char* to) const {
    if (!form.bytes || form.flip != 0) {
      FillWords(form, from, 1, count, zero_, 0, to);
    } else if (count <= kIntRowsSlack && end_ - from >= kIntRowsSlack) {
      std::memcpy(to, from, kIntRowsSlack);  // of a known size: a few vectors
    } else {
      std::memcpy(to, from, static_cast<std::size_t>(count));
    }
  }

  const ConvProblem& p_;
  const char* const image_;
  const char* const end_;
  const std::int32_t zero_;
};

}  // namespace

std::int64_t PackedIntChannelsLastSize(const IntGemmKernel& kernel, const IntConvProblem& problem) {
  if (!ConvSizesFit(problem.shape)) return 0;
  const IntGemmProblem product = ProductOf(problem);
  return PackedIntBSize(kernel, product.k, product.n);
}

void PackIntChannelsLast(const IntGemmKernel& kernel, const IntConvProblem& problem,
                         const void* weights, const std::int32_t* zero, std::uint8_t* turned,
                         void* packed) {
  const ConvProblem& p = problem.shape;
  const std::int64_t taps = Taps(p), n = p.out_channels;
  const auto* const from = static_cast<const std::uint8_t*>(weights);
  constexpr std::int64_t kBlock = 16;  // so that both sides use whole cache lines
  for (std::int64_t first = 0; first < n; first += kBlock)
    for (std::int64_t c = 0; c < p.in_channels; ++c)
      for (std::int64_t tap = 0; tap < taps; ++tap)
        for (std::int64_t o = first; o < std::min(n, first + kBlock); ++o)
          turned[(tap * p.in_channels + c) * n + o] = from[(o * p.in_channels + c) * taps + tap];
  PackIntB(kernel, ProductOf(problem), turned, zero, 1, packed);
}

IntChannelsLastTiling PlanIntChannelsLast(const IntConvProblem& problem, const IntGemmKernel& kernel) {
  const ConvProblem& p = problem.shape;
  IntChannelsLastTiling t;
  if (!ConvSizesFit(p) || p.transposed || p.groups != 1 || p.in[0] != 1 || p.out[0] != 1 ||
      p.kernel[0] != 1) {
    t.tiling.tiles = -1;
    return t;
  }
  t.product = ProductOf(problem);
  t.tiling = PlanIntGemm(t.product, kernel);
  return t;
}

void RunIntChannelsLastTile(const IntChannelsLastCall& call, std::int64_t tile, void* scratch) {
  const IntGemmProblem& product = call.tiling->product;
  std::int32_t zero = 0;
  if (call.x_zero != nullptr)
    zero = product.a_signed ? std::int32_t{*static_cast<const std::int8_t*>(call.x_zero)}
                            : std::int32_t{*static_cast<const std::uint8_t*>(call.x_zero)};
  const ImageRows rows(*call.problem, call.image, zero);
  RunIntGemmTile({&product, &call.tiling->tiling, call.image, call.weights, call.x_zero, 1, 0,
                  call.w_zero, 1, call.out, call.epilogue, product.gathers_a ? &rows : nullptr},
                 tile, scratch);
}

}  // namespace npurt::kernels
