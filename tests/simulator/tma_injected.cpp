// Bugs injected into a TMA pipeline.  The strict mode must detect each within 20 seeds.  Without a
// bug the kernel must pass and give the correct bits in every mode.
#include <cstdio>

#include "kernels/simt/half.h"
#include "tma.h"

using namespace mp::host;
using namespace mptest;

namespace {

enum class Bug {
  none,
  no_wait_for_load,
  no_wait_for_empty_stage,
  stage_freed_before_use,
  wrong_parity,
  no_wait_read,
  no_fence,
  fence_by_one_lane,
  no_sync_before_store,
  no_swizzle,
  no_wait_at_end,
  too_few_bytes,
};

constexpr int kThreads = 2 * kWarpSize;
constexpr int kStages = 2;
constexpr int kTilesPerBlock = 7;
constexpr int kBlocks = 2;
constexpr int kTileRows = 8;
/// One tile per matrix of the tensor; the last columns and rows of the tile are out of bounds.
constexpr TensorShape kShape{MP_FP16, 56,        7,   kBlocks *kTilesPerBlock, 64, 64 * 7,
                             64,      kTileRows, true};
constexpr uint32_t kTileBytes = 1024;

struct Args {
  mp::TensorMap in, out;
};

template <Bug bug>
void produce(const Args &args, SmemAddress stages, SmemAddress full, SmemAddress empty) {
  for (int i = 0; i < kTilesPerBlock; i++) {
    const SmemAddress stage = static_cast<SmemAddress>(i % kStages);
    const uint32_t parity = static_cast<uint32_t>(i / kStages % 2);
    if (bug != Bug::no_wait_for_empty_stage)
      mbarrier_wait(empty + 8 * stage, bug == Bug::wrong_parity ? parity : parity ^ 1);
    mbarrier_arrive_expect(full + 8 * stage, bug == Bug::too_few_bytes ? 512 : kTileBytes);
    tma_load(stages + stage * kTileBytes, args.in, full + 8 * stage, 0, 0,
             static_cast<int>(block_index()) * kTilesPerBlock + i);
  }
}

/// Returns twice the elements of an 8 x 8 matrix of the tile, two per lane, for store_matrix_x4.
uint32_t doubled(const uint8_t *tile, int columns) {
  const int row = lane_index() / 4, column = columns + lane_index() % 4 * 2;
  half pair[2];
  std::memcpy(pair, tile + place_in_box(kShape, column, row), sizeof pair);
  return pack_pair<half>(2 * to_float(pair[0]), 2 * to_float(pair[1]));
}

template <Bug bug>
void consume(const Args &args, const uint8_t *stages, SmemAddress out, SmemAddress full,
             SmemAddress empty) {
  for (int i = 0; i < kTilesPerBlock; i++) {
    const int stage = i % kStages;
    const SmemAddress stage_bar = static_cast<SmemAddress>(8 * stage);
    if (bug != Bug::no_wait_for_load)
      mbarrier_wait(full + stage_bar, static_cast<uint32_t>(i / kStages % 2));
    if (bug == Bug::stage_freed_before_use && lane_index() == 0) mbarrier_arrive(empty + stage_bar);
    if (bug != Bug::no_wait_read && lane_index() == 0) tma_store_wait_read<0>();
    warp_sync();
    for (int columns = 0; columns < 64; columns += 32) {
      uint32_t r[4];
      for (int j = 0; j < 4; j++)
        r[j] = doubled(stages + stage * static_cast<int>(kTileBytes), columns + 8 * j);
      const int row = lane_index() % 8, column = columns + lane_index() / 8 * 8;
      const int place =
          bug == Bug::no_swizzle ? row * 128 + column * 2 : place_in_box(kShape, column, row);
      store_matrix_x4(out + static_cast<SmemAddress>(place), r);
    }
    if (bug != Bug::no_fence && (bug != Bug::fence_by_one_lane || lane_index() == 0))
      async_proxy_fence();
    if (bug != Bug::no_sync_before_store) warp_sync();
    if (lane_index() != 0) continue;
    if (bug != Bug::stage_freed_before_use) mbarrier_arrive(empty + stage_bar);
    tma_store(args.out, out, 0, 0, static_cast<int>(block_index()) * kTilesPerBlock + i);
    tma_store_commit();
  }
  if (bug != Bug::no_wait_at_end && lane_index() == 0) tma_store_wait_read<0>();
}

/// Computes out = 2 in through a ring of stages: warp 0 loads tiles, warp 1 computes and stores.
template <Bug bug>
MP_KERNEL(kThreads, 1)
double_tiles(MP_PARAM(Args) args) {
  MP_SHARED(uint64_t, bars, [2 * kStages]);
  uint8_t *const stages = aligned_smem();
  const SmemAddress first = smem_address(stages);
  const SmemAddress full = smem_address(bars), empty = full + 8 * kStages;
  if (thread_index() == 0) {
    for (SmemAddress bar = full; bar < full + 16 * kStages; bar += 8) mbarrier_init(bar, 1);
    mbarrier_init_fence();
  }
  block_sync();
  if (thread_index() == 0) produce<bug>(args, first, full, empty);
  if (warp_index() == 1) consume<bug>(args, stages, first + kStages * kTileBytes, full, empty);
}

struct Tensors {
  Tensor in{kShape}, out{kShape};
  std::vector<uint8_t> expected;  ///< contents of `out`, including the padding

