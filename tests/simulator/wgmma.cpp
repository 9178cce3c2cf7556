// wgmma in the simulator, against the definitions of the PTX ISA.
//
// Operands have TMA's layout, by the formulas of wgmma_tile.h.  Products with the identity check
// every element that a descriptor selects.  Other products use integers small enough to be exact
// and are compared with fp64.
#include <cstring>

#include "kernels/simt/sm90.h"
#include "testing.h"
#include "tests/support/input_values.h"
#include "tests/support/wgmma_tile.h"

using namespace mp::host;
using namespace mptest;

namespace {

constexpr int kM = 64, kK = 16;  // extents of one wgmma
constexpr int kWarpgroup = 128;

// ---------------------------------------------------------------- operands in smem

Swizzle swizzle_of(int width) {
  return width == 128  ? Swizzle::b128
         : width == 64 ? Swizzle::b64
         : width == 32 ? Swizzle::b32
                       : Swizzle::none;
}

struct Tile : WgmmaTile {
  Major major;

  Tile(Major major, int width, int mn, int k, int base = 0)
      : WgmmaTile(major == Major::k, width, mn, k, base), major(major) {}

  uint64_t descriptor(int first_mn, int first_k) const {
    return wgmma_descriptor(static_cast<SmemAddress>(before_swizzle(first_mn, first_k)),
                            static_cast<uint32_t>(leading_bytes),
                            static_cast<uint32_t>(stride_bytes), swizzle_of(width));
  }
};

using Image = std::vector<std::byte>;

template <class T, class Value>
void place(Image &image, const Tile &tile, const Value &value) {
  image.resize(std::max(image.size(), static_cast<size_t>(tile.end())));
  for (int i = 0; i < tile.mn; i++)
    for (int j = 0; j < tile.k; j++) {
      const T element = round_to<T>(static_cast<float>(value(i, j)));
      std::memcpy(&image[static_cast<size_t>(tile.address(i, j))], &element, sizeof element);
    }
}

constexpr int kAtom = 1024;  // alignment of the image and of swizzled tiles

/// Descriptors of a term, relative to the image.
struct Terms {
  uint64_t a, b;
};
struct WgmmaArgs {
  const std::byte *image;
  int image_bytes;
  const Terms *terms;  ///< [warpgroup][num_terms]
  int num_terms;
  int num_threads;
  float *d;  ///< one or num_terms matrices [64][kN] for each warpgroup
  float c;   ///< initial value of d if `accumulate`
  bool accumulate;
};

size_t smem_bytes(const Image &image) {
  return image.size() + kAtom;
}

/// Copies the image to the first multiple of kAtom; returns that address as added to descriptors.
MP_DEVICE uint64_t load_image(unsigned char *smem, const WgmmaArgs &args) {
  const uint32_t skip = (kAtom - smem_address(smem) % kAtom) % kAtom;
  for (int i = 2 * thread_index(); i < args.image_bytes; i += 2 * args.num_threads)
    std::memcpy(smem + skip + i, args.image + i, 2);
  async_proxy_fence();
  block_sync();
  return (smem_address(smem) + skip) >> 4;
}

template <int kN>
MP_DEVICE void store_fragments(float *out, const float (&d)[kN / 2]) {
  const int thread = thread_index() % kWarpgroup, row = thread / 32 * 16 + thread % 32 / 4;
  for (int i = 0; i < kN / 2; i++)
    out[(row + i / 2 % 2 * 8) * kN + i / 4 * 8 + thread % 4 * 2 + i % 2] = d[i];
}

/// Stores each term separately.
template <class T, int kN, Major a_major, Major b_major>
MP_KERNEL(kWarpgroup, 1)
multiply_each(MP_PARAM(WgmmaArgs) args) {
  MP_DYN_SHARED(unsigned char, smem);
  const uint64_t base = load_image(smem, args);
  for (int t = 0; t < args.num_terms; t++) {
    float d[kN / 2];
    wgmma_fence();
    wgmma<T, kN, a_major, b_major>(d, args.terms[t].a + base, args.terms[t].b + base, false);
    wgmma_commit();
    wgmma_wait<0>();
    store_fragments<kN>(args.d + t * kM * kN, d);
  }
}

/// Each warpgroup sums its terms in groups of up to four, with two groups in flight.
template <class T, int kN, Major a_major, Major b_major>
MP_KERNEL(2 * kWarpgroup, 1)
multiply_sum(MP_PARAM(WgmmaArgs) args) {
  MP_DYN_SHARED(unsigned char, smem);
  const uint64_t base = load_image(smem, args);
  const int group = thread_index() / kWarpgroup;
  const Terms *const terms = args.terms + group * args.num_terms;
  float d[kN / 2];
  for (float &x : d) x = args.c;
  for (int first = 0; first < args.num_terms; first += 4) {
    fence_accumulators(d);
    wgmma_fence();
    for (int t = first; t < min_of(first + 4, args.num_terms); t++)
      wgmma<T, kN, a_major, b_major>(d, terms[t].a + base, terms[t].b + base,
                                     args.accumulate || t > 0);
    wgmma_commit();
    wgmma_wait<1>();
  }
  wgmma_wait<0>();
  fence_accumulators(d);
  store_fragments<kN>(args.d + group * kM * kN, d);
}

// ---------------------------------------------------------------- descriptors

/// Operand whose descriptors are tested.  A product with the identity shows the selected elements:
/// D[m][n] is A[m][n] or B[n][m] of the 16 k of each term.  select() returns the simulator's
/// diagnostic, "wrong" if an element differs from the tile, or an empty string.
enum class Role { a, b };

float label(int i, int j) {
  return static_cast<float>((i * 37 + j * 5) % 2039 + 1);  // integers below 2048 are exact in fp16
}

template <int kN, Major major>
std::string select(const Tile &tile, Role role, int first_mn) {
  Image image;
  place<half>(image, tile, label);
  const Tile identity(Major::k, 0, role == Role::a ? kN : kM, kK, (tile.end() + 127) / 128 * 128);
  place<half>(image, identity, [](int i, int j) { return i == j ? 1.0f : 0.0f; });
  std::vector<Terms> terms;
  for (int k0 = 0; k0 < tile.k; k0 += kK) {
    const uint64_t looked_at = tile.descriptor(first_mn, k0), one = identity.descriptor(0, 0);
    terms.push_back(role == Role::a ? Terms{looked_at, one} : Terms{one, looked_at});
  }
  std::vector<float> d(terms.size() * kM * kN);
  const WgmmaArgs args{image.data(), static_cast<int>(image.size()),
                       terms.data(), static_cast<int>(terms.size()),
                       kWarpgroup,   d.data(),
                       0.0f,         false};
  const auto kernel = role == Role::a ? multiply_each<half, kN, major, Major::k>
                                      : multiply_each<half, kN, Major::k, major>;
  const std::string diagnostic = outcome(kernel, {1, kWarpgroup, smem_bytes(image)}, args, 1);
  if (!diagnostic.empty()) return diagnostic;
  const int num_mn = role == Role::a ? kM : kN;
  for (size_t t = 0; t < terms.size(); t++)
    for (int i = 0; i < num_mn; i++)
      for (int j = 0; j < kK; j++) {
        const size_t at = role == Role::a ? i * kN + j : j * kN + i;
        if (d[t * kM * kN + at] != label(first_mn + i, static_cast<int>(t) * kK + j))
          return "wrong";
      }
  return "";
}

template <Major major>
std::string select(const Tile &tile, Role role, int first_mn = 0) {
  if (role == Role::a || tile.mn == 64) return select<64, major>(tile, role, first_mn);
  return tile.mn == 128 ? select<128, major>(tile, role, first_mn)
                        : select<256, major>(tile, role, first_mn);
}

std::string select(const Tile &tile, Role role, int first_mn = 0) {
  return tile.major == Major::k ? select<Major::k>(tile, role, first_mn)
                                : select<Major::mn>(tile, role, first_mn);
}

// ---------------------------------------------------------------- products

template <class T, int kN, Major a_major, Major b_major>
void check_products(int k, bool accumulate) {
  constexpr float kC = 3.0f;
  Random random(static_cast<uint64_t>(k));
  const auto fill = [&](int rows) {
    std::vector<float> x(static_cast<size_t>(rows * k));
    for (float &value : x) value = static_cast<float>(random.integer(-9, 9));
    return x;
  };
  const std::vector<float> a = fill(2 * kM), b = fill(kN);
  Image image;
  const Tile a_tile(a_major, 128, 2 * kM, k), b_tile(b_major, 128, kN, k, a_tile.end());
  place<T>(image, a_tile, [&](int i, int j) { return a[i * k + j]; });
  place<T>(image, b_tile, [&](int i, int j) { return b[i * k + j]; });
  std::vector<Terms> terms;
  for (int group = 0; group < 2; group++)
    for (int k0 = 0; k0 < k; k0 += kK)
      terms.push_back({a_tile.descriptor(group * kM, k0), b_tile.descriptor(0, k0)});
  std::vector<float> d(2 * kM * kN);
  run(multiply_sum<T, kN, a_major, b_major>, {1, 2 * kWarpgroup, smem_bytes(image)},
      {image.data(), static_cast<int>(image.size()), terms.data(), k / kK, 2 * kWarpgroup, d.data(),
       kC, accumulate});
  int wrong = 0;
  for (int i = 0; i < 2 * kM; i++)
    for (int j = 0; j < kN; j++) {
      double sum = accumulate ? kC : 0.0;
      for (int l = 0; l < k; l++) sum += double{a[i * k + l]} * double{b[j * k + l]};
      wrong += d[i * kN + j] != sum;
    }
  CAPTURE(kN, k, accumulate, a_major, b_major);
  CHECK(wrong == 0);
}

template <class T, int kN>
void check_all_majors(int k, bool accumulate) {
  check_products<T, kN, Major::k, Major::k>(k, accumulate);
  check_products<T, kN, Major::k, Major::mn>(k, accumulate);
  check_products<T, kN, Major::mn, Major::k>(k, accumulate);
  check_products<T, kN, Major::mn, Major::mn>(k, accumulate);
}

template <class T>
void check_all_shapes() {
  for (const bool accumulate : {false, true}) {
    check_all_majors<T, 64>(64, accumulate);
    check_all_majors<T, 128>(192, accumulate);
    check_all_majors<T, 192>(64, accumulate);
    check_all_majors<T, 256>(128, accumulate);
  }
}

// ---------------------------------------------------------------- stmatrix, ldmatrix

struct StoreArgs {
  uint16_t *out;   ///< [warp][16][32]
  uint32_t *back;  ///< [thread][4], loaded words
};

/// Each warp stores four 8x8 matrices as a 2x2 tile with rows of 64 bytes, rotated by the row.
MP_KERNEL(2 * kWarpSize, 1) store_matrices(MP_PARAM(StoreArgs) args) {
  MP_SHARED(uint16_t, tile, [2][16][32]);
  const int lane = lane_index(), warp = warp_index();
  uint32_t r[4];
  for (uint32_t i = 0; i < 4; i++) {
    const uint32_t element = 64 * i + static_cast<uint32_t>(lane) * 2;  // matrix, row, column
    r[i] = element | (element + 1) << 16;
  }
  const int matrix = lane / 8, row = matrix / 2 * 8 + lane % 8, unit = (matrix % 2 + row) % 4;
  store_matrix_x4(smem_address(&tile[warp][row][unit * 8]), r);
  block_sync();
  // Exchanges matrices 0 and 1, and matrices 2 and 3.
  load_matrix_x4(smem_address(&tile[warp][row][(1 - matrix % 2 + row) % 4 * 8]), r);
  for (int i = 0; i < 4; i++) args.back[4 * thread_index() + i] = r[i];
  for (int i = thread_index(); i < 2 * 16 * 32; i += 2 * kWarpSize)
    args.out[i] = tile[i / 512][i / 32 % 16][i % 32];
}

}  // namespace

