// Misuse of mbarriers and named barriers: every violation has its own message, in every mode.
// Deadlock reports list the state of the barriers.
#include "kernels/simt/sm90.h"
#include "violations.h"

using namespace mp::host;
using namespace mptest;

namespace {

struct Bars {
  uint64_t (&words)[2];
  SmemAddress first() const { return smem_address(&words[0]); }
  SmemAddress second() const { return smem_address(&words[1]); }
};
MP_DEVICE Bars bars() {
  MP_SHARED(uint64_t, bars, [2]);
  return {bars};
}
/// Returns the second mbarrier, initialized and fenced.
MP_DEVICE SmemAddress good_bar(int arrivals) {
  const SmemAddress bar = bars().second();
  if (thread_index() == 0) mbarrier_init(bar, arrivals), mbarrier_init_fence();
  block_sync();
  return bar;
}
MP_DEVICE bool is_first() {
  return thread_index() == 0;
}

// ---------------------------------------------------------------- addresses

MP_KERNEL(32, 1) init_misaligned(MP_PARAM(Lines) lines) {
  const SmemAddress bar = bars().first() + 4;
  lines.first = __LINE__, mbarrier_init(bar, 1);
}
MP_KERNEL(32, 1) init_outside(MP_PARAM(Lines) lines) {
  const SmemAddress bar = bars().second() + 8;
  lines.first = __LINE__, mbarrier_init(bar, 1);
}
MP_KERNEL(32, 1) init_across_the_end(MP_PARAM(Lines) lines) {
  MP_SHARED(uint32_t, three_words, [3]);
  const SmemAddress bar = smem_address(&three_words[2]);
  lines.first = __LINE__, mbarrier_init(bar, 1);
}
MP_KERNEL(32, 1) init_on_the_stack(MP_PARAM(Lines) lines) {
  uint64_t bar = 0;
  lines.first = __LINE__, mbarrier_init(smem_address(&bar), 1);
}
MP_KERNEL(32, 1) arrive_misaligned(MP_PARAM(Lines) lines) {
  const SmemAddress bar = good_bar(1) - 4;
  lines.first = __LINE__, mbarrier_arrive(bar);
}
MP_KERNEL(32, 1) wait_outside(MP_PARAM(Lines) lines) {
  const SmemAddress bar = good_bar(1) + 128;
  lines.first = __LINE__, mbarrier_wait(bar, 0);
}
MP_KERNEL(32, 1) arrive_mapped(MP_PARAM(Lines) lines) {
  const SmemAddress bar = in_block(good_bar(1), 0);
  lines.first = __LINE__, mbarrier_arrive(bar);
}
MP_KERNEL(32, 1) wait_mapped(MP_PARAM(Lines) lines) {
  const SmemAddress bar = in_block(good_bar(1), 0);
  lines.first = __LINE__, mbarrier_wait(bar, 0);
}

// ---------------------------------------------------------------- initialization

MP_KERNEL(32, 1) init_without_arrivals(MP_PARAM(Lines) lines) {
  if (is_first()) lines.first = __LINE__, mbarrier_init(bars().first(), 0);
}
MP_KERNEL(32, 1) init_too_many_arrivals(MP_PARAM(Lines) lines) {
  if (is_first()) lines.first = __LINE__, mbarrier_init(bars().first(), 1 << 20);
}
MP_KERNEL(32, 1) init_twice(MP_PARAM(Lines) lines) {
  const SmemAddress bar = good_bar(1);
  if (is_first()) lines.first = __LINE__, mbarrier_init(bar, 1);
}
MP_KERNEL(32, 1) arrive_uninitialized(MP_PARAM(Lines) lines) {
  const SmemAddress bar = good_bar(1) - 8;
  if (is_first()) lines.first = __LINE__, mbarrier_arrive(bar);
}
MP_KERNEL(32, 1) wait_uninitialized(MP_PARAM(Lines) lines) {
  const SmemAddress bar = good_bar(1) - 8;
  if (is_first()) lines.first = __LINE__, mbarrier_wait(bar, 0);
}
MP_KERNEL(64, 1) use_without_fence(MP_PARAM(Lines) lines) {
  const SmemAddress bar = bars().first();
  if (is_first()) mbarrier_init(bar, 1);
  block_sync();
  if (thread_index() == 40) lines.first = __LINE__, mbarrier_arrive(bar);
}
MP_KERNEL(64, 1) fence_in_another_thread(MP_PARAM(Lines) lines) {
  const SmemAddress bar = bars().first();
  if (is_first()) mbarrier_init(bar, 1);
  if (thread_index() == 40) mbarrier_init_fence();
  block_sync();
  if (thread_index() == 40) lines.first = __LINE__, mbarrier_arrive(bar);
}
MP_KERNEL(64, 1) send_bytes_without_fence(MP_PARAM(Lines) lines) {
  const SmemAddress bar = bars().first();
  if (is_first()) mbarrier_init(bar, 1);
  if (is_first()) engine::mbarrier_complete_tx(bar, 8, noted(lines.first));
}
MP_KERNEL(32, 1) overwrite(MP_PARAM(Lines) lines) {
  const SmemAddress bar = good_bar(1);
  if (is_first()) bars().words[1] ^= 1u << 30;
  block_sync();
  if (is_first()) lines.first = __LINE__, mbarrier_wait(bar, 0);
}

// ---------------------------------------------------------------- arrivals and bytes

MP_KERNEL(32, 1) arrive_too_often(MP_PARAM(Lines) lines) {
  const SmemAddress bar = good_bar(2);
  if (is_first()) mbarrier_arrive_expect(bar, 16), mbarrier_arrive(bar);
  if (is_first()) lines.first = __LINE__, mbarrier_arrive(bar);
}
MP_KERNEL(32, 1) expect_too_much(MP_PARAM(Lines) lines) {
  const SmemAddress bar = good_bar(1);
  if (is_first()) lines.first = __LINE__, mbarrier_arrive_expect(bar, 1 << 20);
}
MP_KERNEL(32, 1) expect_too_much_in_sum(MP_PARAM(Lines) lines) {
  const SmemAddress bar = good_bar(3);
  if (!is_first()) return;
  mbarrier_arrive_expect(bar, 600000);
  lines.first = __LINE__, mbarrier_arrive_expect(bar, 600000);
}
MP_KERNEL(32, 1) send_too_much(MP_PARAM(Lines) lines) {
  const SmemAddress bar = good_bar(1);
  if (!is_first()) return;
  mbarrier_arrive_expect(bar, 16);
  engine::mbarrier_complete_tx(bar, 24, noted(lines.first));
}
MP_KERNEL(32, 1) expect_too_little(MP_PARAM(Lines) lines) {
  const SmemAddress bar = good_bar(1);
  if (!is_first()) return;
  engine::mbarrier_complete_tx(bar, 24, source_location::current());
  lines.first = __LINE__, mbarrier_arrive_expect(bar, 16);
}
MP_KERNEL(32, 1) wait_for_parity_2(MP_PARAM(Lines) lines) {
  const SmemAddress bar = good_bar(1);
  lines.first = __LINE__, mbarrier_wait(bar, 2);
}
MP_KERNEL(64, 1) miss_a_phase(MP_PARAM(Lines) lines) {
  MP_SHARED(uint64_t, others, [1]);
  const SmemAddress bar = good_bar(1);
  if (is_first()) mbarrier_init(smem_address(others), 1), mbarrier_init_fence();
  block_sync();
  if (thread_index() == 32) mbarrier_arrive(smem_address(others));
  if (warp_index() == 1) lines.first = __LINE__, mbarrier_wait(bar, 0);
  if (is_first()) {
    mbarrier_wait(smem_address(others), 0);
    mbarrier_arrive(bar);
    mbarrier_arrive(bar);
  }
}

// ---------------------------------------------------------------- named barriers

MP_KERNEL(64, 1) sync_at_0(MP_PARAM(Lines) lines) {
  lines.first = __LINE__, named_barrier_sync(0, 64);
}
MP_KERNEL(64, 1) arrive_at_16(MP_PARAM(Lines) lines) {
  lines.first = __LINE__, named_barrier_arrive(16, 64);
}
MP_KERNEL(64, 1) sync_no_threads(MP_PARAM(Lines) lines) {
  lines.first = __LINE__, named_barrier_sync(1, 0);
}
MP_KERNEL(64, 1) sync_half_a_warp(MP_PARAM(Lines) lines) {
  lines.first = __LINE__, named_barrier_sync(1, 48);
}
MP_KERNEL(64, 1) sync_too_many(MP_PARAM(Lines) lines) {
  lines.first = __LINE__, named_barrier_sync(1, 96);
}
MP_KERNEL(96, 1) disagree_on_threads(MP_PARAM(Lines) lines) {
  if (warp_index() == 0) lines.first = __LINE__, named_barrier_sync(1, 96);
  if (warp_index() == 1) lines.second = __LINE__, named_barrier_sync(1, 64);
}
MP_KERNEL(96, 1) arrive_twice(MP_PARAM(Lines) lines) {
  if (warp_index() == 1) {
    named_barrier_arrive(1, 96);
    warp_sync();
    lines.first = __LINE__, named_barrier_arrive(1, 96);
  }
}
MP_KERNEL(64, 1) split_the_warp(MP_PARAM(Lines) lines) {
  if (lane_index() < 9)
    lines.first = __LINE__, named_barrier_sync(1, 64);
  else
    lines.second = __LINE__, named_barrier_sync(1, 64);
}
MP_KERNEL(64, 1) return_before_named(MP_PARAM(Lines) lines) {
  if (thread_index() == 3) return;
  block_sync();
  lines.first = __LINE__, named_barrier_sync(1, 64);
}

// ---------------------------------------------------------------- deadlocks

MP_KERNEL(64, 1) lack_arrivals_and_bytes(MP_PARAM(Lines) lines) {
  const SmemAddress bar = good_bar(3);
  if (is_first()) {
    for (int i = 0; i < 3; i++) mbarrier_arrive(bar);  // a whole phase
    mbarrier_arrive_expect(bar, 48);
    engine::mbarrier_complete_tx(bar, 16, source_location::current());
  }
  block_sync();
  if (thread_index() == 50) lines.first = __LINE__, mbarrier_wait(bar, 1);
}
MP_KERNEL(64, 1) lack_expectation(MP_PARAM(Lines) lines) {
  const SmemAddress bar = good_bar(1);
  if (is_first()) engine::mbarrier_complete_tx(bar, 16, source_location::current());
  if (is_first()) lines.first = __LINE__, mbarrier_wait(bar, 0);
}
MP_KERNEL(128, 1) lack_warps(MP_PARAM(Lines) lines) {
  if (warp_index() == 1) named_barrier_arrive(7, 128);
  if (warp_index() == 2) lines.first = __LINE__, named_barrier_sync(7, 128);
}
MP_KERNEL(64, 1) wait_for_each_other(MP_PARAM(Lines) lines) {
  MP_SHARED(uint64_t, other, [1]);
  const SmemAddress bar = good_bar(1);
  if (is_first()) mbarrier_init(smem_address(other), 1), mbarrier_init_fence();
  block_sync();
  if (thread_index() == 0)
    lines.first = __LINE__, mbarrier_wait(bar, 0), mbarrier_arrive(smem_address(other));
  if (thread_index() == 32)
    lines.second = __LINE__, mbarrier_wait(smem_address(other), 0), mbarrier_arrive(bar);
}

}  // namespace

