// Barrier bugs injected into small kernels.  The strict mode must detect each within 20 seeds.
// Without a bug the kernels must pass in every mode.
#include <algorithm>
#include <cstdio>

#include "kernels/simt/sm90.h"
#include "testing.h"

using namespace mp::host;
using namespace mptest;

namespace {

enum class Bug {
  none,
  no_sync_after_init,
  no_wait_for_full,
  no_wait_for_empty,
  parity_never_flips,
  first_wait_for_empty,
  arrive_before_write,
  release_before_read,
  no_warp_sync_before_release,
  one_arrival_too_few,
  one_arrival_too_many,
  no_barrier_between_warps,
  barrier_of_half_the_warps,
  no_cluster_sync_after_init,
  no_cluster_sync_at_the_end,
  arrive_at_own_block,
};

constexpr int kItems = 17;
constexpr int kStages = 3;
constexpr int kConsumers = 3;  // warps
constexpr int kThreads = (1 + kConsumers) * kWarpSize;

struct Args {
  int *out;  ///< [kItems][kConsumers][kWarpSize]
};

MP_DEVICE int item(int number, int lane) {
  return 100 * number + lane;
}

/// Warp 0 writes items into a ring; the other warps read them in reverse order of lanes.
template <Bug bug>
MP_KERNEL(kThreads, 1)
pass_through_ring(MP_PARAM(Args) args) {
  MP_SHARED(uint64_t, full, [kStages]);
  MP_SHARED(uint64_t, empty, [kStages]);
  MP_SHARED(int, ring, [kStages][kWarpSize]);
  constexpr int kArrivals =
      kConsumers - (bug == Bug::one_arrival_too_few) + (bug == Bug::one_arrival_too_many);
  if (thread_index() == 0) {
    for (int s = 0; s < kStages; s++) {
      mbarrier_init(smem_address(&full[s]), kWarpSize);
      mbarrier_init(smem_address(&empty[s]), kArrivals);
    }
    mbarrier_init_fence();
  }
  if (bug != Bug::no_sync_after_init) block_sync();
  for (int i = 0; i < kItems; i++) {
    const int stage = i % kStages;
    const uint32_t parity = bug == Bug::parity_never_flips ? 0 : i / kStages % 2;
    const SmemAddress full_bar = smem_address(&full[stage]);
    const SmemAddress empty_bar = smem_address(&empty[stage]);
    if (warp_index() == 0) {
      if (bug != Bug::no_wait_for_empty)
        mbarrier_wait(empty_bar, bug == Bug::first_wait_for_empty ? parity : parity ^ 1);
      if (bug == Bug::arrive_before_write) mbarrier_arrive(full_bar);
      ring[stage][lane_index()] = item(i, lane_index());
      if (bug != Bug::arrive_before_write) mbarrier_arrive(full_bar);
    } else {
      if (bug != Bug::no_wait_for_full) mbarrier_wait(full_bar, parity);
      const bool early = bug == Bug::release_before_read || bug == Bug::no_warp_sync_before_release;
      if (bug == Bug::release_before_read) warp_sync();
      if (early && lane_index() == 0) mbarrier_arrive(empty_bar);
      const int consumer = warp_index() - 1;
      args.out[(i * kConsumers + consumer) * kWarpSize + lane_index()] =
          ring[stage][kWarpSize - 1 - lane_index()];
      warp_sync();
      if (!early && lane_index() == 0) mbarrier_arrive(empty_bar);
    }
  }
}

/// Pairs of warps exchange items through shared memory, each pair at its own barrier.
template <Bug bug>
MP_KERNEL(kThreads, 1)
exchange_in_pairs(MP_PARAM(Args) args) {
  MP_SHARED(int, slots, [kThreads]);
  const int pair = warp_index() / 2;
  const auto sync = [&] {
    if (bug == Bug::barrier_of_half_the_warps)
      named_barrier_sync(1 + pair, kWarpSize);
    else if (bug != Bug::no_barrier_between_warps)
      named_barrier_sync(1 + pair, 2 * kWarpSize);
  };
  for (int i = 0; i < kItems; i++) {
    slots[thread_index()] = item(i, thread_index());
    sync();
    if (warp_index() < kConsumers)
      args.out[(i * kConsumers + warp_index()) * kWarpSize + lane_index()] =
          slots[thread_index() ^ kWarpSize];
    sync();
  }
}

/// Two blocks alternate: each arrives at the other's mbarrier after its item.
template <Bug bug>
MP_KERNEL(kThreads, 1)
take_turns(MP_PARAM(Args) args) {
  MP_SHARED(uint64_t, turn, [1]);
  const SmemAddress bar = smem_address(turn);
  if (thread_index() == 0) mbarrier_init(bar, kConsumers * kWarpSize), mbarrier_init_fence();
  if (bug == Bug::no_cluster_sync_after_init)
    block_sync();
  else
    cluster_sync();
  const int other = bug == Bug::arrive_at_own_block ? cluster_rank() : cluster_rank() ^ 1;
  if (warp_index() < kConsumers)
    for (int i = 0; i < kItems; i++) {
      const int turns = i / 2;  // previous items of this block
      if (i % 2 == cluster_rank()) {
        if (i > 0) mbarrier_wait(bar, (turns - (cluster_rank() == 0)) % 2);
        args.out[(i * kConsumers + warp_index()) * kWarpSize + lane_index()] =
            i == 0 ? 1
                   : args.out[((i - 1) * kConsumers + warp_index()) * kWarpSize + lane_index()] + 1;
        mbarrier_arrive_cluster(in_block(bar, other));
      }
    }
  if (bug != Bug::no_cluster_sync_at_the_end) cluster_sync();
}

struct Kernel {
  void (*kernel)(const Args &);
  LaunchShape shape;
  int (*expected)(int item, int consumer, int lane);
};

template <Bug bug>
constexpr Kernel kRing = {pass_through_ring<bug>, {1, kThreads}, [](int i, int, int lane) {
                            return item(i, kWarpSize - 1 - lane);
                          }};
template <Bug bug>
constexpr Kernel kPairs = {exchange_in_pairs<bug>, {1, kThreads}, [](int i, int warp, int lane) {
                             return item(i, (warp ^ 1) * kWarpSize + lane);
                           }};
template <Bug bug>
constexpr Kernel kTurns = {
    take_turns<bug>, {2, kThreads, 0, 2}, [](int i, int, int) { return i + 1; }};

/// Returns the simulator's diagnostic, "wrong" if only the result is wrong, or an empty string.
std::string outcome_of(const Kernel &kernel) {
  std::vector<int> out(kItems * kConsumers * kWarpSize, -1);
  const std::string diagnostic = outcome(kernel.kernel, kernel.shape, {out.data()});
  if (!diagnostic.empty()) return diagnostic;
  for (int i = 0; i < kItems * kConsumers * kWarpSize; i++)
    if (out[i] !=
        kernel.expected(i / (kConsumers * kWarpSize), i / kWarpSize % kConsumers, i % kWarpSize))
      return "wrong";
  return "";
}

void check_caught(const char *name, const Kernel &kernel) {
  int num_wrong = 0, num_violations = 0;
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const ModeScope scope(engine::Mode::strict_with(seed));
    const std::string outcome = outcome_of(kernel);
    num_wrong += outcome == "wrong";
    num_violations += outcome != "wrong" && !outcome.empty();
  }
  std::printf("injected: %s: caught in %d of %d seeds (%d wrong results, %d violations)\n", name,
              num_wrong + num_violations, static_cast<int>(kSeeds), num_wrong, num_violations);
  CHECK(num_wrong + num_violations > 0);
}

}  // namespace

