// Common bugs of Hopper GEMMs, injected into one (injected_sm90.h).  The strict mode must detect
// each within 20 seeds.  Without a bug the kernel must pass in every mode.
//
//   bug                                       detected by
//   ----------------------------------------  ----------------------------------------------------
//   stride, leading stride, step along k or   wgmma, if no canonical layout has such a descriptor;
//   major of a descriptor                     else a wrong D
//   swizzle of map and descriptor differ      wgmma; wrong D
//   stages or buffers not atom-aligned        tma_load, tma_store
//   expected bytes: too few, none             the mbarrier, when more bytes complete
//   too many expected bytes, or no arrival    a deadlock, whose report lists the missing arrivals
//   parity: start, flip, reset per tile       a deadlock, or the mbarrier: a phase missed, or more
//                                             arrivals than its count
//   count of an mbarrier                      too large: a deadlock; too small: the end of the
//                                             block, in the middle of a phase
//   release before the wgmmas are complete    wrong D, as they complete late; a phase missed
//   proxy fence missing, or not in all warps  tma_store
//   buffer reused before it is read           wrong D, as stores read late; delayed warps
//   return before the last store has read     the end of the thread
//   wgmma_fence missing                       wgmma; on the device also ptxas, C7519
//   commit or wait missing                    the end of the thread; D is NaN until the wait
//   more registers claimed than released      a deadlock
//   setmaxnreg without launch bounds          make cuda-gates, C7508 (MP_KERNEL sets the bounds)
//   accumulators accessed in flight           wgmma_wait if written, NaN if read
//                                             (wgmma_violations.cpp); ptxas, C7511, C7514,
//                                             C7515, C7517
//   wgmma after a call, or spills             make cuda-gates, C7510 and the spill gate
//   a block returns before its peer           the peer's arrive or multicast
//   arrive at the own block's barrier only    a deadlock
//   odd tiles: a block of a cluster exits     a deadlock
//   tile skipped, counter not reset           wrong D
//   tile computed twice                       wrong D with split-k; correct otherwise
//   limits of tensor maps                     tensor_map.cpp
//
// Not detected here: a reduction in another order, because sums of integers are exact, and a
// missing device_fence between blocks, because gmem is sequentially consistent in the simulator.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "injected_sm90.h"
#include "testing.h"
#include "tests/support/input_values.h"

using namespace mp::host;
using namespace mptest;

namespace {

struct Problem {
  int m, n, k, split_k;
  int clusters;  ///< in the grid
};

/// The number of k tiles exceeds the number of stages and is not a multiple of it; tiles are
/// partial in m, n and k; there are more tiles than blocks.
constexpr Problem kPlain{136, 200, 300, 1, 1};
constexpr Problem kSplit{136, 120, 300, 2, 2};
constexpr Problem kOddPairs{264, 72, 300, 1, 1};
constexpr Problem kSplitPairs{264, 72, 300, 2, 2};

constexpr uint16_t kUnwritten = 0xFFFF;  // a NaN
constexpr int kPadding = 8;              // elements after each row

int padded(int n) {
  return ceil_div(n, 8) * 8 + kPadding;
}

class Fixture {
 public:
  explicit Fixture(const Problem &problem) : p_(problem) {
    Random random(1);
    for (auto *const matrix : {&a_, &b_}) {
      matrix->resize(static_cast<size_t>(matrix == &a_ ? p_.m : p_.k) *
                     padded(matrix == &a_ ? p_.k : p_.n));
      for (half &x : *matrix) x = round_to<half>(static_cast<float>(random.integer(-3, 3)));
    }
    d_.resize(static_cast<size_t>(p_.m) * padded(p_.n));
    const size_t tiles =
        static_cast<size_t>(ceil_div(p_.m, 2 * kTileM) * 2 * ceil_div(p_.n, kTileN));
    counters_.resize(tiles * kConsumers);
    partials_.resize(static_cast<size_t>(p_.split_k) * tiles * kTileM * kTileN);
  }

  /// Returns the expected D, including the padding.
  std::vector<uint16_t> expected() const {
    std::vector<uint16_t> d(d_.size(), kUnwritten);
    for (int i = 0; i < p_.m; i++)
      for (int j = 0; j < p_.n; j++) {
        double sum = 0.0;
        for (int l = 0; l < p_.k; l++)
          sum += double{to_float(a_[static_cast<size_t>(i) * padded(p_.k) + l])} *
                 double{to_float(b_[static_cast<size_t>(l) * padded(p_.n) + j])};
        d[static_cast<size_t>(i) * padded(p_.n) + j] = round_to<half>(static_cast<float>(sum)).bits;
      }
    return d;
  }

