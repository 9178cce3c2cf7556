// Misuse of clusters: every violation has its own message, in every mode.
#include "host/start_async.h"
#include "kernels/simt/sm90.h"
#include "violations.h"

using namespace mp::host;
using namespace mptest;

namespace {

MP_KERNEL(32, 1) map_beyond(MP_PARAM(Lines) lines) {
  MP_SHARED(int, slot, [1]);
  const SmemAddress own = smem_address(slot);
  lines.first = __LINE__, in_block(own, cluster_size());
}
MP_KERNEL(32, 1) map_below(MP_PARAM(Lines) lines) {
  MP_SHARED(int, slot, [1]);
  const SmemAddress own = smem_address(slot);
  lines.first = __LINE__, in_block(own, -1);
}
MP_KERNEL(32, 1) map_twice(MP_PARAM(Lines) lines) {
  MP_SHARED(int, slot, [1]);
  const SmemAddress there = in_block(smem_address(slot), 1);
  lines.first = __LINE__, in_block(there, 0);
}
MP_KERNEL(32, 1) take_address_of_gmem(MP_PARAM(Lines) lines) {
  lines.first = __LINE__, smem_address(&lines);
}

// A cluster_sync that one block does not call completes when that block has returned.

MP_KERNEL(64, 1) arrive_at_returned_block(MP_PARAM(Lines) lines) {
  MP_SHARED(uint64_t, bar, [1]);
  if (thread_index() == 0) mbarrier_init(smem_address(bar), 1), mbarrier_init_fence();
  cluster_sync();
  if (cluster_rank() == 1) return;
  cluster_sync();
  if (thread_index() == 0) {
    lines.first = __LINE__, mbarrier_arrive_cluster(in_block(smem_address(bar), 1));
  }
}
MP_KERNEL(32, 1) arrive_before_init(MP_PARAM(Lines) lines) {
  MP_SHARED(uint64_t, bar, [1]);
  const SmemAddress own = smem_address(bar);
  if (cluster_rank() == 0) lines.first = __LINE__, mbarrier_arrive_cluster(in_block(own, 1));
  cluster_sync();
}
/// An asynchronous operation of block 0 uses block 1 after all threads of block 1 have returned.
MP_KERNEL(32, 1) operate_on_returned_block(MP_PARAM(Lines) lines) {
  MP_SHARED(int, slot, [1]);
  const SmemAddress there = in_block(smem_address(slot), 1);
  if (cluster_rank() == 1) return;
  cluster_sync();
  if (thread_index() == 0) {
    const source_location where = noted(lines.first);
    engine::start_async([=] { engine::smem_at(there, 4, "an operation", where); });
  }
}
MP_KERNEL(32, 1) operate_past_the_end(MP_PARAM(Lines) lines) {
  MP_SHARED(int, slots, [4]);
  const SmemAddress address = smem_address(slots) + 8;
  engine::smem_at(address, 12, "an operation", noted(lines.first));
}

MP_KERNEL(32, 1) load_past_the_end(MP_PARAM(Lines) lines) {
  MP_SHARED(float, values, [6]);
  float x[4];
  lines.first = __LINE__, load_cluster(x, in_block(smem_address(values) + 16, 1));
}
MP_KERNEL(32, 1) load_unaligned(MP_PARAM(Lines) lines) {
  MP_SHARED(float, values, [8]);
  float x[4];
  lines.first = __LINE__, load_cluster(x, in_block(smem_address(values) + 8, 1));
}
MP_KERNEL(32, 1) load_from_returned_block(MP_PARAM(Lines) lines) {
  MP_SHARED(float, values, [4]);
  if (cluster_rank() == 1) return;
  cluster_sync();
  float x[4];
  lines.first = __LINE__, load_cluster(x, in_block(smem_address(values), 1));
}

MP_KERNEL(64, 1) sync_in_two_places(MP_PARAM(Lines) lines) {
  if (lane_index() < 7)
    lines.first = __LINE__, cluster_sync();
  else
    lines.second = __LINE__, cluster_sync();
}
MP_KERNEL(64, 1) skip_the_sync(MP_PARAM(Lines) lines) {
  if (cluster_rank() == 0 || warp_index() == 0)
    lines.first = __LINE__, cluster_sync();
  else
    lines.second = __LINE__, named_barrier_sync(1, 64);
}
MP_KERNEL(64, 1) wait_for_the_other_block(MP_PARAM(Lines) lines) {
  MP_SHARED(uint64_t, bar, [1]);
  if (thread_index() == 0) mbarrier_init(smem_address(bar), 2), mbarrier_init_fence();
  cluster_sync();
  if (thread_index() != 40) return;
  if (cluster_rank() == 0) mbarrier_arrive_cluster(in_block(smem_address(bar), 1));
  lines.first = __LINE__, mbarrier_wait(smem_address(bar), 0);
}

/// Writes one element past the end, in the second block of the second cluster.
MP_KERNEL(32, 1) write_past_the_end(MP_PARAM(Lines)) {
  MP_SHARED(float, table, [10]);
  volatile float *const variable = table;
  if (block_index() == 3 && thread_index() == 0) variable[10] = 1.0f;
}

MP_KERNEL(32, 1) do_nothing(MP_PARAM(Lines)) {}

}  // namespace

