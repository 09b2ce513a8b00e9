#include "ops/move.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/checked_math.h"

namespace npurt::ops {
namespace {

unsigned PackedAt(const unsigned char* data, std::int64_t index, int bits) {
  const std::int64_t bit = index * bits;
  return (data[bit / 8] >> (bit % 8)) & ((1u << bits) - 1);
}

void SetPacked(unsigned char* data, std::int64_t index, int bits, unsigned value) {
  const std::int64_t bit = index * bits;
  const unsigned shift = static_cast<unsigned>(bit % 8), mask = ((1u << bits) - 1) << shift;
  data[bit / 8] = static_cast<unsigned char>((data[bit / 8] & ~mask) | (value << shift));
}

template <int kBytes>
void CopyStrided(char* out, std::int64_t out_stride, const char* in, std::int64_t in_stride,
                 std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(out + i * out_stride * kBytes, in + i * in_stride * kBytes, kBytes);
}

void CopyRun(DType dtype, void* out, std::int64_t to, std::int64_t out_stride, const void* in,
             std::int64_t from, std::int64_t in_stride, std::int64_t count) {
  if (count <= 0) return;
  if (dtype == DType::kString) {
    auto* target = static_cast<std::string*>(out) + to;
    const auto* source = static_cast<const std::string*>(in) + from;
    for (std::int64_t i = 0; i < count; ++i) target[i * out_stride] = source[i * in_stride];
    return;
  }
  const int bits = DTypeBits(dtype);
  if (bits < 8) {
    for (std::int64_t i = 0; i < count; ++i)
      SetPacked(static_cast<unsigned char*>(out), to + i * out_stride, bits,
                PackedAt(static_cast<const unsigned char*>(in), from + i * in_stride, bits));
    return;
  }
  const std::int64_t bytes = bits / 8;
  char* target = static_cast<char*>(out) + to * bytes;
  const char* source = static_cast<const char*>(in) + from * bytes;
  if (out_stride == 1 && in_stride == 1) {
    if (target != source)
      std::memcpy(target, source, static_cast<std::size_t>(count * bytes));
    return;
  }
  switch (bytes) {
    case 1:
      if (in_stride == 0 && out_stride == 1)
        std::memset(target, *source, static_cast<std::size_t>(count));
      else
        CopyStrided<1>(target, out_stride, source, in_stride, count);
      return;
    case 2:
      return CopyStrided<2>(target, out_stride, source, in_stride, count);
    case 4:
      return CopyStrided<4>(target, out_stride, source, in_stride, count);
    case 8:
      return CopyStrided<8>(target, out_stride, source, in_stride, count);
    default:
      return CopyStrided<16>(target, out_stride, source, in_stride, count);
  }
}

}  // namespace

void CopyElements(DType dtype, void* out, std::int64_t to, const void* in, std::int64_t from,
                  std::int64_t count) {
  CopyRun(dtype, out, to, 1, in, from, 1, count);
}

void FillElements(DType dtype, void* out, std::int64_t to, const void* in, std::int64_t from,
                  std::int64_t count) {
  CopyRun(dtype, out, to, 1, in, from, 0, count);
}

void ZeroElements(DType dtype, void* out, std::int64_t to, std::int64_t count) {
  if (dtype == DType::kString) {
    for (std::int64_t i = 0; i < count; ++i) static_cast<std::string*>(out)[to + i].clear();
    return;
  }
  const int bits = DTypeBits(dtype);
  if (bits < 8) {
    for (std::int64_t i = 0; i < count; ++i)
      SetPacked(static_cast<unsigned char*>(out), to + i, bits, 0);
    return;
  }
  const std::size_t bytes = static_cast<std::size_t>(bits) / 8;
  if (count > 0)
    std::memset(static_cast<char*>(out) + static_cast<std::size_t>(to) * bytes, 0,
                static_cast<std::size_t>(count) * bytes);
}

void StridedCopy::Add(std::int64_t dim, std::int64_t in_stride, std::int64_t out_stride) {
  count *= dim;
  if (dim == 1) return;
  if (rank > 0 && in_strides[rank - 1] == dim * in_stride &&
      out_strides[rank - 1] == dim * out_stride) {
    dims[rank - 1] *= dim;
    in_strides[rank - 1] = in_stride;
    out_strides[rank - 1] = out_stride;
    return;
  }
  if (rank == kMaxRank) {
    too_deep = true;
    return;
  }
  dims[rank] = dim;
  in_strides[rank] = in_stride;
  out_strides[rank] = out_stride;
  ++rank;
}

absl::Status StridedCopy::Run(DType dtype, void* out, const void* in, std::int64_t first,
                              std::int64_t last) const {
  if (too_deep)
    return absl::UnimplementedError(
        absl::StrCat("a copy of more than ", kMaxRank, " separate dimensions"));
  if (first >= last || count == 0) return absl::OkStatus();
  if (rank == 0) {
    CopyElements(dtype, out, out_offset, in, in_offset, 1);
    return absl::OkStatus();
  }
  const int inner = rank - 1;
  std::int64_t index[kMaxRank];
  std::int64_t rest = first, from = in_offset, to = out_offset;
  for (int d = inner; d >= 0; --d) {
    index[d] = rest % dims[d];
    rest /= dims[d];
    from += index[d] * in_strides[d];
    to += index[d] * out_strides[d];
  }
  for (std::int64_t left = last - first; left > 0;) {
    const std::int64_t run = std::min(left, dims[inner] - index[inner]);
    CopyRun(dtype, out, to, out_strides[inner], in, from, in_strides[inner], run);
    left -= run;
    // Back to the start of the row, then carry.
    from -= index[inner] * in_strides[inner];
    to -= index[inner] * out_strides[inner];
    index[inner] = 0;
    for (int d = inner - 1; d >= 0; --d) {
      from += in_strides[d];
      to += out_strides[d];
      if (++index[d] < dims[d]) break;
      from -= dims[d] * in_strides[d];
      to -= dims[d] * out_strides[d];
      index[d] = 0;
    }
  }
  return absl::OkStatus();
}

std::int64_t CopyTiles(DType dtype, std::int64_t count) {
  constexpr double kTileBytes = 128 << 10;  // well in L2, long against the claim of a tile
  const double bytes = static_cast<double>(count) * DTypeBits(dtype) / 8;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(bytes / kTileBytes, 4096.0)));
}