  template <Bug bug, int kCluster>
  std::string launch() {
    std::fill(d_.begin(), d_.end(), kUnwritten);
    std::fill(partials_.begin(), partials_.end(), std::nanf(""));
    const bool swizzle = bug != Bug::no_map_swizzle;
    const InjectedArgs args{map(a_.data(), p_.k, p_.m, kTileM, true),
                            map(b_.data(), p_.n, p_.k, kTileK, swizzle),
                            map(d_.data(), p_.n, p_.m, kConsumerM, true),
                            p_.m,
                            p_.n,
                            p_.k,
                            p_.split_k,
                            partials_.data(),
                            counters_.data()};
    return outcome(injected_gemm<bug, kCluster>,
                   {p_.clusters * kCluster, kThreads, kInjectedSmemBytes, kCluster}, args);
  }
  bool is_correct(const std::vector<uint16_t> &expected) const {
    return d_ == expected && std::count(counters_.begin(), counters_.end(), 0u) ==
                                 static_cast<std::ptrdiff_t>(counters_.size());
  }

 private:
  static mp::TensorMap map(const void *base, int cols, int rows, int box_rows, bool swizzle) {
    return tensor_map(
        {base, MP_FP16, {cols, rows, 1}, {padded(cols), 0}, {kChunk, box_rows}, swizzle});
  }

  const Problem p_;
  std::vector<half> a_, b_;
  std::vector<uint16_t> d_;
  std::vector<float> partials_;
  std::vector<uint32_t> counters_;
};

template <int kCluster>
void check_correct(const Problem &problem) {
  const std::vector<uint16_t> expected = Fixture(problem).expected();
  in_every_mode([&] {
    Fixture fixture(problem);
    for (int launches = 0; launches < 2; launches++) {
      CHECK(fixture.launch<Bug::none, kCluster>() == "");
      CHECK(fixture.is_correct(expected));
    }
  });
}

/// Launches twice, because the second launch reuses the workspace of the first.  If `message` is
/// given, the simulator must report it.  Otherwise D must be wrong or any violation reported.
template <Bug bug, int kCluster = 1>
void check_caught(const char *name, const char *message = nullptr,
                  const Problem &problem = kCluster == 1 ? kPlain : kOddPairs) {
  const std::vector<uint16_t> expected = Fixture(problem).expected();
  int num_wrong = 0, num_violations = 0, num_messages = 0;
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const ModeScope scope(engine::Mode::strict_with(seed));
    Fixture fixture(problem);
    std::string diagnostic;
    bool is_correct = true;
    for (int launches = 0; launches < 2 && is_correct; launches++) {
      diagnostic = fixture.launch<bug, kCluster>();
      is_correct = diagnostic.empty() && fixture.is_correct(expected);
    }
    num_violations += !diagnostic.empty();
    num_wrong += diagnostic.empty() && !is_correct;
    num_messages += message != nullptr && diagnostic.find(message) != std::string::npos;
  }
  std::printf("injected: sm90, %s: caught in %d of %d seeds (%d wrong results, %d violations)\n",
              name, num_wrong + num_violations, static_cast<int>(kSeeds), num_wrong,
              num_violations);
  CAPTURE(name);
  CHECK(num_wrong + num_violations > 0);
  if (message != nullptr) CHECK(num_messages > 0);
}

}  // namespace

TEST_CASE("injected: sm90: without a bug, D is correct in every mode") {
  check_correct<1>(kPlain);
  check_correct<1>(kSplit);
  check_correct<2>(kOddPairs);
  check_correct<2>(kSplitPairs);
}

TEST_CASE("injected: sm90: bugs in descriptors and swizzles are detected") {
  check_caught<Bug::a_stride_of_one_row>("A strides by one row",
                                         "128 bytes apart along m, not a multiple of 1024");
  check_caught<Bug::a_stride_of_two_atoms>("A strides by two atoms");
  check_caught<Bug::b_strides_of_k_major>("B has the strides of K-major",
                                          "16 bytes apart along n, not a multiple of 1024");
  check_caught<Bug::b_strides_exchanged>("B's strides exchanged");
  check_caught<Bug::a_step_of_mn_major>("A steps along k as MN-major");
  check_caught<Bug::b_step_of_k_major>("B steps along k as K-major",
                                       "32 bytes past a multiple of 1024");
  check_caught<Bug::b_taken_for_k_major>("B taken for K-major");
  check_caught<Bug::narrow_descriptor_swizzle>("64-byte swizzle in the descriptor",
                                               "64 bytes past a multiple of 512");
  check_caught<Bug::no_map_swizzle>("no swizzle in the tensor map");
  check_caught<Bug::unaligned_stages>("stages off the swizzle's atoms", "not 1024-byte aligned");
}