  Tensors() {
    Tensor twice(kShape);
    for (int z = 0; z < kShape.matrices; z++)
      for (int y = 0; y < kShape.rows; y++)
        for (int x = 0; x < kShape.columns; x++) {
          const half one = round_to<half>(static_cast<float>(z * 100 + y * 7 + x % 5));
          const half two = round_to<half>(2 * to_float(one));
          std::memcpy(in.element(x, y, z), &one, sizeof one);
          std::memcpy(twice.element(x, y, z), &two, sizeof two);
        }
    expected.assign(twice.base(), twice.base() + twice.size_bytes());
  }

  template <Bug bug>
  std::string launch() {
    return outcome(double_tiles<bug>, {kBlocks, kThreads, (kStages + 2) * kTileBytes},
                   {in.map(), out.map()});
  }
  bool is_right() { return std::memcmp(out.base(), expected.data(), expected.size()) == 0; }
};

template <Bug bug>
void check_caught(const char *name) {
  int num_wrong = 0, num_violations = 0;
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const ModeScope scope(engine::Mode::strict_with(seed));
    Tensors tensors;
    if (tensors.launch<bug>() != "")
      num_violations++;
    else
      num_wrong += !tensors.is_right();
  }
  std::printf(
      "injected: TMA pipeline, %s: caught in %d of %d seeds (%d wrong results, "
      "%d violations)\n",
      name, num_wrong + num_violations, static_cast<int>(kSeeds), num_wrong, num_violations);
  CHECK(num_wrong + num_violations > 0);
}

}  // namespace

TEST_CASE("injected: a TMA pipeline without a bug is correct in every mode") {
  in_every_mode([] {
    Tensors tensors;
    CHECK(tensors.launch<Bug::none>() == "");
    CHECK(tensors.is_right());
  });
}

TEST_CASE("injected: bugs in a TMA pipeline are detected") {
  check_caught<Bug::no_wait_for_load>("no wait for the load");
  check_caught<Bug::no_wait_for_empty_stage>("no wait for an empty stage");
  check_caught<Bug::stage_freed_before_use>("stage freed before its use");
  check_caught<Bug::wrong_parity>("wrong parity at the start");
  check_caught<Bug::no_wait_read>("no wait before smem is written again");
  check_caught<Bug::no_fence>("no async_proxy_fence");
  check_caught<Bug::fence_by_one_lane>("async_proxy_fence by one lane");
  check_caught<Bug::no_sync_before_store>("no warp_sync before the store");
  check_caught<Bug::no_swizzle>("smem written without the swizzle");
  check_caught<Bug::no_wait_at_end>("no wait before the return");
  check_caught<Bug::too_few_bytes>("mbarrier expects too few bytes");
}
