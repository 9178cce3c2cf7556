// Race detector with mbarriers, named barriers, clusters and asynchronous operations: ordered
// accesses, and races.
#include "host/race.h"
#include "host/start_async.h"
#include "kernels/simt/sm90.h"
#include "testing.h"

using namespace mp::host;
using namespace mptest;

namespace {

namespace race = engine::race;

constexpr int kThreads = 256;  // two warpgroups

/// Two mbarriers and a slot of 16 bytes per thread.
struct Shared {
  uint64_t (&bars)[2];
  int (&slots)[4 * kThreads];

  SmemAddress bar(int i) const { return smem_address(&bars[i]); }
};
MP_DEVICE Shared shared() {
  MP_SHARED(uint64_t, bars, [2]);
  MP_SHARED(int, slots, [4 * kThreads]);
  return {bars, slots};
}

/// Initializes and fences both mbarriers.
MP_DEVICE Shared with_barriers(int arrivals0, int arrivals1 = 1) {
  const Shared smem = shared();
  if (thread_index() == 0) {
    mbarrier_init(smem.bar(0), arrivals0);
    mbarrier_init(smem.bar(1), arrivals1);
    mbarrier_init_fence();
  }
  cluster_sync();
  return smem;
}

MP_DEVICE int &slot_of(int thread) {
  return shared().slots[4 * thread];
}
MP_DEVICE void write_mine() {
  slot_of(thread_index()) = 1;
}
MP_DEVICE void read_of(int thread) {
  use(slot_of(thread));
}

// ---- asynchronous operations on a thread's slot, as the simulator notifies the detector

[[gnu::noinline]] void start_load(int thread, int bar, int rank) {
  const Shared smem = shared();
  const SmemAddress mbarrier = in_block(smem.bar(bar), rank);
  const SmemAddress dst = in_block(smem_address(&smem.slots[4 * thread]), rank);
  race::tma_load_started(mbarrier, engine::smem_at(dst, 16, "load", {}), 16,
                         __builtin_return_address(0));
  engine::start_async([=] { engine::mbarrier_complete_tx(mbarrier, 16, {}); });
}
/// Starts a store in group 0.
[[gnu::noinline]] void start_store(int thread) {
  race::tma_store_started(&slot_of(thread), 16, 0, __builtin_return_address(0));
}
MP_DEVICE void finish_store() {
  race::tma_stores_read(1);
}
MP_DEVICE void fence_async() {
  race::async_proxy_fenced();
}
struct Count {
  mutable int of_warpgroup[2] = {};
};
/// Starts a wgmma in group 0.  All threads of the warpgroup call this; the last one issues.
[[gnu::noinline]] void start_multiply(int thread, const Count &issued) {
  if (++issued.of_warpgroup[warp_index() / 4] == 128)
    race::wgmma_started(&slot_of(thread), 16, 0, __builtin_return_address(0));
}
MP_DEVICE void finish_multiply() {
  race::wgmma_done(1);
}

template <class Body>
MP_KERNEL(kThreads, 1)
call(MP_PARAM(Body) body) {
  body();
}

template <class Body>
void expect_none(const Body &body, int cluster = 1) {
  in_every_mode([&] {
    const Body fresh = body;
    CHECK(outcome(call<Body>, {cluster, kThreads, 0, cluster}, fresh) == "");
  });
}

/// Checks in every mode that a race is reported, with all of `parts`.
template <class Body>
void expect_race(const Body &body, const std::vector<std::string> &parts = {"races with"},
                 int cluster = 1) {
  if (!kRaceBuild) return;
  in_every_mode([&] {
    const Body fresh = body;
    const std::string diagnostic = outcome(call<Body>, {cluster, kThreads, 0, cluster}, fresh);
    INFO("diagnostic: " << diagnostic);
    CHECK(diagnostic.find("kernel: block ") == 0);
    for (const std::string &part : parts) CHECK(diagnostic.find(part) != std::string::npos);
  });
}

void skip_without_detector() {
  if (!kRaceBuild) skip("only the correct kernels; races are found in the build with SAN=race");
}

}  // namespace

