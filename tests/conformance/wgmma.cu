// wgmma: accumulators and operands of every type, width and major; stmatrix, ldmatrix.
#include "cases.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kM = 64, kK = 16;  // shape of one wgmma
constexpr int kDepth = 64;       // k of a product
constexpr int kTerms = kDepth / kK;
constexpr int kWarpgroup = 128;
constexpr int kSeedA = 1, kSeedB = 2;
constexpr int kRepeats = 17;  // more terms than the simulator defers

struct WgmmaArgs {
  const uint16_t *image;  ///< A and B as stored in shared memory
  int image_elems;
  uint64_t a[kTerms], b[kTerms];  ///< descriptors, relative to the image
  float *d;                       ///< [kM][kN]
  uint32_t accumulate;            ///< bit t: term t is added to D, otherwise it replaces D
  int repeats;                    ///< number of passes over all terms
};

/// Computes the sum of terms from the last one that replaces D on; if there is none, 3 plus all
/// terms.
template <class T, int kN, Major a_major, Major b_major>
MP_KERNEL(kWarpgroup, 1)
multiply_tiles(MP_PARAM(WgmmaArgs) args) {
  if constexpr (has_sm90()) {
    auto *const image = reinterpret_cast<uint16_t *>(aligned_smem());
    for (int i = thread_index(); i < args.image_elems; i += kWarpgroup) image[i] = args.image[i];
    async_proxy_fence();
    block_sync();
    const uint64_t base = smem_address(image) >> 4;
    float d[kN / 2];
    MP_UNROLL
    for (float &x : d) x = 3.0f;
    fence_accumulators(d);
    wgmma_fence();
    for (int i = 0; i < args.repeats; i++) {
      MP_UNROLL
      for (int t = 0; t < kTerms; t++)
        wgmma<T, kN, a_major, b_major>(d, args.a[t] + base, args.b[t] + base,
                                       (args.accumulate >> t & 1) != 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    fence_accumulators(d);
    const int thread = thread_index(), row = thread / 32 * 16 + thread % 32 / 4;
    MP_UNROLL
    for (int i = 0; i < kN / 2; i++)
      args.d[(row + i / 2 % 2 * 8) * kN + i / 4 * 8 + thread % 4 * 2 + i % 2] = d[i];
  }
}

/// Operand X[mn][k] of 16-bit elements, as TMA writes it in boxes with rows of 128 bytes.
struct WgmmaTile {
  static constexpr int kRowElems = 64, kRowBytes = 128;

  Major major;
  int mn, k;
  int base;  ///< a multiple of 1024

  int end() const { return base + mn * k * 2; }
  int leading_bytes() const { return major == Major::k ? 16 : k * kRowBytes; }

  int before_swizzle(int i, int j) const {
    const bool by_k = major == Major::k;
    const int row = by_k ? i : j, col = by_k ? j : i, num_rows = by_k ? mn : k;
    return base + (col / kRowElems * num_rows + row) * kRowBytes + col % kRowElems * 2;
  }
  int address(int i, int j) const {
    const int at = before_swizzle(i, j);
    return at ^ at / kRowBytes % 8 * 16;
  }
};

/// Returns element [i][j] of an operand.
int element(int i, int j, int seed) {
  return (i * i * 3 + i * 7 + j * 5 + seed * j * j) % 17 - 8;
}

template <class T>
void place(std::vector<uint16_t> &image, const WgmmaTile &tile, int seed, Mistake mistake) {
  for (int i = 0; i < tile.mn; i++)
    for (int j = 0; j < tile.k; j++) {
      const int at = mistake == Mistake::made ? tile.before_swizzle(i, j) : tile.address(i, j);
      image[static_cast<size_t>(at / 2)] = small_integer<T>(element(i, j, seed)).bits;
    }
}

std::vector<float> product(int n, uint32_t accumulate, int repeats) {
  std::vector<float> d;
  for (int i = 0; i < kM; i++)
    for (int j = 0; j < n; j++) {
      int sum = 3;
      for (int step = 0; step < repeats * kDepth; step++) {
        const int k = step % kDepth;
        if (k % kK == 0 && (accumulate >> k / kK & 1) == 0) sum = 0;
        sum += element(i, k, kSeedA) * element(j, k, kSeedB);
      }
      d.push_back(static_cast<float>(sum));
    }
  return d;
}

void describe_terms(uint64_t (&terms)[kTerms], const WgmmaTile &tile) {
  for (int t = 0; t < kTerms; t++)
    terms[t] = wgmma_descriptor(static_cast<SmemAddress>(tile.before_swizzle(0, t * kK)),
                                static_cast<uint32_t>(tile.leading_bytes()), 1024);
}

/// Injected bug: operands are not swizzled.
template <class T, int kN, Major a_major, Major b_major>
void add_product(Output &output, const Device &device, Mistake mistake) {
  const WgmmaTile a{a_major, kM, kDepth, 0}, b{b_major, kN, kDepth, a.end()};
  std::vector<uint16_t> image(static_cast<size_t>(b.end() / 2));
  place<T>(image, a, kSeedA, mistake);
  place<T>(image, b, kSeedB, mistake);
  const Memory<uint16_t> on_device(device, image);
  for (const uint32_t accumulate : {0b1110u, 0b1111u, 0b1011u}) {
    const Memory<float> d(device, kM * kN);
    const int repeats = kN == 64 && accumulate == 0b1111 ? kRepeats : 1;
    WgmmaArgs args{on_device.data(), static_cast<int>(image.size()), {}, {}, d.data(), accumulate,
                   repeats};
    describe_terms(args.a, a);
    describe_terms(args.b, b);
    run(device, "multiply_tiles", multiply_tiles<T, kN, a_major, b_major>,
        {1, kWarpgroup, image.size() * sizeof(uint16_t) + kSwizzlePeriodBytes}, args);
    const auto letter = [](Major major) {
      return major == Major::k ? std::string("k") : std::string("mn");
    };
    const std::string name = std::string(kFloatType<T>.name) + " n" + std::to_string(kN) +
                             ", A along " + letter(a_major) + ", B along " + letter(b_major) +
                             ", accumulate " + std::to_string(accumulate);
    output.push_back(make_part(name, kN, d.download(), product(kN, accumulate, repeats)));
  }
}

template <class T, int kN>
void add_majors(Output &output, const Device &device, Mistake mistake) {
  add_product<T, kN, Major::k, Major::k>(output, device, mistake);
  add_product<T, kN, Major::k, Major::mn>(output, device, mistake);
  add_product<T, kN, Major::mn, Major::k>(output, device, mistake);
  add_product<T, kN, Major::mn, Major::mn>(output, device, mistake);
}

// ---------------------------------------------------------------- stmatrix, ldmatrix

struct StoreArgs {
  uint16_t *out;   ///< [2 warps][16][32]
  uint32_t *back;  ///< [2 warps][32 lanes][4]
  int off;         ///< added to the addresses of the lanes, in 16-byte units
};

/// Each warp stores four 8x8 matrices as a 2x2 tile with rows of 64 bytes, rotated by the row, and
/// loads the matrices that start one row below.
template <int kUnused>
MP_KERNEL(2 * kWarpSize, 1)
store_matrices(MP_PARAM(StoreArgs) args) {
  if constexpr (has_sm90()) {
    MP_SHARED(uint16_t, tile, [2][16][32]);
    const int lane = lane_index(), warp = warp_index();
    for (int i = lane; i < 16 * 32; i += kWarpSize) tile[warp][i / 32][i % 32] = 0xffff;
    warp_sync();
    uint32_t r[4];
    MP_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
      const uint32_t element = 64 * i + static_cast<uint32_t>(lane) * 2;  // matrix, row, column
      r[i] = element | (element + 1) << 16;
    }
    const auto rows_from = [&](int first) {
      return [&, first](int i) {
        const int matrix = i / 8, row = matrix / 2 * 8 + i % 8,
                  unit = (matrix % 2 + row + args.off) % 4;
        return smem_address(&tile[warp][(row + first) % 16][unit * 8]);
      };
    };
    store_matrix_x4(rows_from(0), r);
    block_sync();
    load_matrix_x4(rows_from(1), r);
    for (int i = 0; i < 4; i++) args.back[thread_index() * 4 + i] = r[i];
    for (int i = thread_index(); i < 2 * 16 * 32; i += 2 * kWarpSize)
      args.out[i] = tile[i / 512][i / 32 % 16][i % 32];
  }
}

}  // namespace

