// Bugs injected into small kernels.  The strict mode must detect each within 20 seeds.  Without a
// bug the kernels must pass and give the same bits in every mode.
#include <algorithm>
#include <cstdio>

#include "kernels/simt/sm80.h"
#include "testing.h"
#include "tests/support/input_values.h"

using namespace mp::host;
using namespace mptest;

namespace {

enum class Bug { none, no_sync_before_use, no_sync_before_reuse, late_wait, pitch_too_small };

constexpr int kN = 64;      // matrices are kN x kN
constexpr int kTileN = 16;  // tiles kTileN x kTileN, one thread per element
constexpr int kThreads = kTileN * kTileN;
constexpr int64_t kTilesPerRow = kN / kTileN;
constexpr int64_t kBlocks = kTilesPerRow * kTilesPerRow;

struct MatrixArgs {
  const float *a, *b;
  float *d;
};

struct Position {
  int row, col;  ///< in the tile
  int64_t row0, col0;
};
MP_DEVICE Position position() {
  return {thread_index() / kTileN, thread_index() % kTileN, block_index() / kTilesPerRow * kTileN,
          block_index() % kTilesPerRow * kTileN};
}

/// D = A B with tiles in smem.
template <Bug bug>
MP_KERNEL(kThreads, 1)
multiply(MP_PARAM(MatrixArgs) args) {
  MP_SHARED(float, a_smem, [kTileN][kTileN]);
  MP_SHARED(float, b_smem, [kTileN][kTileN]);
  const Position p = position();
  float sum = 0.0f;
  for (int k0 = 0; k0 < kN; k0 += kTileN) {
    a_smem[p.row][p.col] = args.a[(p.row0 + p.row) * kN + k0 + p.col];
    b_smem[p.row][p.col] = args.b[(k0 + p.row) * kN + p.col0 + p.col];
    if (bug != Bug::no_sync_before_use) block_sync();
    for (int k = 0; k < kTileN; k++) sum = fmaf(a_smem[p.row][k], b_smem[k][p.col], sum);
    if (bug != Bug::no_sync_before_reuse) block_sync();
  }
  args.d[(p.row0 + p.row) * kN + p.col0 + p.col] = sum;
}

/// D = A^T.  The pitch of the tile is its width + 1 to avoid bank conflicts.
template <Bug bug>
MP_KERNEL(kThreads, 1)
transpose(MP_PARAM(MatrixArgs) args) {
  constexpr int kPitch = kTileN + 1;
  constexpr int kElems = bug == Bug::pitch_too_small ? kTileN * kTileN : kTileN * kPitch;
  MP_SHARED(float, tile, [kElems]);
  const Position p = position();
  tile[p.row * kPitch + p.col] = args.a[(p.row0 + p.row) * kN + p.col0 + p.col];
  if (bug != Bug::no_sync_before_use) block_sync();
  args.d[(p.col0 + p.row) * kN + p.row0 + p.col] = tile[p.col * kPitch + p.row];
}

/// D = A B with tiles loaded by cp.async into a ring of two stages.
template <Bug bug>
MP_KERNEL(kThreads, 1)
multiply_async(MP_PARAM(MatrixArgs) args) {
  MP_SHARED(float, a_smem, [2][kTileN][kTileN]);
  MP_SHARED(float, b_smem, [2][kTileN][kTileN]);
  const Position p = position();
  const auto fetch = [&](int k0) {
    const int stage = k0 / kTileN % 2, row = thread_index() / 4, col = thread_index() % 4 * 4;
    if (k0 < kN && row < kTileN) {
      copy_async_16(&a_smem[stage][row][col], args.a + (p.row0 + row) * kN + k0 + col, 16);
      copy_async_16(&b_smem[stage][row][col], args.b + (k0 + row) * kN + p.col0 + col, 16);
    }
    copy_async_commit();
  };
  fetch(0);
  float sum = 0.0f;
  for (int k0 = 0; k0 < kN; k0 += kTileN) {
    const int stage = k0 / kTileN % 2;
    fetch(k0 + kTileN);
    if (bug != Bug::late_wait) copy_async_wait<1>();
    if (bug != Bug::no_sync_before_use) block_sync();
    for (int k = 0; k < kTileN; k++)
      sum = fmaf(a_smem[stage][p.row][k], b_smem[stage][k][p.col], sum);
    if (bug == Bug::late_wait) copy_async_wait<1>();
    if (bug != Bug::no_sync_before_reuse) block_sync();
  }
  args.d[(p.row0 + p.row) * kN + p.col0 + p.col] = sum;
}

using Kernel = void (*)(const MatrixArgs &);

enum class Fill {
  integers,  ///< the products are exact, so every order of summation gives the same bits
  reals,
};

class Fixture {
 public:
  explicit Fixture(Fill fill = Fill::integers) {
    Random random(1);
    for (float *const matrix : {a_, b_})
      for (int i = 0; i < kN * kN; i++)
        matrix[i] =
            static_cast<float>(fill == Fill::integers ? static_cast<double>(random.integer(-9, 9))
                                                      : random.real(-1.0, 1.0));
  }
  std::string launch(Kernel kernel) {
    std::fill(std::begin(d_), std::end(d_), -1e9f);
    return outcome(kernel, {kBlocks, kThreads}, {a_, b_, d_});
  }
  std::vector<float> result() const { return {std::begin(d_), std::end(d_)}; }

