// ScopedFloatMode: the floating-point mode in which kernels run, until the end of the scope.
//
// Denormal operands and results count as zero (they cost a hundred times a normal one), rounding is
// to nearest and no exception traps, whatever the host has set; its own mode, sticky flags too,
// comes back with the destructor. x86 only; elsewhere the mode stays as it is.
//
// Thread safety: the mode belongs to the thread; make and destroy the object on the same one.
#ifndef NPURT_EXEC_FLOAT_MODE_H_
#define NPURT_EXEC_FLOAT_MODE_H_

namespace npurt::exec {

#if defined(__x86_64__) || defined(__i386__)

class ScopedFloatMode {
 public:
  // Built-ins, because <immintrin.h> is the business of kernels.
  ScopedFloatMode() : host_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(kCompute); }
  ~ScopedFloatMode() { __builtin_ia32_ldmxcsr(host_); }
  ScopedFloatMode(const ScopedFloatMode&) = delete;
  ScopedFloatMode& operator=(const ScopedFloatMode&) = delete;

 private:
  static constexpr unsigned kFlushToZero = 0x8000;
  static constexpr unsigned kDenormalsAreZero = 0x0040;
  static constexpr unsigned kAllMasked = 0x1F80;
  static constexpr unsigned kCompute = kFlushToZero | kDenormalsAreZero | kAllMasked;

  unsigned host_;
};

#else

class ScopedFloatMode {
 public:
  ScopedFloatMode() {}
  ~ScopedFloatMode() {}
  ScopedFloatMode(const ScopedFloatMode&) = delete;
  ScopedFloatMode& operator=(const ScopedFloatMode&) = delete;
};

#endif

}  // namespace npurt::exec

#endif  // NPURT_EXEC_FLOAT_MODE_H_
