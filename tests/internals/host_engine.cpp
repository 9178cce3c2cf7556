// The simulator reports deadlocks and accesses outside shared variables with the line in the
// kernel, and the next launch succeeds.
#include <algorithm>
#include <thread>

#include "kernels/simt/sm80.h"
#include "kernels/simt/sm90_tma.h"
#include "kernels/simt/sm90_wgmma.h"
#include "kernels/simt/wmma.h"
#include "testing.h"
#include "tests/support/run_again.h"

using namespace mp::host;
using namespace mptest;

namespace {

/// Argument of kernels with an error, which store its line.
struct Line {
  mutable int number = 0;
};

struct SumArgs {
  int *out;
};
MP_KERNEL(256, 1) sum_block(MP_PARAM(SumArgs) args) {
  const int sum = block_reduce<256, Sum>(thread_index());
  if (thread_index() == 0) args.out[block_index()] = sum;
}

void check_next_launch() {
  std::vector<int> out(4);
  run(sum_block, {4, 256}, {out.data()});
  CHECK(out == std::vector<int>(4, 255 * 256 / 2));
}

/// Checks that the report has all of `texts` and the line.
void check_report(void (*kernel)(const Line &), const LaunchShape &shape,
                  const std::vector<std::string> &texts) {
  const Line line;
  const std::string report = outcome(kernel, shape, line);
  CAPTURE(report);
  CHECK(report.find("kernel: block ") == 0);
  CHECK(report.find("host_engine.cpp:" + std::to_string(line.number)) != std::string::npos);
  for (const std::string &text : texts) CHECK(report.find(text) != std::string::npos);
  check_next_launch();
}

MP_DEVICE SmemAddress initialized_barrier(int arrivals) {
  MP_SHARED(uint64_t, bars, [2]);
  const SmemAddress bar = smem_address(&bars[1]);
  if (thread_index() == 0) mbarrier_init(bar, arrivals);
  block_sync();
  return bar;
}

// ---------------------------------------------------------------- deadlocks

MP_KERNEL(64, 1) wait_for_each_other(MP_PARAM(Line) line) {
  if (lane_index() < 16)
    block_sync();
  else
    line.number = __LINE__, warp_sync();
}
MP_KERNEL(64, 1) return_before_shuffle(MP_PARAM(Line) line) {
  if (thread_index() == 40) return;
  line.number = __LINE__, shuffle(1, 0);
}
MP_KERNEL(32, 1) multiply_without_a_lane(MP_PARAM(Line) line) {
  MP_DYN_SHARED(half, smem);
  wmma::Accumulator acc;
  wmma::FragmentA<half, wmma::Layout::row_major> a;
  wmma::FragmentB<half, wmma::Layout::row_major> b;
  wmma::fill(acc, 0.0f);
  wmma::load(a, smem, wmma::kTile);
  wmma::load(b, smem, wmma::kTile);
  if (lane_index() != 9) line.number = __LINE__, wmma::multiply_add(acc, a, b);
}
MP_KERNEL(64, 1) deadlock_in_block_17(MP_PARAM(Line) line) {
  if (block_index() != 17) return block_sync();
  if (lane_index() != 0) line.number = __LINE__, warp_sync();
  if (lane_index() == 0) block_sync();
}
MP_KERNEL(64, 1) lack_arrivals_and_bytes(MP_PARAM(Line) line) {
  const SmemAddress bar = initialized_barrier(3);
  if (thread_index() == 0) {
    for (int i = 0; i < 3; i++) mbarrier_arrive(bar);  // a whole phase
    mbarrier_arrive_expect(bar, 48);
    engine::mbarrier_complete_tx(bar, 16, source_location::current());
  }
  block_sync();
  if (thread_index() == 50) line.number = __LINE__, mbarrier_wait(bar, 1);
}
MP_KERNEL(64, 1) lack_expectation(MP_PARAM(Line) line) {
  const SmemAddress bar = initialized_barrier(1);
  if (thread_index() == 0) engine::mbarrier_complete_tx(bar, 16, source_location::current());
  if (thread_index() == 0) line.number = __LINE__, mbarrier_wait(bar, 0);
}
MP_KERNEL(64, 1) wait_for_the_cluster(MP_PARAM(Line) line) {
  const SmemAddress bar = initialized_barrier(1);
  if (cluster_rank() == 0 || warp_index() == 0)
    line.number = __LINE__, cluster_sync();
  else
    mbarrier_wait(bar, 0);
}

using Accumulators = float[32];

/// Multiplies K-major tiles of 64 rows of 128 bytes; B begins `offset` bytes after A.
MP_DEVICE void multiply(Accumulators &d, SmemAddress offset, source_location where) {
  MP_DYN_SHARED(unsigned char, smem);
  const SmemAddress a = smem_address(smem);
  wgmma<half, 64, Major::k, Major::k>(d, wgmma_descriptor(a, 16, 1024),
                                      wgmma_descriptor(a + offset, 16, 1024), false, where);
}
MP_KERNEL(128, 1) skip_a_wgmma(MP_PARAM(Line) line) {
  Accumulators d;
  if (thread_index() == 77)
    block_sync();
  else
    multiply(d, 8192, source_location::current());
  wgmma_commit();
  line.number = __LINE__, wgmma_wait<0>();
}

// ---------------------------------------------------------------- bounds

MP_KERNEL(128, 1) multiply_past_the_end(MP_PARAM(Line) line) {
  Accumulators d;
  line.number = __LINE__, multiply(d, 8192 + 2048, source_location::current());
}
MP_KERNEL(96, 1) multiply_in_three_warps(MP_PARAM(Line) line) {
  Accumulators d;
  line.number = __LINE__, multiply(d, 8192, source_location::current());
}
MP_KERNEL(32, 1) copy_past_the_end(MP_PARAM(Line) line) {
  alignas(16) static constexpr char kSource[16] = {};
  MP_SHARED(char, slots, [64]);
  line.number = __LINE__, copy_async_16(slots + 64, kSource, 16);
}
MP_KERNEL(32, 1) load_past_the_end(MP_PARAM(Line) line) {
  MP_SHARED(float, values, [6]);
  float x[4];
  line.number = __LINE__, load_cluster(x, in_block(smem_address(values) + 16, 1));
}
MP_KERNEL(32, 1) load_from_no_block(MP_PARAM(Line) line) {
  MP_SHARED(float, values, [4]);
  float x[4];
  line.number = __LINE__, load_cluster(x, in_block(smem_address(values), 2));
}
MP_KERNEL(32, 1) load_box_past_the_end(MP_PARAM(Line) line) {
  static const float kValues[64] = {};
  MP_SHARED(float, box, [30]);
  const mp::TensorMap &map = tensor_map({kValues, MP_FP32, {8, 8, 1}, {8, 64}, {8, 4}, false});
  line.number = __LINE__, tma_load(smem_address(box), map, initialized_barrier(1), 0, 0, 0);
}
MP_KERNEL(32, 1) store_past_the_end(MP_PARAM(Line) line) {
  MP_SHARED(uint16_t, tile, [32][8]);
  const auto row_of = [&](int i) {
    return smem_address(tile) + static_cast<SmemAddress>(i + 1) * 16;
  };
  line.number = __LINE__, store_matrix_x4(row_of, {0, 0, 0, 0});
}
MP_KERNEL(32, 1) arrive_uninitialized(MP_PARAM(Line) line) {
  const SmemAddress bar = initialized_barrier(1) - 8;
  line.number = __LINE__, mbarrier_arrive(bar);
}
MP_KERNEL(32, 1) arrive_at_zeros(MP_PARAM(Line) line) {
  MP_SHARED(uint64_t, zeros, [1]);
  zeros[0] = 0;  // the bytes of the block's first mbarrier
  initialized_barrier(1);
  line.number = __LINE__, mbarrier_arrive(smem_address(zeros));
}
MP_KERNEL(32, 1) declare_too_much(MP_PARAM(Line) line) {
  line.number = __LINE__ + 1;
  MP_SHARED(char, huge, [engine::kSmemBytes + 1]);
  if (thread_index() == 0) huge[0] = 0;
}
MP_KERNEL(32, 1) declare_half(MP_PARAM(Line) line) {
  line.number = __LINE__ + 1;
  MP_SHARED(char, half_of_it, [engine::kSmemBytes / 2]);
  if (thread_index() == 0) half_of_it[0] = 0;
}

// ---------------------------------------------------------------- initial contents

struct SharedState {
  uint64_t *addresses;  ///< addresses in block 0
  bool *is_fresh;       ///< a flag per block
};
MP_KERNEL(32, 1) examine_shared(MP_PARAM(SharedState) args) {
  struct alignas(64) Aligned {
    unsigned char bytes[64];
  };
  MP_SHARED(float, first, [100]);
  MP_SHARED(Aligned, second, [2]);
  MP_DYN_SHARED(float, dynamic);
  if (thread_index() != 31) return;
  const auto is_fresh = [](const void *data, size_t bytes) {
    const auto *const begin = static_cast<const unsigned char *>(data);
    return std::all_of(begin, begin + bytes, [](unsigned char byte) { return byte == 0xFF; });
  };
  args.is_fresh[block_index()] =
      is_fresh(first, sizeof first) && is_fresh(second, sizeof second) && is_fresh(dynamic, 200);
  const void *const addresses[] = {first, second, dynamic};
  for (int i = 0; block_index() == 0 && i < 3; i++)
    args.addresses[i] = reinterpret_cast<uintptr_t>(addresses[i]);
  for (float &x : first) x = 1.0f;
  for (Aligned &x : second) x = {};
  for (int i = 0; i < 50; i++) dynamic[i] = 1.0f;
}

// ---------------------------------------------------------------- writes

/// Writes one float `distance` elements past the end or, if negative, before the start.
struct OutOfBoundsArgs {
  int distance;
  bool dynamic;
};
MP_KERNEL(32, 1) write_out_of_bounds(MP_PARAM(OutOfBoundsArgs) args) {
  MP_DYN_SHARED(float, dynamic);
  MP_SHARED(float, low, [8]);
  MP_SHARED(float, table, [40]);
  MP_SHARED(float, high, [8]);
  if (thread_index() != 0 || block_index() != 3) return;
  low[0] = high[0] = 0.0f;
  volatile float *const variable = args.dynamic ? dynamic : table;
  variable[args.distance < 0 ? args.distance : 40 + args.distance] = 1.0f;
}

}  // namespace