TEST_CASE("simulator: wgmma descriptors select the elements of every canonical layout") {
  for (const Role role : {Role::a, Role::b})
    for (const Major major : {Major::k, Major::mn})
      for (const int width : {0, 32, 64, 128})
        for (const int mn : {64, 128, 256})
          for (const int k : {16, 32, 64, 128}) {
            if (major == Major::k && k * 2 < width) continue;
            const Tile tile(major, width, mn, k, 7 * kAtom);
            CAPTURE(role, major, width, mn, k);
            CHECK(select(tile, role) == "");
            if (mn > kM && role == Role::a) CHECK(select(tile, role, mn - kM) == "");
          }
}

TEST_CASE("simulator: common bugs in wgmma descriptors are detected") {
  const auto mistaken = [](Tile tile, int leading_bytes, int stride_bytes) {
    tile.leading_bytes = leading_bytes;
    tile.stride_bytes = stride_bytes;
    return select(tile, Role::b);
  };
  const Tile k_major(Major::k, 128, 128, 64, kAtom), mn_major(Major::mn, 128, 256, 64, kAtom);
  CHECK(mistaken(k_major, 16, 1024) == "");
  CHECK(mistaken(mn_major, 8192, 1024) == "");
  // The leading dimension of a swizzled K-major operand is ignored.
  CHECK(mistaken(k_major, 8192, 1024) == "");
  // The leading dimension of an MN-major operand is used.
  CHECK(mistaken(mn_major, 16, 1024).find("16 bytes apart along n, not a multiple of 1024") !=
        std::string::npos);
  // The stride of one row instead of eight.
  CHECK(mistaken(k_major, 16, 128).find("128 bytes apart along n, not a multiple of 1024") !=
        std::string::npos);
  CHECK(mistaken(k_major, 16, 512).find("not a multiple of 1024") != std::string::npos);
  // A stride that is too large, and strides exchanged as in the layout without swizzle.
  CHECK(mistaken(k_major, 16, 2048).find("outside all shared variables") != std::string::npos);
  CHECK(mistaken(mn_major, 8192, 2048) == "wrong");
  CHECK(mistaken(mn_major, 1024, 8192) == "wrong");
  CHECK(mistaken(mn_major, 1024, 1024) == "wrong");
  // Tiles that are not aligned to the atoms of their swizzle.
  for (const Major major : {Major::k, Major::mn})
    for (const int width : {32, 64, 128}) {
      const std::string diagnostic = select(Tile(major, width, 64, 64, kAtom + 4 * width), Role::b);
      CAPTURE(major, width, diagnostic);
      CHECK(diagnostic.find("bytes past a multiple of " + std::to_string(8 * width)) !=
            std::string::npos);
    }
}

