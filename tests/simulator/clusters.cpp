// Clusters in the simulator: block indices, addresses in other blocks, cluster_sync, and
// asynchronous operations between blocks.
#include <cmath>
#include <cstring>

#include "host/start_async.h"
#include "kernels/simt/sm90.h"
#include "violations.h"

using namespace mp::host;
using namespace mptest;

namespace {

// ---------------------------------------------------------------- indices and addresses

struct Place {
  int64_t block;
  int rank, size, thread;
  SmemAddress first, second;  ///< shared variables; odd blocks declare them in reverse order
  uintptr_t arena;
};
struct PlaceArgs {
  Place *out;
  int num_threads;
};

MP_DEVICE SmemAddress first_variable() {
  MP_SHARED(double, first, [3]);
  return smem_address(first);
}
MP_DEVICE SmemAddress second_variable() {
  MP_SHARED(float, second, [100]);
  return smem_address(second);
}

MP_KERNEL(512, 1) record_places(MP_PARAM(PlaceArgs) args) {
  MP_DYN_SHARED(float, dynamic);
  Place &mine = args.out[block_index() * args.num_threads + thread_index()];
  mine.block = block_index();
  mine.rank = cluster_rank();
  mine.size = cluster_size();
  mine.thread = thread_index();
  if (block_index() % 2 == 0) mine.first = first_variable();
  mine.second = second_variable();
  mine.first = first_variable();
  mine.arena = reinterpret_cast<uintptr_t>(dynamic) - smem_address(dynamic);
}

void check_places(int64_t num_blocks, int num_threads, int cluster) {
  std::vector<Place> out(static_cast<size_t>(num_blocks * num_threads));
  run(record_places, {num_blocks, num_threads, 64, cluster}, {out.data(), num_threads}, 2);
  int64_t wrong = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(out.size()); i++) {
    const Place &got = out[i],
                &of_cluster = out[i / (cluster * num_threads) * cluster * num_threads];
    const int64_t block = i / num_threads;
    wrong += got.block != block || got.thread != i % num_threads || got.size != cluster ||
             got.rank != block % cluster || got.first != of_cluster.first ||
             got.second != of_cluster.second || got.arena % 1024 != 0 ||
             (got.rank > 0 && got.arena == of_cluster.arena);
  }
  CHECK(wrong == 0);
}

struct NanArgs {
  int *wrong;
};

/// Shared memory of every block starts as NaN and later holds only values of that block.
MP_KERNEL(64, 1) write_own_memory(MP_PARAM(NanArgs) args) {
  MP_SHARED(float, values, [64]);
  if (!std::isnan(values[thread_index()])) args.wrong[block_index()]++;
  cluster_sync();
  values[thread_index()] = static_cast<float>(block_index());
  cluster_sync();
  if (values[thread_index() ^ 1] != static_cast<float>(block_index())) args.wrong[block_index()]++;
}

// ---------------------------------------------------------------- between blocks

struct OutArgs {
  int *out;
};

constexpr uint32_t kBytes = 4;

/// Starts an asynchronous write of `value` that completes bytes of the mbarrier, like a TMA load.
void write_async(SmemAddress dst, SmemAddress bar, int value,
                 source_location where = source_location::current()) {
  engine::start_async([=] {
    std::memcpy(engine::smem_at(dst, kBytes, "write_async", where), &value, kBytes);
    engine::mbarrier_complete_tx(bar, kBytes, where);
  });
}

