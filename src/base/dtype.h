// DType: the element types of tensors, their sizes and names, and the two 16-bit float types.
//
// The numbers are those of ONNX TensorProto.DataType, which are also the numbers of the C interface,
// so that no layer needs a translation table. Types below one byte are stored packed, low bits first.
//
// Thread safety: pure functions and values.
#ifndef NPURT_BASE_DTYPE_H_
#define NPURT_BASE_DTYPE_H_

#include <complex>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace npurt {

enum class DType : std::uint8_t {
  kUndefined = 0,
  kF32 = 1,
  kU8 = 2,
  kI8 = 3,
  kU16 = 4,
  kI16 = 5,
  kI32 = 6,
  kI64 = 7,
  kString = 8,
  kBool = 9,
  kF16 = 10,
  kF64 = 11,
  kU32 = 12,
  kU64 = 13,
  kC64 = 14,
  kC128 = 15,
  kBF16 = 16,
  kF8E4M3FN = 17,
  kF8E4M3FNUZ = 18,
  kF8E5M2 = 19,
  kF8E5M2FNUZ = 20,
  kU4 = 21,
  kI4 = 22,
  kF4E2M1 = 23,
  kF8E8M0 = 24,
  kU2 = 25,
  kI2 = 26,
};
inline constexpr int kDTypeCount = 27;

// Bits of one element in memory; a string element is a std::string object. 0 for kUndefined.
int DTypeBits(DType dtype);
// "float32", "int64", "bool" …; "undefined" for numbers that are no type.
absl::string_view DTypeName(DType dtype);
// The type of that name ("float" and "double" are accepted too), or kUndefined.
DType DTypeFromName(absl::string_view name);
inline bool IsDType(int number) { return number > 0 && number < kDTypeCount; }

// Sets of types, for operator schemas.
using DTypeSet = std::uint32_t;
constexpr DTypeSet Bit(DType dtype) { return DTypeSet{1} << static_cast<int>(dtype); }
template <typename... D>
constexpr DTypeSet DTypes(D... dtypes) {
  return (Bit(dtypes) | ...);
}
inline constexpr DTypeSet kFloats =
    DTypes(DType::kF32, DType::kF64, DType::kF16, DType::kBF16);
inline constexpr DTypeSet kSignedIntegers =
    DTypes(DType::kI8, DType::kI16, DType::kI32, DType::kI64);
inline constexpr DTypeSet kUnsignedIntegers =
    DTypes(DType::kU8, DType::kU16, DType::kU32, DType::kU64);
inline constexpr DTypeSet kIntegers = kSignedIntegers | kUnsignedIntegers;
inline constexpr DTypeSet kNumbers = kFloats | kIntegers;
inline constexpr DTypeSet kBools = Bit(DType::kBool);
inline constexpr DTypeSet kStrings = Bit(DType::kString);
inline constexpr DTypeSet kComplexes = DTypes(DType::kC64, DType::kC128);
inline constexpr DTypeSet kPlainTypes = kNumbers | kBools;  // one to eight bytes, arithmetic in C++
inline constexpr DTypeSet kAnyType = ~DTypeSet{1} & ((DTypeSet{1} << kDTypeCount) - 1);
constexpr bool Contains(DTypeSet set, DType dtype) { return (set & Bit(dtype)) != 0; }
constexpr bool IsFloat(DType dtype) { return Contains(kFloats, dtype); }

// Bytes of `count` elements, packed types rounded up to a byte. False on overflow or if
// `count` is negative.
[[nodiscard]] bool BytesOf(DType dtype, std::int64_t count, std::size_t* bytes);

// IEEE 754 binary16 and bfloat16 as storage; arithmetic happens in float. Conversions round to
// nearest even, keep infinities and NaN.
float HalfBitsToFloat(std::uint16_t bits);
std::uint16_t FloatToHalfBits(float value);

