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
void store(std::int32_t* p, int n) const { _mm512_mask_storeu_epi32(p, First(n), v); }
void store_bytes(unsigned char* p, int n) const {
  _mm512_mask_cvtepi32_storeu_epi8(p, First(n), v);
}