TEST_CASE("simulator: an invalid address in a cluster is reported") {
  check_violation(map_beyond, {2, 32, 0, 2}, {"to block 2 of its cluster of 2 in in_block"});
  check_violation(map_below, {1, 32}, {"to block -1 of its cluster of 1 in in_block"});
  check_violation(map_twice, {2, 32, 0, 2}, {"to in_block that is already mapped to a block"});
  check_violation(take_address_of_gmem, {1, 32}, {"smem_address that is not in its block's"});
  check_violation(operate_past_the_end, {1, 32},
                  {"12 bytes at shared slots + 8 bytes to an operation", "past the end"});
  check_violation(load_past_the_end, {2, 32, 0, 2},
                  {"16 bytes at shared values + 16 bytes to load_cluster", "past the end"});
  check_violation(load_unaligned, {2, 32, 0, 2}, {"to load_cluster that is not 16-byte aligned"});
}

TEST_CASE("simulator: use of a block before its initialization or after its return is reported") {
  check_violation(arrive_at_returned_block, {2, 64, 0, 2},
                  {"block 0 thread 0 uses shared memory of block 1, which has returned, in "
                   "mbarrier_arrive_cluster"});
  check_violation(operate_on_returned_block, {2, 32, 0, 2},
                  {"block 0 thread 0 uses shared memory of block 1, which has returned, in an "
                   "operation"});
  check_violation(load_from_returned_block, {2, 32, 0, 2},
                  {"uses shared memory of block 1, which has returned, in load_cluster"});
  check_violation(arrive_before_init, {4, 32, 0, 2}, {"which is not initialized"});
}

TEST_CASE("simulator: divergent cluster_sync and deadlocks of a cluster are reported") {
  check_violation(sync_in_two_places, {2, 64, 0, 2},
                  {"calls a different cluster_sync than its warp"});
  check_violation(
      skip_the_sync, {2, 64, 0, 2},
      {"kernel: block 0 and its cluster deadlocked", " of block 0 waits in cluster_sync",
       "where 96 of 128 threads have arrived", "of block 1 waits in named_barrier_sync",
       "where 32 of 64 threads have arrived"});
  check_violation(wait_for_the_other_block, {6, 64, 0, 2},
                  {"thread 40 of block ", "lacks 2 of 2 arrivals", "lacks 1 of 2 arrivals"});
}

TEST_CASE("simulator: the report of an out-of-bounds write names the block of the cluster") {
  if (kAsanBuild) return skip("AddressSanitizer stops the process at the bad access instead");
  check_violation(write_past_the_end, {4, 32, 0, 2},
                  {"kernel: block 3 wrote to shared table + 40 bytes, past its end"});
}

TEST_CASE("simulator: a launch with an invalid cluster shape is rejected") {
  const Lines lines;
  for (const int cluster : {0, -1, 9})
    CHECK(outcome(do_nothing, {72, 32, 0, cluster}, lines)
              .find(std::to_string(cluster) + " blocks per cluster") != std::string::npos);
  for (const int64_t num_blocks : {1, 7})
    CHECK(outcome(do_nothing, {num_blocks, 32, 0, 2}, lines).find("clusters of 2") !=
          std::string::npos);
  CHECK(outcome(do_nothing, {4, 288, 0, 4}, lines).find("4 blocks of 288 threads") !=
        std::string::npos);
  for (const int num_threads : {32, 384, 512})
    CHECK(outcome(do_nothing, {6, num_threads, 0, 2}, lines) == "");
  CHECK(outcome(do_nothing, {8, 128, 0, 8}, lines) == "");
  check_next_launch();
}
