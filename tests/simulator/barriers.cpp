// mbarriers and named barriers of the simulator in every mode.
#include <cstring>

#include "host/start_async.h"
#include "kernels/simt/sm90.h"
#include "testing.h"

using namespace mp::host;
using namespace mptest;

namespace {

// ---------------------------------------------------------------- mbarriers

struct OutArgs {
  int *out;
};

constexpr int kStages = 3;
constexpr int kRounds = 20;

/// A producer warp passes numbers to three consumer warps through a ring of stages.
MP_KERNEL(128, 1) pass_through_ring(MP_PARAM(OutArgs) args) {
  MP_SHARED(uint64_t, full, [kStages]);
  MP_SHARED(uint64_t, empty, [kStages]);
  MP_SHARED(int, slots, [kStages][kWarpSize]);
  if (thread_index() == 0) {
    for (int s = 0; s < kStages; s++) {
      mbarrier_init(smem_address(&full[s]), kWarpSize);
      mbarrier_init(smem_address(&empty[s]), 3);
    }
    mbarrier_init_fence();
  }
  block_sync();
  for (int round = 0; round < kRounds; round++) {
    const int s = round % kStages;
    const uint32_t parity = round / kStages % 2;
    if (warp_index() == 0) {
      mbarrier_wait(smem_address(&empty[s]), parity ^ 1);
      slots[s][lane_index()] = round * lane_index();
      mbarrier_arrive(smem_address(&full[s]));
    } else {
      mbarrier_wait(smem_address(&full[s]), parity);
      int sum = 0;
      for (int i = 0; i < kWarpSize; i++) sum += slots[s][i];
      warp_sync();
      if (lane_index() == 0) mbarrier_arrive(smem_address(&empty[s]));
      if (lane_index() == round) args.out[(warp_index() - 1) * kRounds + round] = sum;
    }
  }
}

constexpr int kPhases = 41;

/// All threads arrive and wait in each phase, then read the value of another thread of that phase.
MP_KERNEL(96, 1) meet_in_phases(MP_PARAM(OutArgs) args) {
  constexpr int kThreads = 96;
  MP_SHARED(uint64_t, bar, [2]);
  MP_SHARED(int, slots, [2][kThreads]);
  if (thread_index() == 50) {
    for (uint64_t &b : bar) mbarrier_init(smem_address(&b), kThreads);
    mbarrier_init_fence();
  }
  block_sync();
  int wrong = 0;
  for (int phase = 0; phase < kPhases; phase++) {
    // Alternating mbarriers keep a thread from running a phase ahead of a sleeping thread.
    const SmemAddress now = smem_address(&bar[phase % 2]);
    slots[phase % 2][thread_index()] = phase + thread_index();
    mbarrier_arrive(now);
    mbarrier_wait(now, phase / 2 % 2);
    const int other = (thread_index() + 35) % kThreads;
    wrong += slots[phase % 2][other] != phase + other;
  }
  args.out[thread_index()] = wrong;
}

/// Thread 0 waits for three threads; after the wait it must read all three increments.
MP_KERNEL(64, 1) count_arrivals(MP_PARAM(OutArgs) args) {
  MP_SHARED(uint64_t, bar, [1]);
  if (thread_index() == 0) mbarrier_init(smem_address(bar), 3), mbarrier_init_fence();
  block_sync();
  if (thread_index() == 61) {
    mbarrier_wait(smem_address(bar), 1);  // the phase before the first counts as complete
    args.out[2] = 2;
  }
  block_sync();
  if (thread_index() % 20 == 1 && thread_index() < 60) {
    args.out[1]++;
    mbarrier_arrive(smem_address(bar));
  }
  if (thread_index() == 0) {
    mbarrier_wait(smem_address(bar), 0);
    args.out[0] = args.out[1];
    mbarrier_wait(smem_address(bar), 0);  // phase 0 is still complete
  }
}

struct BytesArgs {
  int *out;
  uint32_t expected[2];  ///< bytes that threads 0 and 32 expect
  bool bytes_first;      ///< the bytes complete before any thread arrives
};
constexpr int kParts = 4;

/// Starts an asynchronous operation that writes one element of `slots` and completes its bytes.
void write_part(int *slots, int part, SmemAddress bar) {
  const SmemAddress dst = smem_address(slots + part);
  engine::start_async([=] {
    const int value = 10 + part;
    std::memcpy(engine::smem_at(dst, 4, "write", {}), &value, 4);
    engine::mbarrier_complete_tx(bar, 4, {});
  });
}

/// Waits for a phase of two arrivals and 4 * kParts bytes.
MP_KERNEL(64, 1) wait_for_bytes(MP_PARAM(BytesArgs) args) {
  MP_SHARED(uint64_t, bars, [1]);
  MP_SHARED(int, slots, [kParts]);
  const SmemAddress bar = smem_address(bars);
  if (thread_index() == 0) mbarrier_init(bar, 2), mbarrier_init_fence();
  block_sync();
  if (args.bytes_first) {
    if (thread_index() == 7)
      for (int part = 0; part < kParts; part++) write_part(slots, part, bar);
    block_sync();
  }
  if (thread_index() % 32 == 0) {
    const uint32_t bytes = args.expected[thread_index() / 32];
    bytes > 0 ? mbarrier_arrive_expect(bar, bytes) : mbarrier_arrive(bar);
    for (uint32_t b = 0; !args.bytes_first && b < bytes; b += 4)
      write_part(slots, (thread_index() == 0 ? 0 : kParts - args.expected[1] / 4) + b / 4, bar);
  }
  if (thread_index() == 13) {
    mbarrier_wait(bar, 0);
    for (int part = 0; part < kParts; part++) args.out[part] = slots[part];
  }
  mbarrier_wait(bar, 0);
}

void check_bytes(uint32_t expected0, uint32_t expected1, bool bytes_first) {
  std::vector<int> out(kParts);
  run(wait_for_bytes, {1, 64}, {out.data(), {expected0, expected1}, bytes_first});
  CHECK(out == std::vector<int>{10, 11, 12, 13});
}

// ---------------------------------------------------------------- named barriers

/// Pairs of warps exchange numbers, each pair at its own barrier.
MP_KERNEL(512, 1) sync_in_pairs(MP_PARAM(OutArgs) args) {
  MP_SHARED(int, slots, [512]);
  const int pair = warp_index() % 8;  // warps w and w + 8
  const int other = thread_index() ^ 256;
  int value = thread_index();
  for (int round = 0; round < kRounds; round++) {
    slots[thread_index()] = value;
    named_barrier_sync(1 + pair, 64);
    value = slots[other] + 1;
    named_barrier_sync(1 + pair, 64);
  }
  args.out[thread_index()] = value;
}

struct CountArgs {
  int64_t *count;
};

/// Warp 0 arrives at barrier 1 and waits at barrier 2; the other warps do the opposite.
MP_KERNEL(128, 1) arrive_and_sync(MP_PARAM(CountArgs) args) {
  MP_SHARED(int, slot, [1]);
  for (int round = 0; round < kRounds; round++) {
    if (warp_index() == 0) {
      if (round > 0) named_barrier_sync(2, 128);
      if (lane_index() == 5) slot[0] = round;
      named_barrier_arrive(1, 128);
    } else {
      named_barrier_sync(1, 128);
      if (slot[0] == round) atomic_add(args.count, 1);
      if (round < kRounds - 1) named_barrier_arrive(2, 128);
    }
  }
}

/// Uses barriers of a single warp, then one barrier for a different pair of warps in each round.
MP_KERNEL(96, 1) sync_in_turns(MP_PARAM(OutArgs) args) {
  MP_SHARED(int, slots, [96]);
  slots[thread_index()] = thread_index();
  named_barrier_sync(4 + warp_index(), 32);
  args.out[thread_index()] = slots[thread_index() ^ 31];
  for (int turn = 0; turn < 3; turn++) {
    if (warp_index() != turn) named_barrier_sync(15, 64);
    block_sync();
  }
}

}  // namespace

