// Typed rows: scalar loops over the expressions of ops.inc, for one list of C++ types. Included by
// typed_floats.cc and typed_integers.cc, which name the list.
//
// Loops without scalar operands stand apart so that the compiler can vectorise them.
namespace npurt::kernels {
namespace {

using namespace scalar;  // NOLINT: the vocabulary of ops.inc

template <typename T>
T LoadAt(const void* p, std::size_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<const unsigned char*>(p)[i] != 0;
  } else {
    T value;
    std::memcpy(&value, static_cast<const char*>(p) + i * sizeof(T), sizeof(T));
    return value;
  }
}

template <typename T>
void StoreAt(void* p, std::size_t i, T value) {
  std::memcpy(static_cast<char*>(p) + i * sizeof(T), &value, sizeof(T));
}

template <typename Op, typename T>
struct Rows {
  static void Run1(const RowArgs& a) {
    using R = decltype(Op::Run(T(), a.params));
    if (a.scalars & 1) {
      if (a.count == 0) return;
      const R value = Op::Run(LoadAt<T>(a.in[0], 0), a.params);
      for (std::size_t i = 0; i < a.count; ++i) StoreAt<R>(a.out, i, value);
      return;
    }
    for (std::size_t i = 0; i < a.count; ++i)
      StoreAt<R>(a.out, i, Op::Run(LoadAt<T>(a.in[0], i), a.params));
  }
  static void Run2(const RowArgs& a) {
    using R = decltype(Op::Run(T(), T(), a.params));
    if ((a.scalars & 3) == 0) {
      for (std::size_t i = 0; i < a.count; ++i)
        StoreAt<R>(a.out, i, Op::Run(LoadAt<T>(a.in[0], i), LoadAt<T>(a.in[1], i), a.params));
      return;
    }
    const std::size_t x = a.scalars & 1 ? 0 : 1, y = a.scalars & 2 ? 0 : 1;
    for (std::size_t i = 0; i < a.count; ++i)
      StoreAt<R>(a.out, i,
                 Op::Run(LoadAt<T>(a.in[0], i * x), LoadAt<T>(a.in[1], i * y), a.params));
  }
  static void Run3(const RowArgs& a) {
    using X = typename Op::template First<T>;
    const std::size_t x = a.scalars & 1 ? 0 : 1, y = a.scalars & 2 ? 0 : 1;
    const std::size_t z = a.scalars & 4 ? 0 : 1;
    for (std::size_t i = 0; i < a.count; ++i)
      StoreAt<T>(a.out, i, Op::Run(LoadAt<X>(a.in[0], i * x), LoadAt<T>(a.in[1], i * y),
                                   LoadAt<T>(a.in[2], i * z), a.params));
  }
};

#define NPURT_ELEMENTWISE_1(name, types, cost, ...)                        \
  struct name##Scalar {                                                    \
    template <typename T>                                                  \
    static T Run(T x, [[maybe_unused]] const float* p) {                   \
      return static_cast<T>(__VA_ARGS__);                                  \
    }                                                                      \
  };
#define NPURT_ELEMENTWISE_TEST_1(name, types, cost, ...)                   \
  struct name##Scalar {                                                    \
    template <typename T>                                                  \
    static bool Run(T x, [[maybe_unused]] const float* p) {                \
      return __VA_ARGS__;                                                  \
    }                                                                      \
  };
#define NPURT_ELEMENTWISE_2(name, types, cost, ...)                        \
  struct name##Scalar {                                                    \
    template <typename T>                                                  \
    static T Run(T x, T y, [[maybe_unused]] const float* p) {              \
      return static_cast<T>(__VA_ARGS__);                                  \
    }                                                                      \
  };
#define NPURT_ELEMENTWISE_TEST_2(name, types, cost, ...)                   \
  struct name##Scalar {                                                    \
    template <typename T>                                                  \
    static bool Run(T x, T y, [[maybe_unused]] const float* p) {           \
      return __VA_ARGS__;                                                  \
    }                                                                      \
  };
#define NPURT_ELEMENTWISE_3(name, types, cost, ...)                        \
  struct name##Scalar {                                                    \
    template <typename T>                                                  \
    using First = T;                                                       \
    template <typename T>                                                  \
    static T Run(T x, T y, T z, [[maybe_unused]] const float* p) {         \
      return static_cast<T>(__VA_ARGS__);                                  \
    }                                                                      \
  };
#define NPURT_ELEMENTWISE_WHERE(name, types, cost, ...)                    \
  struct name##Scalar {                                                    \
    template <typename T>                                                  \
    using First = bool;                                                    \
    template <typename T>                                                  \
    static T Run(bool x, T y, T z, [[maybe_unused]] const float* p) {      \
      return static_cast<T>(__VA_ARGS__);                                  \
    }                                                                      \
  };
#include "kernels/elementwise/ops.inc"
#undef NPURT_ELEMENTWISE_1
#undef NPURT_ELEMENTWISE_2
#undef NPURT_ELEMENTWISE_3
#undef NPURT_ELEMENTWISE_TEST_1
#undef NPURT_ELEMENTWISE_TEST_2
#undef NPURT_ELEMENTWISE_WHERE

// The row of one operation for T, or null if its types leave T out.
template <typename T>
RowFn RowOf(ElementwiseOp op) {
  switch (op) {
#define NPURT_ROW(name, types, run)                               \
  case ElementwiseOp::k##name:                                    \
    if constexpr (Contains(types, kDTypeOf<T>)) {                 \
      return &Rows<name##Scalar, T>::run;                         \
    }                                                             \
    return nullptr;
#define NPURT_ELEMENTWISE_1(name, types, cost, ...) NPURT_ROW(name, (types), Run1)
#define NPURT_ELEMENTWISE_2(name, types, cost, ...) NPURT_ROW(name, (types), Run2)
#define NPURT_ELEMENTWISE_3(name, types, cost, ...) NPURT_ROW(name, (types), Run3)
#define NPURT_ELEMENTWISE_TEST_1(name, types, cost, ...) NPURT_ROW(name, (types), Run1)
#define NPURT_ELEMENTWISE_TEST_2(name, types, cost, ...) NPURT_ROW(name, (types), Run2)
#define NPURT_ELEMENTWISE_WHERE(name, types, cost, ...) NPURT_ROW(name, (types), Run3)
#include "kernels/elementwise/ops.inc"
#undef NPURT_ELEMENTWISE_1
#undef NPURT_ELEMENTWISE_2
#undef NPURT_ELEMENTWISE_3
#undef NPURT_ELEMENTWISE_TEST_1
#undef NPURT_ELEMENTWISE_TEST_2
#undef NPURT_ELEMENTWISE_WHERE
#undef NPURT_ROW
    case ElementwiseOp::kCast:
      return nullptr;
  }
  return nullptr;
}

}  // namespace
}  // namespace npurt::kernels