TEST_CASE("simulator: an invalid mbarrier address is reported") {
  check_violation(init_misaligned, {1, 32}, {"mbarrier_init that is not 8-byte aligned"});
  check_violation(init_outside, {1, 32}, {"outside all shared variables to mbarrier_init"});
  check_violation(init_across_the_end, {1, 32},
                  {"8 bytes at shared three_words + 8 bytes to mbarrier_init", "past the end"});
  check_violation(init_on_the_stack, {1, 32}, {"not in its block's shared memory"});
  check_violation(arrive_misaligned, {1, 32}, {"mbarrier_arrive that is not 8-byte aligned"});
  check_violation(wait_outside, {1, 32}, {"outside all shared variables to mbarrier_wait"});
  check_violation(arrive_mapped, {1, 32}, {"from in_block to mbarrier_arrive,"});
  check_violation(wait_mapped, {1, 32}, {"from in_block to mbarrier_wait,"});
}

TEST_CASE("simulator: use of an mbarrier that is not initialized once and fenced is reported") {
  check_violation(init_without_arrivals, {1, 32}, {"0 arrivals to mbarrier_init"});
  check_violation(init_too_many_arrivals, {1, 32}, {"1048576 arrivals to mbarrier_init"});
  check_violation(init_twice, {1, 32}, {"initializes mbarrier bars + 8 bytes a second time"});
  check_violation(arrive_uninitialized, {1, 32},
                  {"mbarrier bars + 0 bytes in mbarrier_arrive, which is not initialized"});
  check_violation(wait_uninitialized, {1, 32},
                  {"mbarrier bars + 0 bytes in mbarrier_wait, which is not initialized"});
  const std::string unfenced = "which thread 0 initialized without mbarrier_init_fence";
  check_violation(use_without_fence, {1, 64}, {"thread 40 ", unfenced});
  check_violation(fence_in_another_thread, {1, 64}, {"thread 40 ", unfenced});
  check_violation(send_bytes_without_fence, {1, 64}, {"thread 0 ", unfenced});
  check_violation(overwrite, {1, 32}, {"finds mbarrier bars + 8 bytes overwritten"});
}