TEST_CASE("race: an arrive releases accesses of its own thread", "[race]") {
  skip_without_detector();
  expect_none([] {  // every lane arrives
    const Shared smem = with_barriers(kWarpSize);
    if (warp_index() == 0) write_mine(), mbarrier_arrive(smem.bar(0));
    if (warp_index() == 1) mbarrier_wait(smem.bar(0), 0), read_of(lane_index());
  });
  expect_none([] {  // one lane arrives for all
    const Shared smem = with_barriers(1);
    if (warp_index() == 0) {
      write_mine();
      warp_sync();
      if (lane_index() == 0) mbarrier_arrive(smem.bar(0));
    }
    if (warp_index() == 1) mbarrier_wait(smem.bar(0), 0), read_of(lane_index());
  });
  expect_race(
      [] {  // the arrive does not release accesses of other lanes
        const Shared smem = with_barriers(1);
        if (warp_index() == 0) {
          write_mine();
          if (lane_index() == 0) mbarrier_arrive(smem.bar(0));
        }
        if (warp_index() == 1) mbarrier_wait(smem.bar(0), 0), read_of(9);
      },
      {"slots + 144 bytes", "write by thread 9 ("});
  expect_race([] {  // arrives before it writes
    const Shared smem = with_barriers(kWarpSize);
    if (warp_index() == 0) mbarrier_arrive(smem.bar(0)), write_mine();
    if (warp_index() == 1) mbarrier_wait(smem.bar(0), 0), read_of(lane_index());
  });
  expect_race([] {  // an arrive acquires nothing
    const Shared smem = with_barriers(2 * kWarpSize);
    if (warp_index() == 0) write_mine(), mbarrier_arrive(smem.bar(0));
    if (warp_index() == 1) mbarrier_arrive(smem.bar(0)), read_of(lane_index());
  });
}

TEST_CASE("race: a wait acquires only for its own thread", "[race]") {
  skip_without_detector();
  const auto wait_in_lane_0 = [](bool then_sync) {
    const Shared smem = with_barriers(1);
    if (thread_index() == 40) write_mine(), mbarrier_arrive(smem.bar(0));
    if (warp_index() == 0) {
      if (lane_index() == 0) mbarrier_wait(smem.bar(0), 0);
      if (then_sync) warp_sync();
      if (lane_index() == 7) read_of(40);
    }
  };
  expect_none([=] { wait_in_lane_0(true); });
  expect_race([=] { wait_in_lane_0(false); }, {"read by thread 7 (", "write by thread 40 ("});
}

TEST_CASE("race: a wait acquires accesses released in its phase and earlier phases", "[race]") {
  skip_without_detector();
  const auto wait_for = [](int num_phases) {
    const Shared smem = with_barriers(1);
    if (thread_index() == 32) {
      slot_of(0) = 1;
      mbarrier_arrive(smem.bar(0));
      mbarrier_wait(smem.bar(1), 0);
      slot_of(1) = 1;
      mbarrier_arrive(smem.bar(0));
    }
    if (thread_index() == 0) {
      mbarrier_wait(smem.bar(0), 0);
      mbarrier_arrive(smem.bar(1));
      if (num_phases == 2) mbarrier_wait(smem.bar(0), 1);
      read_of(0);
      read_of(1);
    }
  };
  expect_none([=] { wait_for(2); });
  expect_race([=] { wait_for(1); }, {"slots + 16 bytes"});
}

TEST_CASE("race: a slot is writable only after its reader has released it", "[race]") {
  skip_without_detector();
  const auto reuse_slot = [](bool release_early) {
    const Shared smem = with_barriers(1);
    if (thread_index() == 0) {
      write_mine();
      mbarrier_arrive(smem.bar(0));
      mbarrier_wait(smem.bar(1), 0);
      write_mine();
    }
    if (thread_index() == 100) {
      mbarrier_wait(smem.bar(0), 0);
      if (release_early) mbarrier_arrive(smem.bar(1));
      read_of(0);
      if (!release_early) mbarrier_arrive(smem.bar(1));
    }
  };
  expect_none([=] { reuse_slot(false); });
  expect_race([=] { reuse_slot(true); });
}

TEST_CASE("race: a use that is not ordered after mbarrier_init is reported", "[race]") {
  skip_without_detector();
  // The initializing thread runs first in the plain mode.
  const auto use_without_sync = [] {
    const Shared smem = shared();
    if (thread_index() == 0) mbarrier_init(smem.bar(0), 1), mbarrier_init_fence();
    if (thread_index() == 32) mbarrier_arrive(smem.bar(0));
  };
  const ModeScope scope(engine::Mode::plain());
  const std::string diagnostic =
      outcome(call<decltype(use_without_sync)>, {1, kThreads}, use_without_sync);
  if (kRaceBuild)
    CHECK(diagnostic.find("has a race in mbarrier bars + 0 bytes: its use races with mbarrier_init "
                          "by thread 0") != std::string::npos);
  else
    CHECK(diagnostic == "");
}