TEST_CASE("host engine: a deadlock is reported with the missing arrivals") {
  check_report(wait_for_each_other, {1, 64}, {"deadlocked;", "waits in block_sync", "warp_sync"});
  check_report(return_before_shuffle, {1, 64}, {"waits in shuffle"});
  check_report(multiply_without_a_lane, {1, 32, 512}, {"waits in wmma::multiply_add"});
  check_report(deadlock_in_block_17, {40, 64}, {"block 17 deadlocked"});
  check_report(lack_arrivals_and_bytes, {1, 64},
               {"thread 50 waits in mbarrier_wait at ",
                " for mbarrier bars + 8 bytes, whose phase "
                "1 of parity 1 lacks 2 of 3 arrivals and 32 bytes"});
  check_report(lack_expectation, {1, 64},
               {"phase 0 of parity 0 lacks 1 of 1 arrivals and has 16 unexpected bytes"});
  check_report(wait_for_the_cluster, {2, 64, 0, 2},
               {"block 0 and its cluster deadlocked", " of block 0 waits in cluster_sync",
                "where 96 of 128 threads have arrived", "of block 1 waits in mbarrier_wait"});
  check_report(skip_a_wgmma, {1, 128, 16384}, {"which 127 of 128 threads have issued"});
}

TEST_CASE("host engine: an invalid address in shared memory is reported") {
  check_report(multiply_past_the_end, {1, 128, 16384},
               {"reads B at", "not in one shared variable"});
  check_report(multiply_in_three_warps, {1, 96, 16384}, {"outside a full warpgroup"});
  check_report(copy_past_the_end, {1, 32}, {"outside all shared variables in copy_async_16"});
  check_report(load_past_the_end, {2, 32, 0, 2},
               {"16 bytes at shared values + 16 bytes to load_cluster, which run past the end"});
  check_report(load_from_no_block, {2, 32, 0, 2}, {"in block 2 of its cluster of 2"});
  check_report(load_box_past_the_end, {1, 32}, {"128 bytes at shared box + 0 bytes to tma_load"});
  check_report(store_past_the_end, {1, 32}, {"outside all shared variables to store_matrix_x4"});
  check_report(arrive_uninitialized, {1, 32},
               {"mbarrier bars + 0 bytes in mbarrier_arrive, which is not initialized"});
  check_report(arrive_at_zeros, {1, 32},
               {"mbarrier zeros + 0 bytes in mbarrier_arrive, which is not initialized"});
}

