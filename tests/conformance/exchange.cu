// Exchange between threads: shuffles, reductions, atomics.
#include <algorithm>

#include "cases.h"
#include "kernels/simt/reduce.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 40;

/// Returns a value that is unique in the block; sums over the grid are exact in fp32.
MP_HD constexpr int value_of(int block, int thread) {
  return block * 10 + 3 * thread + 1;
}
MP_DEVICE int value_of_thread() {
  return value_of(static_cast<int>(block_index()), thread_index());
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
  std::vector<int> defined_xor, defined_lane;
  for (int i = 0; i < kWarpSize; i++)
    for (int t = 0; t < kThreads; t++) {
      const int first = t - t % kWarpSize;
      defined_xor.push_back(value_of(0, t ^ i));
      defined_lane.push_back(value_of(0, first + (t * 5 + i) % kWarpSize));
    }
  return {make_part("shuffle_xor", kThreads, by_xor.download(), defined_xor),
          make_part("shuffle", kThreads, by_lane.download(), defined_lane)};
}

namespace {

/// Results of reduce_all, by loops over the threads.
struct Reductions {
  std::vector<int> sums, largest, least, running, peaks;
  std::vector<float> block_sums = std::vector<float>(kBlocks);
  std::vector<uint32_t> block_largest = std::vector<uint32_t>(kBlocks);
  float total = 0;

  Reductions() {
    for (int block = 0; block < kBlocks; block++)
      for (int t = 0; t < kThreads; t++) {
        const int first = t - t % kWarpSize, value = value_of(block, t);
        int warp_sum = 0, sum = 0;
        for (int other = first; other < first + kWarpSize; other++) {
          warp_sum += value_of(block, other);
          if (other <= t) sum += value_of(block, other);
        }
        sums.push_back(warp_sum);
        running.push_back(sum);
        least.push_back(value_of(block, first));  // values increase with the thread
        largest.push_back(value_of(block, first + kWarpSize - 1));
        peaks.push_back(value);
        const auto b = static_cast<size_t>(block);
        block_sums[b] += static_cast<float>(value);
        block_largest[b] = static_cast<uint32_t>(value);
        total += static_cast<float>(value);
      }
  }
};

}  // namespace

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
  const Reductions defined;
  return {make_part("sums of warps", kThreads, sums.download(), defined.sums),
          make_part("largest of warps", kThreads, largest.download(), defined.largest),
          make_part("least of warps", kThreads, least.download(), defined.least),
          make_part("running sums", kThreads, running.download(), defined.running),
          make_part("running maxima", kThreads, peaks.download(), defined.peaks),
          make_part("sums of blocks", kBlocks, block_sums.download(), defined.block_sums),
          make_part("largest of blocks", kBlocks, block_largest.download(), defined.block_largest),
          make_part("sum of the grid", 1, total.download(), {defined.total}),
          make_part("blocks_done after the launch", 1, blocks_done.download(), {0u})};
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
  uint32_t defined_largest = 0;
  int64_t defined_sum = int64_t{1} << 40;
  for (int block = 0; block < kBlocks; block++)
    for (int t = 0; t < kThreads; t++) {
      const int value = value_of(block, t);
      defined_largest = std::max(defined_largest, static_cast<uint32_t>(value) * 2654435761u);
      defined_sum -= int64_t{100000} * value;
    }
  constexpr uint32_t kPeriod = kThreads - 1;  // the counter takes the values 0 to kThreads - 2
  std::vector<uint32_t> defined_drawn(kThreads);
  for (uint32_t i = 0; i < kBlocks * kThreads; i++) defined_drawn[i % kPeriod]++;
  return {make_part("atomic_max", 1, largest.download(), {defined_largest}),
          make_part("atomic_add", 1, sum.download(), {defined_sum}),
          make_part("atomic_wrap_inc", 1, counter.download(), {kBlocks * kThreads % kPeriod}),
          make_part("values of atomic_wrap_inc", kThreads, drawn.download(), defined_drawn),
          make_part("raise_flag", 1, flag.download(), {1.0f}),
          make_part("a flag that no thread raises", 1, unraised.download(), {0.0f})};
}

}  // namespace mp::MP_TARGET