TEST_CASE("simulator: wgmma multiplies every type, shape and pair of majors exactly") {
  in_every_mode([] {
    check_all_shapes<half>();
    check_all_shapes<bf16>();
  });
}

TEST_CASE("simulator: stmatrix and ldmatrix access rows at the addresses of their lanes") {
  in_every_mode([] {
    std::vector<uint16_t> out(2 * 16 * 32);
    std::vector<uint32_t> back(2 * kWarpSize * 4);
    run(store_matrices, {1, 2 * kWarpSize}, {out.data(), back.data()});
    int wrong = 0;
    for (uint32_t i = 0; i < back.size(); i++) {
      const uint32_t element = 64 * (i % 4 ^ 1) + i / 4 % 32 * 2;
      wrong += back[i] != (element | (element + 1) << 16);
    }
    for (int i = 0; i < 2 * 16 * 32; i++) {
      const int row = i / 32 % 16, unit = i % 32 / 8;
      const int half = (unit - row % 4 + 4) % 4;  // half of the tile that contains the unit
      const int matrix = row / 8 * 2 + half;
      const uint16_t expected =
          half < 2 ? static_cast<uint16_t>(64 * matrix + row % 8 * 8 + i % 8) : 0xFFFF;
      wrong += out[i] != expected;
    }
    CHECK(wrong == 0);
  });
}