  std::vector<float> product() const {
    std::vector<float> d(kN * kN);
    for (int i = 0; i < kN; i++)
      for (int j = 0; j < kN; j++) {
        double sum = 0.0;
        for (int k = 0; k < kN; k++) sum += double{a_[i * kN + k]} * double{b_[k * kN + j]};
        d[i * kN + j] = static_cast<float>(sum);
      }
    return d;
  }
  std::vector<float> transposed() const {
    std::vector<float> d(kN * kN);
    for (int i = 0; i < kN * kN; i++) d[i] = a_[i % kN * kN + i / kN];
    return d;
  }

 private:
  alignas(16) float a_[kN * kN];
  alignas(16) float b_[kN * kN];
  float d_[kN * kN];
};

void check_correct(Kernel kernel, const std::vector<float> &expected) {
  in_every_mode([&] {
    Fixture fixture;
    CHECK(fixture.launch(kernel) == "");
    CHECK(fixture.result() == expected);
  });
}

void check_caught(const char *name, Kernel kernel, const std::vector<float> &expected) {
  int num_wrong = 0, num_violations = 0;
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const ModeScope scope(engine::Mode::strict_with(seed));
    Fixture fixture;
    if (fixture.launch(kernel) != "")
      num_violations++;
    else
      num_wrong += fixture.result() != expected;
  }
  std::printf("injected: %s: caught in %d of %d seeds (%d wrong results, %d violations)\n", name,
              num_wrong + num_violations, static_cast<int>(kSeeds), num_wrong, num_violations);
  CHECK(num_wrong + num_violations > 0);
}

}  // namespace

TEST_CASE("injected: without a bug, kernels give the same bits in every mode") {
  const auto result_of = [](Kernel kernel) {
    Fixture fixture(Fill::reals);
    CHECK(fixture.launch(kernel) == "");
    return fixture.result();
  };
  for (const Kernel kernel :
       {multiply<Bug::none>, transpose<Bug::none>, multiply_async<Bug::none>}) {
    const std::vector<float> plain = result_of(kernel);
    in_every_mode([&] { CHECK(result_of(kernel) == plain); });
  }
}

TEST_CASE("injected: a missing block_sync in a tiled product is detected") {
  const std::vector<float> expected = Fixture().product();
  check_correct(multiply<Bug::none>, expected);
  check_caught("multiply, no block_sync before use", multiply<Bug::no_sync_before_use>, expected);
  check_caught("multiply, no block_sync before reuse", multiply<Bug::no_sync_before_reuse>,
               expected);
}

TEST_CASE("injected: a missing block_sync in a transpose is detected") {
  const std::vector<float> expected = Fixture().transposed();
  check_correct(transpose<Bug::none>, expected);
  check_caught("transpose, no block_sync before use", transpose<Bug::no_sync_before_use>, expected);
}

TEST_CASE("injected: a write outside a shared variable is detected") {
  if (kAsanBuild) return skip("AddressSanitizer stops the process at the bad access instead");
  check_caught("transpose, tile smaller than its pitch", transpose<Bug::pitch_too_small>,
               Fixture().transposed());
}

TEST_CASE("injected: bugs in a cp.async pipeline are detected") {
  const std::vector<float> expected = Fixture().product();
  check_correct(multiply_async<Bug::none>, expected);
  check_caught("cp.async, wait after the use", multiply_async<Bug::late_wait>, expected);
  check_caught("cp.async, no block_sync before use", multiply_async<Bug::no_sync_before_use>,
               expected);
  check_caught("cp.async, no block_sync before reuse", multiply_async<Bug::no_sync_before_reuse>,
               expected);
}