TEST_CASE("simulator: a ring of mbarriers passes every value to the consumers") {
  in_every_mode([] {
    std::vector<int> out(3 * kRounds);
    run(pass_through_ring, {1, 128}, {out.data()});
    for (int i = 0; i < 3 * kRounds; i++) CHECK(out[i] == i % kRounds * 31 * 16);
  });
}

TEST_CASE("simulator: mbarrier phases alternate in parity") {
  in_every_mode([] {
    std::vector<int> out(96, -1);
    run(meet_in_phases, {1, 96}, {out.data()});
    CHECK(out == std::vector<int>(96, 0));
  });
}

TEST_CASE("simulator: a phase completes with its last arrival") {
  in_every_mode([] {
    std::vector<int> out(3);
    run(count_arrivals, {1, 64}, {out.data()});
    CHECK(out == std::vector<int>{3, 3, 2});
  });
}

TEST_CASE("simulator: a phase completes when all expected bytes are complete") {
  in_every_mode([] {
    for (const bool bytes_first : {false, true}) {
      check_bytes(16, 0, bytes_first);
      check_bytes(4, 12, bytes_first);
      check_bytes(0, 16, bytes_first);
    }
  });
}

TEST_CASE("simulator: a named barrier synchronizes a subset of the warps") {
  in_every_mode([] {
    std::vector<int> out(512);
    run(sync_in_pairs, {1, 512}, {out.data()});
    for (int t = 0; t < 512; t++) CHECK(out[t] == t + kRounds);
    run(sync_in_turns, {1, 96}, {out.data()});
    for (int t = 0; t < 96; t++) CHECK(out[t] == (t ^ 31));
  });
}

TEST_CASE("simulator: a named barrier counts threads that arrive without waiting") {
  in_every_mode([] {
    int64_t count = 0;
    run(arrive_and_sync, {1, 128}, {&count});
    CHECK(count == kRounds * 96);
  });
}
