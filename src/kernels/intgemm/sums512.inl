// The parts of Sums that the two sets with 512 bits share: textually included inside the struct.
static constexpr int kWidth = 16;
__m512i v;

static __mmask16 First(int n) { return static_cast<__mmask16>((1u << n) - 1); }
static Sums zero() { return {_mm512_setzero_si512()}; }
static Sums broadcast(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
static Sums load(const std::int32_t* p, int n) { return {_mm512_maskz_loadu_epi32(First(n), p)}; }
static Sums load_words(const Word* p) { return {_mm512_loadu_si512(p)}; }
static Sums broadcast_word(const char* p) {
  std::int32_t x;
  std::memcpy(&x, p, sizeof x);
  return {_mm512_set1_epi32(x)};
}
static Sums add(Sums a, Sums b) { return {_mm512_add_epi32(a.v, b.v)}; }
static Sums sub(Sums a, Sums b) { return {_mm512_sub_epi32(a.v, b.v)}; }
static Sums mul(Sums a, Sums b) { return {_mm512_mullo_epi32(a.v, b.v)}; }

// Eight of them. A NaN passes both limits and becomes the smallest int32.
static __m256i Rounded(__m256i sums, const Finish& f, int first, int n) {
  const __mmask8 lanes = static_cast<__mmask8>(n >= 8 ? 255 : (1u << (n < 0 ? 0 : n)) - 1);
  __m512d y = _mm512_add_pd(_mm512_cvtepi32_pd(sums), _mm512_set1_pd(f.row_bias));
  if (f.column_bias != nullptr)
    y = _mm512_add_pd(y, _mm512_maskz_loadu_pd(lanes, f.column_bias + first));
  y = _mm512_mul_pd(y, _mm512_set1_pd(f.row_scale));
  if (f.column_scale != nullptr)
    y = _mm512_mul_pd(y, _mm512_maskz_loadu_pd(lanes, f.column_scale + first));
  y = _mm512_min_pd(_mm512_set1_pd(f.high), _mm512_max_pd(_mm512_set1_pd(f.low), y));
  const __m256i whole = _mm512_cvtpd_epi32(y);
  const __mmask8 number = _mm512_cmp_pd_mask(y, y, _CMP_ORD_Q);
  return _mm256_maskz_add_epi32(number, whole, _mm256_set1_epi32(f.zero));
}
static Sums finish(Sums x, const Finish& f, int n) {
  const __m256i low = Rounded(_mm512_castsi512_si256(x.v), f, 0, n);
  const __m256i high = Rounded(_mm512_extracti64x4_epi64(x.v, 1), f, 8, n - 8);
  return {_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1)};
}
// The same in float32, where no column has a bias and all rows have one scale: three roundings leave an error
// of less than 2^-13 in what is not beyond all bytes. False if a lane is too near a tie to tell; a NaN is.
static constexpr bool kFinishesInFloat = true;
struct FloatFinish {
  __m512 scale, low, high;
  __m512i zero;
};
__attribute__((always_inline)) static FloatFinish InFloat(const Finish& f, int n) {
  const __m512d row = _mm512_set1_pd(f.row_scale);
  __m512 scale = _mm512_set1_ps(static_cast<float>(f.row_scale));
  if (f.column_scale != nullptr) {
    const __mmask16 lanes = First(n);
    const __m512d low = _mm512_maskz_loadu_pd(static_cast<__mmask8>(lanes), f.column_scale);
    const __m512d high = _mm512_maskz_loadu_pd(static_cast<__mmask8>(lanes >> 8), f.column_scale + 8);
    scale = _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(_mm512_mul_pd(row, low))),
                               _mm512_cvtpd_ps(_mm512_mul_pd(row, high)), 1);
  }
  return {scale, _mm512_set1_ps(static_cast<float>(f.low)), _mm512_set1_ps(static_cast<float>(f.high)),
          _mm512_set1_epi32(f.zero)};
}
static bool finish_in_float(Sums x, const FloatFinish& f, Sums* result) {
  const __m512 y = _mm512_mul_ps(_mm512_cvtepi32_ps(x.v), f.scale);
  const __m512 whole = _mm512_roundscale_ps(y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 distance = _mm512_abs_ps(_mm512_sub_ps(y, whole));
  const __mmask16 unsure =
      _mm512_cmp_ps_mask(distance, _mm512_set1_ps(0.5f - 0x1p-13f), _CMP_NLT_UQ);
  const __m512 near = _mm512_min_ps(f.high, _mm512_max_ps(f.low, whole));
  result->v = _mm512_add_epi32(_mm512_cvtps_epi32(near), f.zero);
  return unsure == 0;
}
void store(std::int32_t* p, int n) const { _mm512_mask_storeu_epi32(p, First(n), v); }
void store_bytes(unsigned char* p, int n) const {
  _mm512_mask_cvtepi32_storeu_epi8(p, First(n), v);
}