TEST_CASE("injected: sm90: wrong transaction bytes are detected") {
  check_caught<Bug::too_few_bytes>("too few bytes expected", "more than its phase expects");
  check_caught<Bug::too_many_bytes>("too many bytes expected", "0 of 1 arrivals and 128 bytes");
  check_caught<Bug::own_multicast_only_counted, 2>("the peer's multicast not counted",
                                                   "more than its phase expects");
  check_caught<Bug::no_bytes_expected>("no bytes expected", "");
  check_caught<Bug::no_arrival_at_full>("no arrival at full", "32768 unexpected bytes");
}

TEST_CASE("injected: sm90: wrong mbarrier phases and counts are detected") {
  check_caught<Bug::producer_waits_for_parity_0>("the producer's first wait is for parity 0",
                                                 "deadlocked");
  check_caught<Bug::consumer_parity_never_flips>("the consumers' parity never flips", "");
  check_caught<Bug::consumer_state_reset_per_tile>("the consumers start each tile at stage 0",
                                                   "deadlocked");
  check_caught<Bug::empty_count_one_too_small>("the count of empty is one too small",
                                               "in the middle of phase");
  check_caught<Bug::empty_count_one_too_large>("the count of empty is one too large",
                                               "lacks 1 of 9 arrivals");
  check_caught<Bug::producer_never_waits>("the producer does not wait for empty",
                                          "more than 1 times in a phase");
}

TEST_CASE("injected: sm90: an early release of a stage is detected") {
  check_caught<Bug::release_before_wait>("a stage released before its wgmmas", "");
  check_caught<Bug::release_one_stage_early>("a stage released while its wgmmas are in flight", "");
}

TEST_CASE("injected: sm90: bugs in TMA stores are detected") {
  check_caught<Bug::no_proxy_fence>("no proxy fence", "wrote without async_proxy_fence");
  check_caught<Bug::proxy_fence_in_one_warp>("a proxy fence in one warp of four",
                                             "wrote without async_proxy_fence");
  check_caught<Bug::no_barrier_before_store>("no barrier between stmatrix and store", "");
  check_caught<Bug::buffer_reused_unread>("a buffer reused before it is read");
  check_caught<Bug::buffer_reused_without_barrier>(
      "a buffer reused without a barrier after the wait");
  check_caught<Bug::return_before_read>("return before the last buffer is read",
                                        "returned before its TMA store has read");
  check_caught<Bug::unaligned_buffers>("buffers off the swizzle's atoms", "not 1024-byte aligned");
}

TEST_CASE("injected: sm90: bugs in accumulators and registers are detected") {
  check_caught<Bug::no_wgmma_fence>("no wgmma_fence", "lacks a wgmma_fence");
  check_caught<Bug::no_commit>("no commit", "returned without a wgmma_wait");
  check_caught<Bug::accumulators_read_in_flight>("accumulators read in flight",
                                                 "returned without a wgmma_wait");
  check_caught<Bug::registers_oversubscribed>("more registers claimed than released",
                                              "to go from 168 to 240");
}

TEST_CASE("injected: sm90: bugs in clusters are detected") {
  check_caught<Bug::no_cluster_sync_after_init, 2>("no cluster_sync after the barriers' init",
                                                   "which is not initialized");
  check_caught<Bug::no_cluster_sync_before_return, 2>("no cluster_sync before return",
                                                      "which has returned");
  check_caught<Bug::release_to_own_block_only, 2>("stages released to the own block only",
                                                  "lacks 8 of 16 arrivals");
  check_caught<Bug::block_outside_skips_tile, 2>("a block without rows skips its tile",
                                                 "deadlocked");
}

TEST_CASE("injected: sm90: bugs in the tile schedule are detected") {
  check_caught<Bug::tile_skipped>("the tiles at the edge skipped");
  check_caught<Bug::tiles_done_twice>("tiles done by two blocks", nullptr, kSplit);
  check_caught<Bug::counter_not_reset>("the counter of slices not reset", nullptr, kSplit);
}