class Half {
 public:
  Half() = default;
  explicit Half(double value) : bits_(FloatToHalfBits(RoundToOdd(value))) {}
  explicit Half(float value) : bits_(FloatToHalfBits(value)) {}
  template <typename T>
  explicit Half(T value) : Half(static_cast<double>(value)) {}
  operator float() const { return HalfBitsToFloat(bits_); }
  std::uint16_t bits() const { return bits_; }

  // `value` as a float whose last bit is sticky, so that rounding it again rounds only once.
  static float RoundToOdd(double value);

 private:
  std::uint16_t bits_ = 0;
};

class BFloat16 {
 public:
  BFloat16() = default;
  explicit BFloat16(float value) : bits_(FromFloat(value)) {}
  explicit BFloat16(double value) : bits_(FromFloat(Half::RoundToOdd(value))) {}
  template <typename T>
  explicit BFloat16(T value) : BFloat16(static_cast<double>(value)) {}
  operator float() const {
    const std::uint32_t wide = std::uint32_t{bits_} << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
  std::uint16_t bits() const { return bits_; }

 private:
  static std::uint16_t FromFloat(float value);
  std::uint16_t bits_ = 0;
};

// C++ type <-> DType, for the types that have one.
template <typename T>
struct DTypeOfT;
#define NPURT_DTYPE_OF(type, dtype) \
  template <>                       \
  struct DTypeOfT<type> {           \
    static constexpr DType value = DType::dtype; \
  };
NPURT_DTYPE_OF(float, kF32)
NPURT_DTYPE_OF(double, kF64)
NPURT_DTYPE_OF(Half, kF16)
NPURT_DTYPE_OF(BFloat16, kBF16)
NPURT_DTYPE_OF(std::int8_t, kI8)
NPURT_DTYPE_OF(std::int16_t, kI16)
NPURT_DTYPE_OF(std::int32_t, kI32)
NPURT_DTYPE_OF(std::int64_t, kI64)
NPURT_DTYPE_OF(std::uint8_t, kU8)
NPURT_DTYPE_OF(std::uint16_t, kU16)
NPURT_DTYPE_OF(std::uint32_t, kU32)
NPURT_DTYPE_OF(std::uint64_t, kU64)
NPURT_DTYPE_OF(bool, kBool)
NPURT_DTYPE_OF(std::string, kString)
NPURT_DTYPE_OF(std::complex<float>, kC64)
NPURT_DTYPE_OF(std::complex<double>, kC128)
#undef NPURT_DTYPE_OF
template <typename T>
inline constexpr DType kDTypeOf = DTypeOfT<T>::value;

// Calls f(T{}) with the C++ type of `dtype` and returns true; false if `dtype` is not in `Set` or
// has no C++ type. Instantiates f only for the types of `Set`.
template <DTypeSet Set, typename F>
bool DispatchDType(DType dtype, F&& f) {
  switch (dtype) {
#define NPURT_CASE(type)                                  \
  case kDTypeOf<type>:                                    \
    if constexpr (Contains(Set, kDTypeOf<type>)) {        \
      f(type{});                                          \
      return true;                                        \
    }                                                     \
    return false;
    NPURT_CASE(float)
    NPURT_CASE(double)
    NPURT_CASE(Half)
    NPURT_CASE(BFloat16)
    NPURT_CASE(std::int8_t)
    NPURT_CASE(std::int16_t)
    NPURT_CASE(std::int32_t)
    NPURT_CASE(std::int64_t)
    NPURT_CASE(std::uint8_t)
    NPURT_CASE(std::uint16_t)
    NPURT_CASE(std::uint32_t)
    NPURT_CASE(std::uint64_t)
    NPURT_CASE(bool)
    NPURT_CASE(std::string)
    NPURT_CASE(std::complex<float>)
    NPURT_CASE(std::complex<double>)
#undef NPURT_CASE
    default:
      return false;
  }
}

}  // namespace npurt

#endif  // NPURT_BASE_DTYPE_H_