TEST_CASE("race: a named barrier orders the warps that arrive at it", "[race]") {
  skip_without_detector();
  expect_none([] {
    if (warp_index() < 2) {
      write_mine();
      named_barrier_sync(1, 64);
      read_of(thread_index() ^ 33);
    }
  });
  expect_race([] {  // warps 2 and 3 use another barrier
    if (warp_index() >= 4) return;
    write_mine();
    named_barrier_sync(1 + warp_index() / 2, 64);
    read_of(thread_index() ^ 64);
  });
  const auto arrive_and_sync = [](bool arriver_reads) {
    if (warp_index() < 2) {
      if (arriver_reads == (warp_index() == 1)) write_mine();
      if (warp_index() == 0)
        named_barrier_arrive(3, 64);
      else
        named_barrier_sync(3, 64);
      if (arriver_reads == (warp_index() == 0)) read_of(thread_index() ^ 32);
    }
  };
  expect_none([=] { arrive_and_sync(false); });
  expect_race([=] { arrive_and_sync(true); });
}

TEST_CASE("race: a wait for its phase orders a TMA load before later accesses", "[race]") {
  skip_without_detector();
  const auto load = [](bool reader_waits) {
    const Shared smem = with_barriers(1);
    if (thread_index() == 0) {
      mbarrier_arrive_expect(smem.bar(0), 16);
      start_load(5, 0, 0);
    }
    if (thread_index() == 64) {
      if (reader_waits) mbarrier_wait(smem.bar(0), 0);
      read_of(5);
      mbarrier_wait(smem.bar(0), 0);
    }
  };
  expect_none([=] { load(true); });
  expect_race([=] { load(false); }, {"slots + 80 bytes"});
  expect_race(
      [] {  // two loads into the same slot
        const Shared smem = with_barriers(1);
        if (thread_index() != 0) return;
        mbarrier_arrive_expect(smem.bar(0), 32);
        start_load(5, 0, 0);
        start_load(5, 0, 0);
        mbarrier_wait(smem.bar(0), 0);
      },
      {"write by the TMA load on mbarrier bars + 0 bytes"});
  const auto load_into_used_slot = [](bool wait_for_reader) {
    const Shared smem = with_barriers(1);
    if (thread_index() == 64) read_of(5), mbarrier_arrive(smem.bar(1));
    if (thread_index() == 0) {
      if (wait_for_reader) mbarrier_wait(smem.bar(1), 0);
      mbarrier_arrive_expect(smem.bar(0), 16);
      start_load(5, 0, 0);
      mbarrier_wait(smem.bar(0), 0);
    }
  };
  expect_none([=] { load_into_used_slot(true); });
  expect_race([=] { load_into_used_slot(false); }, {"thread 64 ("});
}

TEST_CASE("race: cluster_sync orders reads of another block's shared memory", "[race]") {
  skip_without_detector();
  const auto read_there = [](bool synced) {
    const Shared smem = shared();
    if (cluster_rank() == 1) write_mine();
    synced ? cluster_sync() : block_sync();
    if (cluster_rank() == 0 && thread_index() == 8) {
      float x[4];
      load_cluster(x, in_block(smem_address(&smem.slots[4 * 5]), 1));
      use(static_cast<int>(x[0]));
    }
    cluster_sync();
  };
  expect_none([=] { read_there(true); }, 2);
  expect_race([=] { read_there(false); }, {"thread 5 of block 1", "slots + 80 bytes"}, 2);
}

TEST_CASE("race: a TMA load into another block races with unordered reads there", "[race]") {
  skip_without_detector();
  // Block 1 reads a slot into which block 0 then starts a load.
  const auto load_there = [](bool synced) {
    const Shared smem = with_barriers(1);
    if (cluster_rank() == 1 && thread_index() == 8) read_of(5);
    synced ? cluster_sync() : block_sync();
    if (cluster_rank() == 0 && thread_index() == 0) start_load(5, 0, 1);
    if (cluster_rank() == 1 && thread_index() == 0) {
      mbarrier_arrive_expect(smem.bar(0), 16);
      mbarrier_wait(smem.bar(0), 0);
      read_of(5);
    }
    cluster_sync();
  };
  expect_none([=] { load_there(true); }, 2);
  expect_race([=] { load_there(false); }, {"thread 8 of block 1", "slots + 80 bytes"}, 2);
  const auto arrive_there = [](bool before_read) {
    const Shared smem = with_barriers(1);
    if (cluster_rank() == 1 && thread_index() == 8) {
      if (before_read) mbarrier_arrive_cluster(in_block(smem.bar(1), 0));
      read_of(5);
      if (!before_read) mbarrier_arrive_cluster(in_block(smem.bar(1), 0));
    }
    if (cluster_rank() == 0 && thread_index() == 0) {
      mbarrier_wait(smem.bar(1), 0);
      start_load(5, 0, 1);
    }
    if (cluster_rank() == 1 && thread_index() == 0) {
      mbarrier_arrive_expect(smem.bar(0), 16);
      mbarrier_wait(smem.bar(0), 0);
    }
    cluster_sync();
  };
  expect_none([=] { arrive_there(false); }, 2);
  expect_race([=] { arrive_there(true); }, {"races with"}, 2);
}

