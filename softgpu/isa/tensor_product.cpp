#include "softgpu/isa/tensor_product.h"

#include "softgpu/options.h"

// Contracts products and sums of the vectors below to fma.
#pragma GCC optimize("fp-contract=fast")

namespace softgpu {
namespace {

// Tile that is computed at once: kColumns columns of registers by kHalves halves of the rows.  Its
// sums are in 16 vector registers of 32, or 8 of 16.
#ifdef __AVX512F__
constexpr int kVectorBytes = 64, kHalves = 2;
#else
constexpr int kVectorBytes = 32, kHalves = 1;
#endif
constexpr int kVectorLanes = kVectorBytes / 4, kVectors = kWarpSize / kVectorLanes;
constexpr int kColumns = kVectorLanes / 4;

using Vector = float __attribute__((vector_size(kVectorBytes)));
using Indices = int32_t __attribute__((vector_size(kVectorBytes)));

inline Vector load(const float *from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

inline void store(float *to, Vector v) {
  std::memcpy(to, &v, sizeof v);
}

/// Repeats 4 numbers of B over a vector: four lanes have the same row, and columns that are 2
/// apart.
inline Vector repeat(Vector from, int which) {
  Indices indices;
  for (int i = 0; i < kVectorLanes; i++) indices[i] = which * 4 + i % 4;
  return __builtin_shuffle(from, indices);
}

/// Returns the start of the register of `column` (even or odd columns of a group) and `half`.
inline float *register_of(float *d, int column, int half) {
  return d + ((column / 2) * 4 + half * 2 + column % 2) * kWarpSize;
}

/// Computes the sums of kUsed columns of registers from `first` on, over all k.
template <int kUsed>
void multiply_add_block(float *d, const ProductRows &a, const ProductColumns &b, int depth,
                        int first, int first_half) {
  Vector sums[kUsed][kHalves][kVectors];
  const auto for_each_sum = [&](auto &&f) {
#pragma GCC unroll 8
    for (int column = 0; column < kUsed; column++)
#pragma GCC unroll 8
      for (int half = 0; half < kHalves; half++)
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; v++)
          f(sums[column][half][v],
            register_of(d, first + column, first_half + half) + v * kVectorLanes);
  };
  for_each_sum([](Vector &sum, const float *from) { sum = load(from); });
  for (int k = 0; k < depth; k++) {
    const Vector factors = load(b.row(k) + first * 4);
#pragma GCC unroll 8
    for (int column = 0; column < kUsed; column++) {
      const Vector y = repeat(factors, column);
#pragma GCC unroll 8
      for (int half = 0; half < kHalves; half++)
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; v++)
          sums[column][half][v] += load(a.factors[k][first_half + half] + v * kVectorLanes) * y;
    }
  }
  for_each_sum([](Vector &sum, float *to) { store(to, sum); });
}

}  // namespace

void multiply_add(float *d, const ProductRows &a, const ProductColumns &b, int depth) {
  if (options().skips_products) return;
  const int num_columns = b.num_columns / 4;
  for (int half = 0; half < 2; half += kHalves) {
    int column = 0;
    for (; column + kColumns <= num_columns; column += kColumns)
      multiply_add_block<kColumns>(d, a, b, depth, column, half);
    if (column < num_columns) multiply_add_block<2>(d, a, b, depth, column, half);
  }
}

}  // namespace softgpu
