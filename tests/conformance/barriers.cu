// mbarriers over several phases, also those of another block of the cluster; distributed shared
// memory.
#include "cases.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kWarps = 3;  // one producer, two consumers
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kSlots = 2;
constexpr int kTurns = 7;
constexpr int kCluster = 2;

struct RingArgs {
  int *seen;  ///< [kCluster][kTurns][2 warps][kWarpSize]
  bool wrong_slot;
};

/// A ring of slots with a full and an empty barrier each.  The consumers of each block free the
/// slots of all blocks, so no block runs ahead.
template <int kSize>
MP_KERNEL(kThreads, 1)
pass_through_ring(MP_PARAM(RingArgs) args) {
  if constexpr (has_sm90()) {
    MP_SHARED(int, slots, [kSlots][kWarpSize]);
    MP_SHARED(uint64_t, full, [kSlots]);
    MP_SHARED(uint64_t, empty, [kSlots]);
    const int rank = cluster_rank(), lane = lane_index(), warp = warp_index();
    if (thread_index() == 0) {
      for (int slot = 0; slot < kSlots; slot++) {
        mbarrier_init(smem_address(&full[slot]), kWarpSize);
        mbarrier_init(smem_address(&empty[slot]), (kWarps - 1) * kSize);
      }
      mbarrier_init_fence();
    }
    cluster_sync();
    for (int turn = 0; turn < kTurns; turn++) {
      const int slot = turn % kSlots;
      const auto parity = static_cast<uint32_t>(turn / kSlots % 2);
      if (warp == 0) {
        mbarrier_wait(smem_address(&empty[slot]), parity ^ 1);
        slots[slot][lane] = 1000 * (turn + 1) + 100 * rank + lane;
        mbarrier_arrive(smem_address(&full[slot]));
        continue;
      }
      mbarrier_wait(smem_address(&full[slot]), parity);
      const int column = args.wrong_slot ? lane ^ 1 : lane;
      args.seen[((rank * kTurns + turn) * (kWarps - 1) + warp - 1) * kWarpSize + lane] =
          slots[slot][column];
      warp_sync();
      if (lane == 0)
        for (int other = 0; other < kSize; other++)
          mbarrier_arrive_cluster(in_block(smem_address(&empty[slot]), other));
    }
    cluster_sync();
  }
}

struct LoadArgs {
  float *seen;  ///< [blocks][blocks][kWarpSize][4]
  bool reversed;
};

/// Every block reads the values that all blocks of its cluster, including itself, have written.
MP_KERNEL(kWarpSize, 1) read_each_other(MP_PARAM(LoadArgs) args) {
  if constexpr (has_sm90()) {
    MP_SHARED(float, values, [kWarpSize][4]);
    const int rank = cluster_rank(), size = cluster_size(), lane = lane_index();
    for (int i = 0; i < 4; i++) values[lane][i] = static_cast<float>(1000 * rank + 10 * lane + i);
    cluster_sync();
    for (int other = 0; other < size; other++) {
      const int from = args.reversed ? size - 1 - other : other;
      float x[4];
      load_cluster(x, in_block(smem_address(values[lane ^ 5]), from));
      float *const to = args.seen + ((rank * size + other) * kWarpSize + lane) * 4;
      for (int i = 0; i < 4; i++) to[i] = x[i];
    }
    cluster_sync();
  }
}

template <int kSize>
void add_ring(Output &output, const Device &device, Mistake mistake) {
  const size_t count = static_cast<size_t>(kSize) * kTurns * (kWarps - 1) * kWarpSize;
  const Memory<int> seen(device, count);
  run(device, "pass_through_ring", pass_through_ring<kSize>, {kSize, kThreads, 0, kSize},
      {seen.data(), mistake == Mistake::made});
  std::vector<int> defined;
  for (int rank = 0; rank < kSize; rank++)
    for (int turn = 0; turn < kTurns; turn++)
      for (int i = 0; i < (kWarps - 1) * kWarpSize; i++)
        defined.push_back(1000 * (turn + 1) + 100 * rank + i % kWarpSize);
  output.push_back(
      make_part("ring, cluster of " + std::to_string(kSize), kWarpSize, seen.download(), defined));
}

void add_reads(Output &output, const Device &device, int size, Mistake mistake) {
  const Memory<float> seen(device, static_cast<size_t>(size * size * kWarpSize * 4));
  run(device, "read_each_other", read_each_other, {size, kWarpSize, 0, size},
      {seen.data(), mistake == Mistake::made});
  std::vector<float> defined;
  for (int rank = 0; rank < size; rank++)
    for (int other = 0; other < size; other++)
      for (int i = 0; i < 4 * kWarpSize; i++)
        defined.push_back(static_cast<float>(1000 * other + 10 * (i / 4 ^ 5) + i % 4));
  output.push_back(make_part("shared memory of a cluster of " + std::to_string(size), 4,
                             seen.download(), defined));
}

}  // namespace

Output conform_barriers(const Device &device, Mistake mistake) {
  Output output;
  add_ring<1>(output, device, mistake);
  add_ring<kCluster>(output, device, mistake);
  add_reads(output, device, kCluster, mistake);
  add_reads(output, device, 8, mistake);
  return output;
}

}  // namespace mp::MP_TARGET
