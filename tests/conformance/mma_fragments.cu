// mma.sync: loads of both forms, products of two fragments of B, and the documented element of
// every lane.
#include "cases.h"
#include "kernels/simt/mma.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kTerms = 2, kSize = 16;  // D = 3 + sum of kTerms products of 16 x 16 x 16
constexpr int kMatrix = kSize * kSize;

template <class T>
struct MmaArgs {
  const T *a, *b;  ///< [kTerms][16][16]
  float *d;        ///< [16][16]
};

/// @tparam kByRow    B is stored as [column][k]; otherwise as [k][column]
/// @tparam kSwapped  injected bug: the fragments of B are exchanged
template <class T, bool kByRow, bool kSwapped>
MP_KERNEL(kWarpSize, 1)
multiply_pairs(MP_PARAM(MmaArgs<T>) args) {
  if constexpr (mma::supported<T, 0>()) {
    MP_DYN_SHARED(T, smem);
    T *const a_smem = smem, *const b_smem = smem + kTerms * kMatrix;
    for (int i = lane_index(); i < kTerms * kMatrix; i += kWarpSize) {
      a_smem[i] = args.a[i];
      b_smem[i] = args.b[i];
    }
    warp_sync();
    mma::Accumulator d[2];
    for (int j = 0; j < 2; j++)
      for (int e = 0; e < 4; e++) d[j][e] = 3.0f;
    for (int term = 0; term < kTerms; term++) {
      const T *const a_term = a_smem + term * kMatrix, *const b_term = b_smem + term * kMatrix;
      mma::Pairs<T> a, b;
      mma::load(a, lane_index(),
                [&](int i) { return a_term + i % 16 * kSize + i / 16 * mma::kUnit; });
      if constexpr (kByRow)
        mma::load(b, lane_index(), [&](int i) {
          return b_term + (i / 16 * 8 + i % 8) * kSize + i / 8 % 2 * mma::kUnit;
        });
      else
        mma::load_transposed(b, lane_index(),
                             [&](int i) { return b_term + i % 16 * kSize + i / 16 * mma::kUnit; });
      for (int j = 0; j < 2; j++) mma::multiply_add(d[j], a, b, kSwapped ? 1 - j : j);
    }
    for (int j = 0; j < 2; j++)
      for (int e = 0; e < 4; e++) {
        const int row = mma::fragment_row() + e / 2 * 8;
        args.d[row * kSize + j * mma::kColumns + mma::fragment_column() + e % 2] = d[j][e];
      }
  }
}

/// Returns element (row, column) of a term of A or B, as row x k and k x column.
int element(int term, int row, int column, int seed) {
  const int i = (term * kSize + row) * kSize + column;
  return (i * i * 7 + i * 11 + seed) % 19 - 9;
}

template <class T, bool kByRow>
void add_product(Output &output, const Device &device, const std::string &name, Mistake mistake) {
  std::vector<T> a, b;
  std::vector<float> expected(kMatrix, 3.0f);
  for (int term = 0; term < kTerms; term++)
    for (int i = 0; i < kSize; i++)
      for (int j = 0; j < kSize; j++) {
        a.push_back(small_integer<T>(element(term, i, j, 1)));
        b.push_back(small_integer<T>(kByRow ? element(term, j, i, 5) : element(term, i, j, 5)));
        for (int k = 0; k < kSize; k++)
          expected[static_cast<size_t>(i * kSize + j)] +=
              static_cast<float>(element(term, i, k, 1) * element(term, k, j, 5));
      }
  const Memory<T> a_memory(device, a), b_memory(device, b);
  const Memory<float> d(device, kMatrix);
  run(device, "multiply_pairs",
      mistake == Mistake::made ? multiply_pairs<T, kByRow, true> : multiply_pairs<T, kByRow, false>,
      {1, kWarpSize, 2 * kTerms * kMatrix * sizeof(T)},
      {a_memory.data(), b_memory.data(), d.data()});
  output.push_back(make_part(name, kSize, d.download(), expected));
}

}  // namespace

Output conform_mma(const Device &device, Mistake mistake) {
  Output output;
  add_product<half, true>(output, device, "fp16, B by column", mistake);
  add_product<half, false>(output, device, "fp16, B by k", mistake);
  if (device.arch < 80) return output;
  add_product<bf16, true>(output, device, "bf16, B by column", mistake);
  add_product<bf16, false>(output, device, "bf16, B by k", mistake);
  return output;
}

}  // namespace mp::MP_TARGET