void SetCopyTiles(BindContext& bind, DType dtype, std::int64_t count) {
  const std::int64_t tiles = CopyTiles(dtype, count);
  const double bytes = static_cast<double>(count) * DTypeBits(dtype) / 8;
  bind.SetTiles(tiles, bytes / 10 / static_cast<double>(tiles));
}

TileRange TileOf(std::int64_t tile, std::int64_t tiles, std::int64_t count) {
  const std::int64_t each = AlignUp(CeilDiv(count, tiles), 64);
  return {std::min(count, tile * each), std::min(count, (tile + 1) * each)};
}

absl::Status BindCopy(BindContext& bind) {
  if (bind.count(0) != bind.output_count_of(0))
    return absl::InvalidArgumentError(absl::StrCat("the input has shape ",
                                                   ShapeString(bind.dims(0)),
                                                   ", which cannot become ",
                                                   ShapeString(bind.output_dims(0))));
  if (bind.dtype(0) != DType::kString) bind.MayView(0, 0, 0);
  SetCopyTiles(bind, bind.dtype(0), bind.count(0));
  return absl::OkStatus();
}

absl::Status RunCopy(const RunContext& run, std::int64_t tile, void*) {
  const Slot &in = run.input(0), &out = run.output(0);
  if (in.data == out.data) return absl::OkStatus();
  const TileRange range = TileOf(tile, CopyTiles(in.dtype, in.count), in.count);
  CopyElements(in.dtype, out.data, range.first, in.data, range.first, range.last - range.first);
  return absl::OkStatus();
}

absl::Status ReferenceCopy(const RunContext& run, std::int64_t, void*) {
  const Slot &in = run.input(0), &out = run.output(0);
  if (in.count != out.count)
    return absl::InvalidArgumentError(absl::StrCat("the input has shape ",
                                                   ShapeString(run.dims(0)),
                                                   ", which cannot become ",
                                                   ShapeString(run.output_dims(0))));
  CopyElements(in.dtype, out.data, 0, in.data, 0, in.count);
  return absl::OkStatus();
}

Dims StridesOf(absl::Span<const std::int64_t> dims) {
  Dims strides(dims.size());
  std::int64_t stride = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

std::int64_t ProductOf(absl::Span<const std::int64_t> dims, int first, int last) {
  std::int64_t product = 1;
  for (int i = first; i < last; ++i) product *= dims[static_cast<std::size_t>(i)];
  return product;
}

bool NextIndex(absl::Span<const std::int64_t> dims, absl::Span<std::int64_t> index) {
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (++index[d] < dims[d]) return true;
    index[d] = 0;
  }
  return false;
}

absl::Status WantRank(const InferContext& context, int i, int rank) {
  if (!context.has_input(i) || context.rank(i) == rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " has rank ", context.rank(i), ", want ", rank));
}

absl::Status IndexError(std::int64_t index, std::int64_t limit) {
  if (limit == 0)
    return absl::OutOfRangeError(absl::StrCat("index ", index, " into an empty axis"));
  return absl::OutOfRangeError(
      absl::StrCat("index ", index, ", want one from ", -limit, " to ", limit - 1));
}

}  // namespace npurt::ops
