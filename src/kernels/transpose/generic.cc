// Transposes for any CPU: 8 x 8 blocks of plain loads and stores, so that both sides stay in few lines.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/transpose/transpose.h"

namespace npurt::kernels {
namespace {

struct Sixteen {
  std::uint64_t words[2];
};

template <typename T>
void Block(const void* in, std::size_t in_stride, void* out, std::size_t out_stride,
           std::size_t rows, std::size_t cols) {
  const char* from = static_cast<const char*>(in);
  char* to = static_cast<char*>(out);
  constexpr std::size_t kStep = 8;
  for (std::size_t r0 = 0; r0 < rows; r0 += kStep) {
    const std::size_t r1 = r0 + kStep < rows ? r0 + kStep : rows;
    for (std::size_t c = 0; c < cols; ++c)
      for (std::size_t r = r0; r < r1; ++r)
        std::memcpy(to + (c * out_stride + r) * sizeof(T), from + (r * in_stride + c) * sizeof(T),
                    sizeof(T));
  }
}

}  // namespace

#define NPURT_BLOCK(name, type)                                                                  \
  void name(const void* in, std::size_t in_stride, void* out, std::size_t out_stride,            \
            std::size_t rows, std::size_t cols) {                                                \
    Block<type>(in, in_stride, out, out_stride, rows, cols);                                     \
  }
NPURT_BLOCK(transpose_1b_generic, std::uint8_t)
NPURT_BLOCK(transpose_2b_generic, std::uint16_t)
NPURT_BLOCK(transpose_4b_generic, std::uint32_t)
NPURT_BLOCK(transpose_8b_generic, std::uint64_t)
NPURT_BLOCK(transpose_16b_generic, Sixteen)
#undef NPURT_BLOCK

}  // namespace npurt::kernels