/// Each block sends numbers to the next block of its cluster.  The receiver's mbarrier counts the
/// bytes; after reading them the receiver arrives at an mbarrier of the sender.
MP_KERNEL(64, 1) pass_to_next_block(MP_PARAM(OutArgs) args) {
  MP_SHARED(uint64_t, full, [1]);
  MP_SHARED(uint64_t, empty, [1]);
  MP_SHARED(int, slot, [1]);
  const SmemAddress full_bar = smem_address(full), empty_bar = smem_address(empty);
  if (thread_index() == 0) {
    mbarrier_init(full_bar, 1);
    mbarrier_init(empty_bar, 1);
    mbarrier_init_fence();
  }
  cluster_sync();
  const int next = (cluster_rank() + 1) % cluster_size();
  const int previous = (cluster_rank() + cluster_size() - 1) % cluster_size();
  for (int round = 0; round < 5; round++) {
    if (thread_index() == 32) {
      if (round > 0) mbarrier_wait(empty_bar, (round - 1) % 2);
      write_async(in_block(smem_address(slot), next), in_block(full_bar, next),
                  static_cast<int>(block_index()) * 10 + round);
    }
    if (thread_index() == 0) {
      mbarrier_arrive_expect(full_bar, kBytes);
      mbarrier_wait(full_bar, round % 2);
      args.out[block_index()] += slot[0];
      mbarrier_arrive_cluster(in_block(empty_bar, previous));
    }
  }
  cluster_sync();
}

void check_pass(int cluster, int64_t num_blocks) {
  std::vector<int> out(static_cast<size_t>(num_blocks));
  run(pass_to_next_block, {num_blocks, 64, 0, cluster}, {out.data()}, 2);
  for (int b = 0; b < num_blocks; b++) {
    const int from = b / cluster * cluster + (b + cluster - 1) % cluster;
    CHECK(out[b] == 5 * 10 * from + 10);
  }
}

/// All threads of the cluster arrive at an mbarrier of its last block in each round.
MP_KERNEL(32, 1) arrive_at_last_block(MP_PARAM(OutArgs) args) {
  MP_SHARED(uint64_t, bar, [1]);
  const int last = cluster_size() - 1;
  if (cluster_rank() == last && thread_index() == 31)
    mbarrier_init(smem_address(bar), 32 * cluster_size()), mbarrier_init_fence();
  cluster_sync();
  for (int round = 0; round < 7; round++) {
    args.out[block_index() * 32 + thread_index()]++;
    device_fence();  // an arrival does not publish writes to other blocks
    mbarrier_arrive_cluster(in_block(smem_address(bar), last));
    if (cluster_rank() == last) {
      mbarrier_wait(smem_address(bar), round % 2);
      device_fence();
      const int64_t other = (block_index() - cluster_size() + 1) * 32 + thread_index();
      if (args.out[other] != round + 1) args.out[other] = 1000;
    }
    cluster_sync();
  }
}

/// Every block stores the round number, then all synchronize; none may run a round ahead.
MP_KERNEL(96, 1) sync_in_rounds(MP_PARAM(OutArgs) args) {
  for (int round = 1; round <= 9; round++) {
    if (thread_index() == 7 * round) args.out[block_index()] = round;
    cluster_sync();
    const int64_t other =
        block_index() / cluster_size() * cluster_size() + (cluster_rank() + round) % cluster_size();
    if (args.out[other] != round) args.out[block_index()] = 1000;
    cluster_sync();
  }
}

/// cluster_sync does not wait for warps that have returned; the remaining warps may call it on
/// different lines.
MP_KERNEL(128, 1) leave_early(MP_PARAM(OutArgs) args) {
  if (warp_index() == 3 || (cluster_rank() == 1 && warp_index() == 0)) return;
  if (thread_index() == 64) args.out[block_index()] = 1;
  if (warp_index() == 1)
    cluster_sync();
  else
    cluster_sync();
  if (thread_index() == 40) args.out[block_index()] += 10 * args.out[block_index() ^ 1] * 0 + 10;
}

// ---------------------------------------------------------------- asynchronous operations

/// Thread 0 starts an operation and returns; another thread of the block waits for the operation.
MP_KERNEL(64, 1) start_and_return(MP_PARAM(OutArgs) args) {
  MP_SHARED(uint64_t, bar, [1]);
  if (thread_index() == 0) mbarrier_init(smem_address(bar), 1), mbarrier_init_fence();
  block_sync();
  int *const out = args.out + block_index();
  const SmemAddress address = smem_address(bar);
  if (thread_index() == 0) {
    engine::start_async([=] {
      *out = 10 * engine::current->index + 1;
      engine::mbarrier_complete_tx(address, 8, {});
    });
    mbarrier_arrive_expect(address, 8);
  }
  if (thread_index() == 33) mbarrier_wait(address, 0), *out += 1;
}