Output conform_wgmma(const Device &device, Mistake mistake) {
  Output output;
  add_majors<half, 64>(output, device, mistake);
  add_majors<bf16, 128>(output, device, mistake);
  add_majors<half, 192>(output, device, mistake);
  add_majors<half, 256>(output, device, mistake);
  return output;
}

Output conform_stmatrix(const Device &device, Mistake mistake) {
  const Memory<uint16_t> out(device, 2 * 16 * 32);
  const Memory<uint32_t> back(device, 2 * kWarpSize * 4);
  run(device, "store_matrices", store_matrices<0>, {1, 2 * kWarpSize},
      {out.data(), back.data(), mistake == Mistake::made ? 1 : 0});
  const auto at = [](int warp, int row, int column) {
    return static_cast<size_t>((warp * 16 + row) * 32 + column);
  };
  const auto unit_of = [](int matrix, int row) { return (matrix % 2 + row) % 4; };
  std::vector<uint16_t> stored(2 * 16 * 32, 0xffff);
  std::vector<uint32_t> loaded;
  for (int warp = 0; warp < 2; warp++)
    for (int matrix = 0; matrix < 4; matrix++)
      for (int i = 0; i < 64; i++) {
        const int row = matrix / 2 * 8 + i / 8;
        stored[at(warp, row, unit_of(matrix, row) * 8 + i % 8)] =
            static_cast<uint16_t>(64 * matrix + i);
      }
  for (int warp = 0; warp < 2; warp++)
    for (int lane = 0; lane < kWarpSize; lane++)
      for (int matrix = 0; matrix < 4; matrix++) {
        const int row = matrix / 2 * 8 + lane / 4;
        const size_t from = at(warp, (row + 1) % 16, unit_of(matrix, row) * 8 + lane % 4 * 2);
        loaded.push_back(stored[from] | uint32_t{stored[from + 1]} << 16);
      }
  return {make_part("store_matrix_x4", 32, out.download(), stored),
          make_part("load_matrix_x4", 4, back.download(), loaded)};
}

}  // namespace mp::MP_TARGET