TEST_CASE("host engine: a write outside a shared variable is reported") {
  if (kAsanBuild) return skip("AddressSanitizer stops the process at the bad access instead");
  const std::string report = "kernel: block 3 wrote to shared ";
  for (const auto &[args, text] :
       {std::pair{OutOfBoundsArgs{0, false}, "table + 160 bytes, past its end"},
        {OutOfBoundsArgs{15, false}, "table + 220 bytes, past its end"},
        {OutOfBoundsArgs{-1, false}, "table - 4 bytes, below its start"},
        {OutOfBoundsArgs{-16, false}, "table - 64 bytes, below its start"},
        {OutOfBoundsArgs{0, true}, "dynamic part + 160 bytes, past its end"},
        {OutOfBoundsArgs{-1, true}, "dynamic part - 4 bytes, below its start"}}) {
    CHECK(outcome(write_out_of_bounds, {8, 32, 160, 2}, args) == report + text);
    check_next_launch();
  }
}

TEST_CASE("host engine: a block has 227 KB of shared memory") {
  check_report(declare_too_much, {1, 32}, {"huge"});
  check_report(declare_half, {1, 32, engine::kSmemBytes / 2 + 2}, {"half_of_it"});
  CHECK(outcome(declare_half, {1, 32, engine::kSmemBytes / 2}, Line{}) == "");
  CHECK(outcome(declare_half, {1, 32, engine::kSmemBytes + 1}, Line{}) != "");
}