TEST_CASE("race: a TMA store reads until its thread has waited", "[race]") {
  skip_without_detector();
  const auto store = [](bool wait, int writer) {
    write_mine();
    fence_async();
    block_sync();
    if (thread_index() == 3) {
      start_store(9);
      if (wait) finish_store();
    }
    if (writer != 3) block_sync();
    if (thread_index() == writer) slot_of(9) = 2;
  };
  expect_none([=] { store(true, 3); });
  expect_none([=] { store(true, 9); });
  expect_race([=] { store(false, 3); }, {"read by a TMA store of thread 3 ("});
  expect_race([=] { store(false, 9); }, {"read by a TMA store of thread 3 ("});
  expect_race([] {  // the wait orders the read for its own thread only
    block_sync();
    if (thread_index() == 3) start_store(9), finish_store();
    if (thread_index() == 9) write_mine();
  });
}

TEST_CASE("race: an asynchronous read of an unfenced write is reported", "[race]") {
  skip_without_detector();
  enum class Fence { none, before_write, by_writer, by_reader, by_other };
  const auto store = [](Fence fence) {
    if (thread_index() == 9) {
      if (fence == Fence::before_write) fence_async();
      write_mine();
      if (fence == Fence::by_writer) fence_async();
    }
    if (fence == Fence::by_other && thread_index() == 10) fence_async();
    block_sync();
    if (fence == Fence::by_reader && thread_index() == 3) fence_async();
    if (thread_index() == 3) start_store(9);
  };
  expect_none([=] { store(Fence::by_writer); });
  expect_none([=] { store(Fence::by_reader); });
  const std::vector<std::string> report = {"lacks an async_proxy_fence on shared slots + 144 bytes",
                                           "write by thread 9 ("};
  expect_race([=] { store(Fence::none); }, report);
  expect_race([=] { store(Fence::before_write); }, report);
  expect_race([=] { store(Fence::by_other); }, report);
}

TEST_CASE("race: wgmma operands must be ordered in every warp of the warpgroup", "[race]") {
  skip_without_detector();
  const auto multiply_loaded = [](const Count &issued, int warp_without_wait) {
    const Shared smem = with_barriers(1);
    if (thread_index() == 200) {
      mbarrier_arrive_expect(smem.bar(0), 16);
      start_load(5, 0, 0);
    }
    if (warp_index() < 4) {
      if (warp_index() != warp_without_wait) mbarrier_wait(smem.bar(0), 0);
      start_multiply(5, issued);
    }
  };
  expect_none([=, issued = Count{}] { multiply_loaded(issued, -1); });
  for (int warp = 0; warp < 4; warp++)
    expect_race([=, issued = Count{}] { multiply_loaded(issued, warp); }, {"read by wgmma"});
  const auto multiply_written = [](const Count &issued, bool fenced) {
    if (thread_index() < 128) {
      write_mine();
      if (fenced || thread_index() != 77) fence_async();
      named_barrier_sync(1, 128);
      start_multiply(77, issued);
    }
  };
  expect_none([=, issued = Count{}] { multiply_written(issued, true); });
  expect_race([=, issued = Count{}] { multiply_written(issued, false); },
              {"lacks an async_proxy_fence", "write by thread 77 ("});
}

TEST_CASE("race: wgmma operands are writable after all warps have waited", "[race]") {
  skip_without_detector();
  // Eight warps read a slot and release it; the producer fills it again.
  const auto multiply_and_release = [](const Count &issued, int arrivals, bool release_early) {
    const Shared smem = with_barriers(1, arrivals);
    start_multiply(5, issued);
    if (!release_early) finish_multiply();
    warp_sync();
    if (lane_index() == 0 && warp_index() < arrivals) mbarrier_arrive(smem.bar(1));
    if (thread_index() == 0) {
      mbarrier_wait(smem.bar(1), 0);
      mbarrier_arrive_expect(smem.bar(0), 16);
      start_load(5, 0, 0);
      mbarrier_wait(smem.bar(0), 0);
    }
  };
  expect_none([=, issued = Count{}] { multiply_and_release(issued, 8, false); });
  expect_race([=, issued = Count{}] { multiply_and_release(issued, 7, false); },
              {"read by wgmma of the warpgroup of thread 128 ("});
  expect_race([=, issued = Count{}] { multiply_and_release(issued, 8, true); }, {"read by wgmma"});
}