TEST_CASE("simulator: too many arrivals or bytes at an mbarrier are reported") {
  check_violation(arrive_too_often, {1, 32}, {"bars + 8 bytes", "more than 2 times in a phase"});
  check_violation(expect_too_much, {1, 32}, {"bars + 8 bytes", "to 1048576", "2^20 - 1"});
  check_violation(expect_too_much_in_sum, {1, 32}, {"bars + 8 bytes", "to 1200000", "2^20 - 1"});
  check_violation(send_too_much, {1, 32},
                  {"bars + 8 bytes with 8 bytes more than its phase expects"});
  check_violation(expect_too_little, {1, 32},
                  {"bars + 8 bytes with 8 bytes more than its phase expects"});
  check_violation(wait_for_parity_2, {1, 32}, {"parity 2"});
}

TEST_CASE("simulator: a wait that may miss its phase is reported") {
  // The plain mode keeps the waiting threads asleep until both phases are complete.
  const ModeScope scope(engine::Mode::plain());
  const Lines lines;
  const std::string diagnostic = outcome(miss_a_phase, {1, 64}, lines);
  CHECK(diagnostic ==
        "kernel: block 0 thread 32 waits for phase 0 of mbarrier bars + 8 bytes and may miss it: "
        "the next phase is also complete at barriers_violations.cpp:" +
            std::to_string(lines.first));
  check_next_launch();
}

