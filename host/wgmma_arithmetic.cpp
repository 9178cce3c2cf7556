#include "host/wgmma_arithmetic.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/simt/half.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

namespace mp::host::engine {

namespace {

// D is computed in blocks of kBlockRows x kPanel.
constexpr int kBlockRows = 8;
constexpr int kPanel = 16;

/// Returns the index of element (mn, k) of a packed operand: [mn / kWidth][k][mn % kWidth].
template <int kWidth>
int packed_at(int mn, int k, int num_k) {
  return (mn / kWidth * num_k + k) * kWidth + mn % kWidth;
}

#if defined(__AVX2__) && defined(__FMA__)

void transpose(__m256 (&x)[8]) {
  __m256 pairs[8], quads[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int h = 0; h < 2; h++) {
      const __m256d low = _mm256_castps_pd(pairs[i + h]);
      const __m256d high = _mm256_castps_pd(pairs[i + h + 2]);
      quads[i + 2 * h] = _mm256_castpd_ps(_mm256_unpacklo_pd(low, high));
      quads[i + 2 * h + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low, high));
    }
  for (int i = 0; i < 4; i++) {
    x[i] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20);
    x[i + 4] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31);
  }
}

/// Packs matrix (i, j) of an operand as eight rows of k.
template <int kWidth, class T>
void pack_matrix(float *out, const WgmmaLayout &layout, int i, int j, int k0, int num_k,
                 const std::byte *smem) {
  const uint32_t matrix = layout.matrix(i, j);
  __m256 x[8];
  for (int r = 0; r < 8; r++)
    x[r] = to_floats8(reinterpret_cast<const T *>(smem + layout.unit(matrix, r)));
  if (!layout.is_mn_major) transpose(x);
  float *const target = out + packed_at<kWidth>(8 * i, k0 + 8 * j, num_k);
  for (int k = 0; k < 8; k++) _mm256_store_ps(target + k * kWidth, x[k]);
}

/// Computes the same bits as multiply_rows.
[[gnu::target("avx512f")]] void multiply_block_avx512(float *d, int ld, bool accumulate,
                                                      const float *a, const float *b, int num_k) {
  __m512 acc[kBlockRows];
  for (int r = 0; r < kBlockRows; r++)
    acc[r] = accumulate ? _mm512_loadu_ps(d + r * ld) : _mm512_setzero_ps();
  for (int k = 0; k < num_k; k++) {
    const __m512 b0 = _mm512_load_ps(b + k * kPanel);
    for (int r = 0; r < kBlockRows; r++)
      acc[r] = _mm512_fmadd_ps(_mm512_set1_ps(a[k * kWgmmaM + r]), b0, acc[r]);
  }
  for (int r = 0; r < kBlockRows; r++) _mm512_storeu_ps(d + r * ld, acc[r]);
}

constexpr int kRows = 4;  ///< 8 registers of D, 2 of B, 1 broadcast of A
void multiply_rows(float *d, int ld, bool accumulate, const float *a, const float *b, int num_k) {
  __m256 acc[kRows][2];
  for (int r = 0; r < kRows; r++)
    for (int h = 0; h < 2; h++)
      acc[r][h] = accumulate ? _mm256_load_ps(d + r * ld + 8 * h) : _mm256_setzero_ps();
  for (int k = 0; k < num_k; k++) {
    const __m256 b0 = _mm256_load_ps(b + k * kPanel), b1 = _mm256_load_ps(b + k * kPanel + 8);
    for (int r = 0; r < kRows; r++) {
      const __m256 a0 = _mm256_broadcast_ss(a + k * kWgmmaM + r);
      acc[r][0] = _mm256_fmadd_ps(a0, b0, acc[r][0]);
      acc[r][1] = _mm256_fmadd_ps(a0, b1, acc[r][1]);
    }
  }
  for (int r = 0; r < kRows; r++)
    for (int h = 0; h < 2; h++) _mm256_store_ps(d + r * ld + 8 * h, acc[r][h]);
}

void multiply_block(float *d, int ld, bool accumulate, const float *a, const float *b, int num_k) {
  if (__builtin_cpu_supports("avx512f"))
    return multiply_block_avx512(d, ld, accumulate, a, b, num_k);
  for (int r = 0; r < kBlockRows; r += kRows)
    multiply_rows(d + r * ld, ld, accumulate, a + r, b, num_k);
}

#else

template <int kWidth, class T>
void pack_matrix(float *out, const WgmmaLayout &layout, int i, int j, int k0, int num_k,
                 const std::byte *smem) {
  const uint32_t matrix = layout.matrix(i, j);
  for (int r = 0; r < 8; r++) {
    T unit[8];
    std::memcpy(unit, smem + layout.unit(matrix, r), sizeof unit);
    for (int e = 0; e < 8; e++) {
      const int mn = layout.is_mn_major ? e : r, k = layout.is_mn_major ? r : e;
      out[packed_at<kWidth>(8 * i + mn, k0 + 8 * j + k, num_k)] = to_float(unit[e]);
    }
  }
}

void multiply_block(float *d, int ld, bool accumulate, const float *a, const float *b, int num_k) {
  for (int r = 0; r < kBlockRows; r++)
    for (int c = 0; c < kPanel; c++) {
      float sum = accumulate ? d[r * ld + c] : 0.0f;
      for (int k = 0; k < num_k; k++) sum = std::fma(a[k * kWgmmaM + r], b[k * kPanel + c], sum);
      d[r * ld + c] = sum;
    }
}

#endif

template <int kWidth, class T>
void pack(float *out, const WgmmaLayout &layout, int num_mn, int k0, int num_k,
          const std::byte *smem) {
  for (int i = 0; i < num_mn / 8; i++)
    for (int j = 0; j < kWgmmaK / 8; j++)
      pack_matrix<kWidth, T>(out, layout, i, j, k0, num_k, smem);
}

template <class T>
void multiply(float *d, const WgmmaOperands *const *terms, int num_terms, const std::byte *smem,
              WgmmaScratch &scratch) {
  const int n = terms[0]->n, num_k = num_terms * kWgmmaK;
  const bool accumulate = terms[0]->accumulate;
  for (int t = 0; t < num_terms; t++) {
    pack<kWgmmaM, T>(scratch.a, terms[t]->a(), kWgmmaM, t * kWgmmaK, num_k, smem);
    pack<kPanel, T>(scratch.b, terms[t]->b(), n, t * kWgmmaK, num_k, smem);
  }
  for (int col = 0; col < n; col += kPanel)
    for (int row = 0; row < kWgmmaM; row += kBlockRows)
      multiply_block(d + row * n + col, n, accumulate, scratch.a + row, scratch.b + col * num_k,
                     num_k);
}

}  // namespace

void wgmma_multiply(float *d, const WgmmaOperands *const *terms, int num_terms,
                    const std::byte *smem, WgmmaScratch &scratch) {
  with_half_type(terms[0]->dtype, [&]<class T>(std::type_identity<T>) {
    multiply<T>(d, terms, num_terms, smem, scratch);
  });
}

}  // namespace mp::host::engine
