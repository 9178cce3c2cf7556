// WMMA in the simulator: integers small enough to be exact, against fp64.
#include "kernels/simt/wmma.h"
#include "testing.h"
#include "tests/support/input_values.h"

using namespace mp::host;
using namespace mptest;

namespace {

using wmma::kTile;
using wmma::Layout;
constexpr int kWarps = 4;
constexpr int kTerms = 3;  // products added up in one accumulator

/// One matrix per warp and term, kTile rows of `ld`; C and D row-major, one per warp.
template <class T>
struct WmmaArgs {
  const T *a, *b;
  float *d;
  int ld, ld_d;
  float c;  ///< every element of C
};

template <class T>
MP_DEVICE void copy_to_smem(T *smem, const T *gmem, int count) {
  for (int i = thread_index(); i < count; i += kWarps * kWarpSize) smem[i] = gmem[i];
}

/// D = C + sum of kTerms products, in each warp.
template <class T, Layout la, Layout lb>
MP_KERNEL(kWarps *kWarpSize, 1)
multiply(MP_PARAM(WmmaArgs<T>) args) {
  MP_DYN_SHARED(T, smem);
  const int matrix = kTile * args.ld, all = kWarps * kTerms * matrix;
  T *const a_smem = smem, *const b_smem = smem + all;
  float *const d_smem = reinterpret_cast<float *>(smem + 2 * all);
  copy_to_smem(a_smem, args.a, all);
  copy_to_smem(b_smem, args.b, all);
  block_sync();

  float *const mine = d_smem + warp_index() * kTile * args.ld_d;
  wmma::Accumulator acc, copied;
  wmma::fill(acc, args.c);
  for (int term = 0; term < kTerms; term++) {
    wmma::FragmentA<T, la> a;
    wmma::FragmentB<T, lb> b;
    wmma::load(a, a_smem + (warp_index() * kTerms + term) * matrix, args.ld);
    wmma::load(b, b_smem + (warp_index() * kTerms + term) * matrix, args.ld);
    wmma::multiply_add(acc, a, b);
  }
  wmma::copy(copied, acc);
  wmma::store_row_major(mine, copied, args.ld_d);
  warp_sync();
  for (int i = lane_index(); i < kTile * args.ld_d; i += kWarpSize)
    if (i % args.ld_d < kTile) args.d[warp_index() * kTile * args.ld_d + i] = mine[i];
}

constexpr int at(Layout layout, int row, int col, int ld) {
  return layout == Layout::row_major ? row * ld + col : col * ld + row;
}

template <class T>
std::vector<T> integers(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<T> values(count);
  for (T &value : values) value = round_to<T>(static_cast<float>(random.integer(-9, 9)));
  return values;
}

template <class T, Layout la, Layout lb>
void check_multiply(int ld, int ld_d) {
  const size_t matrix = static_cast<size_t>(kTile * ld), all = kWarps * kTerms * matrix;
  const std::vector<T> a = integers<T>(all, 1), b = integers<T>(all, 2);
  constexpr float kUntouched = -12345.0f;
  std::vector<float> d(static_cast<size_t>(kWarps * kTile * ld_d), kUntouched);
  const size_t smem_bytes = 2 * all * sizeof(T) + d.size() * sizeof(float);
  run(multiply<T, la, lb>, {2, kWarps * kWarpSize, smem_bytes},
      {a.data(), b.data(), d.data(), ld, ld_d, 3.0f}, 1);
  int wrong = 0;
  for (int w = 0; w < kWarps; w++)
    for (int i = 0; i < kTile; i++)
      for (int j = 0; j < ld_d; j++) {
        double sum = 3.0;
        for (int k = 0; k < kTerms * kTile; k++) {
          const size_t base = (w * kTerms + k / kTile) * matrix;
          sum += double{to_float(a[base + at(la, i, k % kTile, ld)])} *
                 double{to_float(b[base + at(lb, k % kTile, j % kTile, ld)])};
        }
        wrong += d[(w * kTile + i) * ld_d + j] != (j < kTile ? sum : kUntouched);
      }
  CHECK(wrong == 0);
}

template <class T>
void check_all_layouts(int ld, int ld_d) {
  check_multiply<T, Layout::row_major, Layout::row_major>(ld, ld_d);
  check_multiply<T, Layout::row_major, Layout::col_major>(ld, ld_d);
  check_multiply<T, Layout::col_major, Layout::row_major>(ld, ld_d);
  check_multiply<T, Layout::col_major, Layout::col_major>(ld, ld_d);
}

struct ChainArgs {
  float *d;
  int length;
};

/// Two interleaved chains, longer than the simulator defers: acc[0] += 2 per multiply, acc[1] += 6.
MP_KERNEL(64, 1) multiply_chain(MP_PARAM(ChainArgs) args) {
  MP_DYN_SHARED(half, smem);
  for (int i = thread_index(); i < 2 * kTile * kTile; i += 64) {
    const int row = i / kTile % kTile, col = i % kTile;
    // A = I, or 3 I; B is all twos.
    smem[i] = round_to<half>(row != col ? 0.0f : i < kTile * kTile ? 1.0f : 3.0f);
    smem[2 * kTile * kTile + i] = round_to<half>(2.0f);
  }
  block_sync();
  wmma::Accumulator acc[2];
  wmma::FragmentA<half, Layout::row_major> a[2];
  wmma::FragmentB<half, Layout::row_major> b;
  for (int i = 0; i < 2; i++) {
    wmma::fill(acc[i], 0.0f);
    wmma::load(a[i], smem + i * kTile * kTile, kTile);
  }
  wmma::load(b, smem + 2 * kTile * kTile, kTile);
  for (int n = 0; n < args.length; n++)
    for (int i = 0; i < 2; i++) wmma::multiply_add(acc[i], a[i], b);
  block_sync();
  float *const patch = reinterpret_cast<float *>(smem) + warp_index() * kTile * kTile;
  for (int i = 0; i < 2; i++) {
    wmma::store_row_major(patch, acc[i], kTile);
    warp_sync();
    for (int e = lane_index(); e < kTile * kTile; e += kWarpSize)
      args.d[(2 * warp_index() + i) * kTile * kTile + e] = patch[e];
    warp_sync();
  }
}

}  // namespace

TEST_CASE("simulator: wmma multiplies every type and layout exactly") {
  in_every_mode([] {
    check_all_layouts<half>(16, 16);
    check_all_layouts<bf16>(40, 20);
  });
  check_all_layouts<half>(24, 36);
  check_all_layouts<bf16>(16, 16);
}

TEST_CASE("simulator: wmma chains longer than the simulator defers") {
  in_every_mode([] {
    for (const int length : {1, engine::kMmaSlots, 3 * engine::kMmaSlots + 1}) {
      std::vector<float> d(4 * kTile * kTile);
      run(multiply_chain, {1, 64, 2 * 2 * kTile * kTile * sizeof(half)}, {d.data(), length});
      int wrong = 0;
      for (size_t i = 0; i < d.size(); i++)
        wrong += d[i] != static_cast<float>(i / (kTile * kTile) % 2 == 0 ? 2 * length : 6 * length);
      CHECK(wrong == 0);
    }
  });
}