TEST_CASE("injected: correct barriers give correct results in every mode") {
  in_every_mode([] {
    CHECK(outcome_of(kRing<Bug::none>) == "");
    CHECK(outcome_of(kPairs<Bug::none>) == "");
    CHECK(outcome_of(kTurns<Bug::none>) == "");
  });
}

TEST_CASE("injected: bugs in a ring of mbarriers are detected") {
  check_caught("ring, no block_sync after mbarrier_init", kRing<Bug::no_sync_after_init>);
  check_caught("ring, consumers do not wait", kRing<Bug::no_wait_for_full>);
  check_caught("ring, producer does not wait", kRing<Bug::no_wait_for_empty>);
  check_caught("ring, parity never flips", kRing<Bug::parity_never_flips>);
  check_caught("ring, producer waits for a first phase of empty", kRing<Bug::first_wait_for_empty>);
  check_caught("ring, arrives before it writes", kRing<Bug::arrive_before_write>);
  check_caught("ring, releases before it reads", kRing<Bug::release_before_read>);
  check_caught("ring, no warp_sync before the release", kRing<Bug::no_warp_sync_before_release>);
  check_caught("ring, empty counts one warp too few", kRing<Bug::one_arrival_too_few>);
  check_caught("ring, empty counts one warp too many", kRing<Bug::one_arrival_too_many>);
}

TEST_CASE("injected: bugs with named barriers are detected") {
  check_caught("pairs, no barrier", kPairs<Bug::no_barrier_between_warps>);
  check_caught("pairs, barrier of one warp", kPairs<Bug::barrier_of_half_the_warps>);
}

TEST_CASE("injected: bugs in a cluster are detected") {
  check_caught("turns, block_sync after mbarrier_init", kTurns<Bug::no_cluster_sync_after_init>);
  check_caught("turns, no cluster_sync at the end", kTurns<Bug::no_cluster_sync_at_the_end>);
  check_caught("turns, arrives at its own block", kTurns<Bug::arrive_at_own_block>);
}