/// No thread waits: the operations complete at the end of the cluster at the latest.
MP_KERNEL(32, 1) start_and_forget(MP_PARAM(OutArgs) args) {
  int *const out = args.out + block_index();
  if (thread_index() == 3)
    for (int i = 0; i < 4; i++) engine::start_async([=] { *out += 1; });
}

/// Counts how many of 40 operations have completed after the next thread switches.
MP_KERNEL(32, 1) observe_operations(MP_PARAM(OutArgs) args) {
  int *const out = args.out;
  if (thread_index() == 0)
    for (int i = 0; i < 40; i++) engine::start_async([=] { out[0]++; });
  warp_sync();
  if (thread_index() == 0) out[1] = out[0];
}

int operations_at_switch(const engine::Mode &mode) {
  const ModeScope scope(mode);
  std::vector<int> out(2);
  run(observe_operations, {1, 32}, {out.data()});
  CHECK(out[0] == 40);
  return out[1];
}

}  // namespace

TEST_CASE(
    "simulator: blocks of a cluster have consecutive indices and equal layouts of shared memory") {
  in_every_mode([] {
    for (int cluster = 1; cluster <= 8; cluster++) {
      check_places(cluster, 64, cluster);
      check_places(5 * cluster, 32, cluster);
    }
  });
  // Shapes change from launch to launch.
  for (const int num_threads : {32, 128, 512}) check_places(6, num_threads, 2);
  check_places(9, 512, 1);
  check_places(16, 128, 8);
}

TEST_CASE("simulator: every block of a cluster has its own shared memory") {
  in_every_mode([] {
    for (const int cluster : {1, 2, 5}) {
      std::vector<int> wrong(10);
      run(write_own_memory, {10, 64, 0, cluster}, {wrong.data()}, 2);
      CHECK(wrong == std::vector<int>(10));
    }
  });
}

TEST_CASE("simulator: blocks of a cluster pass values through shared memory") {
  in_every_mode([] {
    for (const int cluster : {1, 2, 3, 8}) {
      check_pass(cluster, cluster);
      check_pass(cluster, 7 * cluster);
    }
  });
}

TEST_CASE("simulator: an mbarrier counts arrivals from other blocks of the cluster") {
  in_every_mode([] {
    for (const int cluster : {1, 2, 4}) {
      std::vector<int> out(32 * 12);
      run(arrive_at_last_block, {12, 32, 0, cluster}, {out.data()}, 2);
      CHECK(out == std::vector<int>(32 * 12, 7));
    }
  });
}

TEST_CASE("simulator: cluster_sync waits for the threads of all blocks") {
  in_every_mode([] {
    for (const int cluster : {1, 2, 3}) {
      std::vector<int> out(12);
      run(sync_in_rounds, {12, 96, 0, cluster}, {out.data()}, 2);
      CHECK(out == std::vector<int>(12, 9));
    }
    std::vector<int> out(4);
    run(leave_early, {4, 128, 0, 2}, {out.data()});
    CHECK(out == std::vector<int>(4, 11));
  });
}

TEST_CASE("simulator: asynchronous operations complete by the end of the cluster") {
  in_every_mode([] {
    std::vector<int> out(3);
    run(start_and_return, {3, 64}, {out.data()});
    CHECK(out == std::vector<int>(3, 2));
    out.assign(4, 0);
    run(start_and_forget, {4, 32, 0, 2}, {out.data()});
    CHECK(out == std::vector<int>(4, 4));
  });
}

TEST_CASE("simulator: the mode selects when asynchronous operations complete") {
  CHECK(operations_at_switch(engine::Mode::plain()) == 40);
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    CHECK(operations_at_switch({true, seed, engine::CopyTiming::immediate}) == 40);
    CHECK(operations_at_switch({true, seed, engine::CopyTiming::late}) == 0);
    const int some = operations_at_switch({true, seed, engine::CopyTiming::random});
    CHECK(some > 0);
    CHECK(some < 40);
  }
}