TEST_CASE("simulator: an invalid number or set of threads at a named barrier is reported") {
  check_violation(sync_at_0, {1, 64}, {"barrier 0 to named_barrier_sync"});
  check_violation(arrive_at_16, {1, 64}, {"barrier 16 to named_barrier_arrive"});
  check_violation(sync_no_threads, {1, 64}, {"0 threads to named_barrier_sync"});
  check_violation(sync_half_a_warp, {1, 64}, {"48 threads", "not a multiple of 32"});
  check_violation(sync_too_many, {1, 64}, {"96 threads", "its block of 64"});
  check_violation(disagree_on_threads, {1, 96}, {"it is in use with "});
  check_violation(arrive_twice, {1, 96}, {"arrives at barrier 1 again in named_barrier_arrive"});
  check_violation(split_the_warp, {1, 64},
                  {"arrives at barrier 1 from a different line than its warp"});
  check_violation(return_before_named, {1, 64},
                  {"calls named_barrier_sync after lanes of its warp have returned"});
}

TEST_CASE("simulator: a deadlock report lists the missing arrivals and bytes of each barrier") {
  check_violation(lack_arrivals_and_bytes, {1, 64},
                  {"deadlocked; thread 50 waits in mbarrier_wait at ",
                   " for mbarrier bars + 8 bytes, whose phase 1 of parity 1 lacks 2 of 3 arrivals "
                   "and 32 bytes"});
  check_violation(lack_expectation, {1, 64},
                  {"phase 0 of parity 0 lacks 1 of 1 arrivals and has 16 unexpected bytes"});
  check_violation(lack_warps, {1, 128},
                  {"waits in named_barrier_sync at ", " where 64 of 128 threads have arrived"});
  check_violation(wait_for_each_other, {1, 64},
                  {"thread 0 waits in mbarrier_wait", "thread 32 waits in mbarrier_wait",
                   "mbarrier bars + 8 bytes", "mbarrier other + 0 bytes", "lacks 1 of 1 arrivals"});
}