TEST_CASE("host engine: shared variables are aligned and initially NaN in every block") {
  constexpr size_t kBlocks = 3;
  for (int launch = 0; launch < 2; launch++) {
    bool is_fresh[kBlocks] = {};
    uint64_t addresses[3] = {};
    run(examine_shared, {kBlocks, 32, 200}, {addresses, is_fresh});
    for (const bool of_block : is_fresh) CHECK(of_block);
    CHECK(addresses[0] % 16 == 0);
    CHECK(addresses[1] % 64 == 0);
    CHECK(addresses[2] % 128 == 0);
  }
}

TEST_CASE("host engine: a launch with an invalid shape is rejected") {
  std::vector<int> out(8);
  const auto rejects = [&](const LaunchShape &shape, const std::string &text) {
    const std::string report = outcome(sum_block, shape, {out.data()});
    CAPTURE(report);
    CHECK(report.find(text) != std::string::npos);
  };
  for (const int num_threads : {0, -32, 1, 33, 255, 1056})
    rejects({1, num_threads}, "multiple of 32");
  for (const int64_t num_blocks : {0, -1}) rejects({num_blocks, 256}, "blocks is empty");
  for (const int cluster : {0, -1, 9})
    rejects({72, 32, 0, cluster}, std::to_string(cluster) + " blocks per cluster");
  rejects({7, 256, 0, 2}, "clusters of 2");
  rejects({8, 416, 0, 8}, "8 blocks of 416 threads");
  check_next_launch();
}

TEST_CASE("host engine: concurrent launches from several OS threads are correct") {
  constexpr int kCallers = 4, kBlocks = 20;
  std::vector<std::string> reports(kCallers);
  std::vector<std::vector<int>> sums(kCallers, std::vector<int>(kBlocks));
  std::vector<std::thread> callers;
  for (size_t c = 0; c < kCallers; c++)
    callers.emplace_back([&, c] {
      for (int i = 0; i < 25 && reports[c].empty(); i++) {
        std::fill(sums[c].begin(), sums[c].end(), 0);
        reports[c] = outcome(sum_block, {kBlocks, 256}, {sums[c].data()});
      }
    });
  for (std::thread &caller : callers) caller.join();
  CHECK(reports == std::vector<std::string>(kCallers));
  for (const std::vector<int> &of_caller : sums)
    CHECK(of_caller == std::vector<int>(kBlocks, 255 * 256 / 2));
}

TEST_CASE("the number of workers of this process", "[.]") {
  for (int i = 0; i < 2; i++) std::printf("workers: %d\n", engine::max_workers());
}

/// The variable is read once per process, so the program runs again.
TEST_CASE(
    "host engine: MP_HOST_THREADS sets the workers, an invalid value is ignored with one "
    "warning") {
  const auto printed = [](const std::string &value) {
    return output_of_test("the number of workers of this process",
                          "MP_HOST_THREADS='" + value + "'");
  };
  CHECK(times(printed("7"), "workers: 7\n") == 2);
  const int processors = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 256);
  for (const std::string value : {"abc", "0", "257", "2 "}) {
    const std::string output = printed(value);
    CAPTURE(output);
    CHECK(times(output, "workers: " + std::to_string(processors) + "\n") == 2);
    CHECK(times(output, "mpcore: warn: ") == 1);
    CHECK(times(output, "mpcore: warn: MP_HOST_THREADS = " + value +
                            ": must be an integer from 1 to 256; using the default\n") == 1);
  }
}
