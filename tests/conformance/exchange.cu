// Exchange between threads: shuffles, reductions, atomics.
#include "cases.h"
#include "kernels/simt/reduce.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 40;

/// Returns a value that is unique in the block; sums over the grid are exact in fp32.
MP_DEVICE int value_of_thread() {
  return static_cast<int>(block_index()) * 10 + 3 * thread_index() + 1;
}

struct ShuffleArgs {
  int *by_xor, *by_lane;  ///< [kWarpSize][kThreads]
  int off;                ///< added to the masks
};

MP_KERNEL(kThreads, 1) shuffle_all(MP_PARAM(ShuffleArgs) args) {
  for (int i = 0; i < kWarpSize; i++) {
    const int at = i * kThreads + thread_index();
    args.by_xor[at] = shuffle_xor(value_of_thread(), (i + args.off) % kWarpSize);
    args.by_lane[at] = shuffle(value_of_thread(), (lane_index() * 5 + i + args.off) % kWarpSize);
  }
}

struct ReduceArgs {
  int *sums, *largest, *least;  ///< per thread, of its warp
  int *running, *peaks;         ///< per thread, of the lanes up to it
  float *block_sums;            ///< per block; exact
  uint32_t *block_largest;
  uint32_t *blocks_done;
  float *total;  ///< written by the last block
  bool skip_one;
};

MP_KERNEL(kThreads, 1) reduce_all(MP_PARAM(ReduceArgs) args) {
  const auto at = block_index() * kThreads + thread_index();
  const int value = args.skip_one && thread_index() == 77 ? 0 : value_of_thread();
  args.sums[at] = warp_reduce<Sum>(value);
  args.largest[at] = warp_reduce<Max>(value);
  args.least[at] = warp_reduce<Min>(value);
  args.running[at] = warp_scan<Sum>(value);
  args.peaks[at] = warp_scan<Max>(value);
  const float sum = block_reduce<kThreads, Sum>(static_cast<float>(value));
  const uint32_t largest = block_reduce<kThreads, Max>(static_cast<uint32_t>(value));
  if (thread_index() == 0) {
    args.block_sums[block_index()] = sum;
    args.block_largest[block_index()] = largest;
  }
  if (!arrive_last(args.blocks_done)) return;
  float mine = 0.0f;
  for (int64_t i = thread_index(); i < grid_size(); i += kThreads) mine += args.block_sums[i];
  const float total = block_reduce<kThreads, Sum>(mine);
  if (thread_index() == 0) *args.total = total;
}

struct AtomicArgs {
  uint32_t *largest;
  int64_t *sum;
  uint32_t *counter;  ///< wraps at kThreads - 2
  uint32_t *drawn;    ///< [kThreads]: how often atomic_wrap_inc returned each value
  float *flag, *unraised;
  int64_t addend;
};

MP_KERNEL(kThreads, 1) count_atomically(MP_PARAM(AtomicArgs) args) {
  atomic_max(args.largest, static_cast<uint32_t>(value_of_thread()) * 2654435761u);
  atomic_add(args.sum, args.addend * value_of_thread());
  const uint32_t drawn = atomic_wrap_inc(args.counter, kThreads - 2);
  // A counter with atomic_max only: of threads with equal values, one succeeds per round.
  uint32_t seen = 0;
  while (atomic_max(args.drawn + drawn, seen + 1) != seen) seen++;
  if (value_of_thread() == 1) raise_flag(args.flag);
  if (value_of_thread() == 0) raise_flag(args.unraised);
}

}  // namespace

Output conform_shuffles(const Device &device, Mistake mistake) {
  const Memory<int> by_xor(device, kWarpSize * kThreads), by_lane(device, kWarpSize * kThreads);
  run(device, "shuffle_all", shuffle_all, {1, kThreads},
      {by_xor.data(), by_lane.data(), mistake == Mistake::made ? 1 : 0});
  return {make_part("shuffle_xor", kThreads, by_xor.download()),
          make_part("shuffle", kThreads, by_lane.download())};
}

Output conform_reductions(const Device &device, Mistake mistake) {
  const size_t count = static_cast<size_t>(kBlocks) * kThreads;
  const Memory<int> sums(device, count), largest(device, count), least(device, count);
  const Memory<int> running(device, count), peaks(device, count);
  const Memory<float> block_sums(device, kBlocks), total(device, 1);
  const Memory<uint32_t> block_largest(device, kBlocks),
      blocks_done(device, std::vector<uint32_t>{0});
  run(device, "reduce_all", reduce_all, {kBlocks, kThreads},
      {sums.data(), largest.data(), least.data(), running.data(), peaks.data(), block_sums.data(),
       block_largest.data(), blocks_done.data(), total.data(), mistake == Mistake::made});
  return {make_part("sums of warps", kThreads, sums.download()),
          make_part("largest of warps", kThreads, largest.download()),
          make_part("least of warps", kThreads, least.download()),
          make_part("running sums", kThreads, running.download()),
          make_part("running maxima", kThreads, peaks.download()),
          make_part("sums of blocks", kBlocks, block_sums.download()),
          make_part("largest of blocks", kBlocks, block_largest.download()),
          make_part("sum of the grid", 1, total.download()),
          make_part("blocks_done after the launch", 1, blocks_done.download())};
}

Output conform_atomics(const Device &device, Mistake mistake) {
  const Memory<uint32_t> largest(device, std::vector<uint32_t>{0});
  const Memory<int64_t> sum(device, std::vector<int64_t>{int64_t{1} << 40});
  const Memory<uint32_t> counter(device, std::vector<uint32_t>{0});
  const Memory<uint32_t> drawn(device, std::vector<uint32_t>(kThreads));
  const Memory<float> flag(device, std::vector<float>{0}), unraised(device, std::vector<float>{0});
  run(device, "count_atomically", count_atomically, {kBlocks, kThreads},
      {largest.data(), sum.data(), counter.data(), drawn.data(), flag.data(), unraised.data(),
       mistake == Mistake::made ? 1 : -100000});
  return {make_part("atomic_max", 1, largest.download()),
          make_part("atomic_add", 1, sum.download()),
          make_part("atomic_wrap_inc", 1, counter.download()),
          make_part("values of atomic_wrap_inc", kThreads, drawn.download()),
          make_part("raise_flag", 1, flag.download()),
          make_part("a flag that no thread raises", 1, unraised.download())};
}

}  // namespace mp::MP_TARGET
