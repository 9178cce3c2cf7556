// WMMA fragments: loads of either layout and several strides, products, stores.
#include "cases.h"

namespace mp::MP_TARGET {

namespace {

using wmma::kTile;
using wmma::Layout;

constexpr int kMaxLd = 40;
constexpr int kTerms = 2;
constexpr int kRepeats = 20;  // more than the simulator defers
constexpr int kLdD = 20;
constexpr int kSeedA = 1, kSeedB = 5;

template <class T>
struct WmmaArgs {
  const T *a, *b;  ///< [kTerms][kTile][ld]
  float *d;        ///< [kTile][kLdD]
  int ld;
};

/// Computes D = 3 + kRepeats times the sum of kTerms products; columns past kTile stay unchanged.
template <class T, Layout la, Layout lb>
MP_KERNEL(kWarpSize, 1)
multiply_fragments(MP_PARAM(WmmaArgs<T>) args) {
  if constexpr (wmma::supported<T, 0>()) {
    MP_DYN_SHARED(float, smem);
    float *const d_smem = smem;
    T *const a_smem = reinterpret_cast<T *>(smem + kTile * kLdD), *const b_smem =
                                                                      a_smem +
                                                                      kTerms * kTile * kMaxLd;
    const int matrix = kTile * args.ld;
    for (int i = lane_index(); i < kTerms * matrix; i += kWarpSize) {
      a_smem[i] = args.a[i];
      b_smem[i] = args.b[i];
    }
    warp_sync();
    wmma::Accumulator acc;
    wmma::fill(acc, 3.0f);
    for (int term = 0; term < kTerms; term++) {
      wmma::FragmentA<T, la> a;
      wmma::FragmentB<T, lb> b;
      wmma::load(a, a_smem + term * matrix, args.ld);
      wmma::load(b, b_smem + term * matrix, args.ld);
      for (int i = 0; i < kRepeats; i++) wmma::multiply_add(acc, a, b);
    }
    wmma::store_row_major(d_smem, acc, kLdD);
    warp_sync();
    for (int i = lane_index(); i < kTile * kLdD; i += kWarpSize)
      if (i % kLdD < kTile) args.d[i] = d_smem[i];
  }
}

template <class T>
constexpr size_t kSmemBytes = sizeof(float) * kTile *kLdD + 2 * sizeof(T) * kTerms *kTile *kMaxLd;

/// Returns element i of the terms of an operand.
int element(int i, int seed) {
  return (i * i * 7 + i * 11 + seed) % 19 - 9;
}

template <class T>
std::vector<T> integers(int ld, int seed) {
  std::vector<T> values(static_cast<size_t>(kTerms * kTile * ld));
  for (size_t i = 0; i < values.size(); i++)
    values[i] = small_integer<T>(element(static_cast<int>(i), seed));
  return values;
}

/// Returns D, including the initial memory contents in columns past kTile.
std::vector<float> product(Layout la, Layout lb, int ld) {
  std::vector<float> d(kTile * kLdD);
  std::memset(d.data(), mpconform::kUntouched, d.size() * sizeof(float));
  const auto at = [ld](Layout layout, int term, int row, int col) {
    return term * kTile * ld + (layout == Layout::row_major ? row * ld + col : col * ld + row);
  };
  for (int i = 0; i < kTile; i++)
    for (int j = 0; j < kTile; j++) {
      int sum = 0;
      for (int k = 0; k < kTerms * kTile; k++)
        sum += element(at(la, k / kTile, i, k % kTile), kSeedA) *
               element(at(lb, k / kTile, k % kTile, j), kSeedB);
      d[static_cast<size_t>(i * kLdD + j)] = static_cast<float>(3 + kRepeats * sum);
    }
  return d;
}

/// Injected bug: B is loaded in the other layout.
template <class T, Layout la, Layout lb>
void add_product(Output &output, const Device &device, const std::string &name, Mistake mistake) {
  constexpr Layout kOther = lb == Layout::row_major ? Layout::col_major : Layout::row_major;
  for (const int ld : {16, 24, kMaxLd}) {
    const Memory<T> a(device, integers<T>(ld, kSeedA)), b(device, integers<T>(ld, kSeedB));
    const Memory<float> d(device, kTile * kLdD);
    run(device, "multiply_fragments",
        mistake == Mistake::made ? multiply_fragments<T, la, kOther>
                                 : multiply_fragments<T, la, lb>,
        {1, kWarpSize, kSmemBytes<T>}, {a.data(), b.data(), d.data(), ld});
    output.push_back(
        make_part(name + ", ld " + std::to_string(ld), kLdD, d.download(), product(la, lb, ld)));
  }
}

template <class T>
void add_layouts(Output &output, const Device &device, const std::string &type, Mistake mistake) {
  constexpr Layout kRow = Layout::row_major, kCol = Layout::col_major;
  add_product<T, kRow, kRow>(output, device, type + " row x row", mistake);
  add_product<T, kRow, kCol>(output, device, type + " row x col", mistake);
  add_product<T, kCol, kRow>(output, device, type + " col x row", mistake);
  add_product<T, kCol, kCol>(output, device, type + " col x col", mistake);
}

}  // namespace

Output conform_wmma(const Device &device, Mistake mistake) {
  Output output;
  add_layouts<half>(output, device, "fp16", mistake);
  if (device.arch >= 80) add_layouts<bf16>(output, device, "bf16", mistake);
  return output;
}

}  // namespace mp::MP_TARGET
