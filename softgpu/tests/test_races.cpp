// Race check: vector clocks, shadow memory, and races of threads on shared memory, with and without
// each instruction that orders memory.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "softgpu/machine/block.h"
#include "softgpu/machine/global_races.h"
#include "softgpu/machine/race_order.h"
#include "softgpu/machine/race_shadow.h"
#include "softgpu/tests/race_kernel.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

TEST_CASE("race: clocks for the next fence are not nested", "[race]") {
  // A lane repeatedly releases to a flag and reads the flag without acquiring it.
  RaceOrder order(1, 0, nullptr);
  for (int i = 0; i < 3; i++) order.acquire_at_fence(0, 0, order.release(0, 1));
  const SharedClock clock = order.release(0, 1);
  REQUIRE(clock->at_fence != nullptr);
  CHECK(clock->at_fence->at_fence == nullptr);
}

TEST_CASE("race: other blocks do not receive the effects of fences", "[race]") {
  RaceOrder order(1, 0, nullptr);
  order.fence(0, 1);
  order.fence_proxy(0, 1);
  order.acquire_at_fence(0, 0, order.release(0, 1));
  const RaceClock exported = order.release(0, 1)->exported_by(0);
  CHECK(exported.fenced == nullptr);
  CHECK(exported.at_fence == nullptr);
  CHECK(exported.proxy_fenced != nullptr);
}

TEST_CASE("race: a wait for a grid includes the grids that it has waited for", "[race]") {
  // Each grid has one cluster.
  for (const bool second_waits : {false, true}) {
    GlobalRaces races;
    for (uint32_t grid = 0; grid < 4; grid++) {
      CHECK(races.add_grid(std::make_shared<Grid>()) == grid);
      const bool waits = grid != 1 || second_waits;
      races.allow_dependents(grid, false);
      if (waits) races.wait_for_previous(grid);
    }
    CHECK(!contains(races.wait_for_previous(0), 0));
    CHECK(contains(races.wait_for_previous(2), 0) == second_waits);
    CHECK(contains(races.wait_for_previous(2), 1));
    CHECK(!contains(races.wait_for_previous(2), 2));
    CHECK(contains(races.wait_for_previous(3), 0) == second_waits);
    CHECK(contains(races.wait_for_previous(3), 1));
    CHECK(contains(races.wait_for_previous(3), 2));
    for (uint32_t grid = 0; grid < 4; grid++) CHECK(races.ended_before(grid) == nullptr);
  }
}

TEST_CASE("race: a grid begins after those that the previous one has waited for", "[race]") {
  GlobalRaces races;
  const auto begin = [&](bool waits) {
    const uint32_t grid = races.add_grid(std::make_shared<Grid>());
    if (waits) races.wait_for_previous(grid);
    races.allow_dependents(grid, waits);
  };
  begin(true);   // 0
  begin(true);   // 1, whose wait is for 0
  begin(false);  // 2, which does not wait for 1
  begin(true);   // 3, whose wait is for 2
  begin(true);   // 4
  CHECK(contains(races.ended_before(2), 0));
  CHECK(!contains(races.ended_before(2), 1));
  CHECK(contains(races.ended_before(3), 0));
  CHECK(!contains(races.ended_before(3), 1));
  CHECK(contains(races.ended_before(4), 0));
  CHECK(!contains(races.ended_before(4), 1));
  CHECK(contains(races.ended_before(4), 2));
  CHECK(!contains(races.ended_before(4), 3));
}

// ---- shadow memory

RaceAccess access_by(uint32_t cluster, bool writes) {
  RaceAccess access;
  access.lanes = 1;
  access.time = 1;
  access.writes = writes;
  access.cluster = cluster;
  return access;
}

TEST_CASE("race: shadow memory does not move while it is searched", "[race]") {
  const auto is_unordered = [](const RaceAccess &) { return false; };
  RaceShadow shadow(64);
  shadow.add(2, 2, access_by(0, true), is_unordered);
  // The search continues in parts of words that have had no accesses.
  const RaceAccess read = access_by(1, false);
  const RaceAccess *found = shadow.find_race(0, 6, read, is_unordered);
  for (uint32_t begin = 8; begin < 64; begin += 4) shadow.find_race(begin, 2, read, is_unordered);
  REQUIRE(found != nullptr);
  CHECK(found == shadow.find_race(0, 6, read, is_unordered));
}

TEST_CASE("race: the time per access does not depend on the number of readers", "[race]") {
  constexpr uint32_t kReaders = 1000, kRounds = 4;
  uint32_t num_comparisons = 0;
  const auto is_unordered = [&](const RaceAccess &) {
    num_comparisons++;
    return false;
  };
  RaceShadow shadow(4);
  shadow.add(0, 4, access_by(0, true), [](const RaceAccess &) { return true; });
  for (uint32_t round = 1; round <= kRounds; round++) {
    for (uint32_t reader = 1; reader <= kReaders; reader++) {
      RaceAccess read = access_by(reader, false);
      read.time = round;
      shadow.find_race(0, 4, read, [&](const RaceAccess &) {
        num_comparisons++;
        return true;
      });
      shadow.add(0, 4, read, is_unordered);
    }
  }
  CHECK(num_comparisons < 8 * kRounds * kReaders);
  // A write is compared with the last read of each.
  uint32_t num_reads = 0;
  shadow.find_race(0, 4, access_by(0, true), [&](const RaceAccess &before) {
    num_reads += !before.writes;
    if (!before.writes) CHECK(before.time == kRounds);
    return true;
  });
  CHECK(num_reads == kReaders);
}

TEST_CASE("race: a cell contains one access of each kind per lane", "[race]") {
  // Lanes release separately, so that the time of the warp advances between their accesses.
  const auto is_unordered = [](const RaceAccess &) { return false; };
  RaceShadow shadow(4);
  const auto read = [&](uint32_t cluster, Lanes lanes, uint32_t time) {
    RaceAccess access = access_by(cluster, false);
    access.lanes = lanes;
    access.time = time;
    shadow.add(0, 4, access, is_unordered);
  };
  for (uint32_t cluster : {1u, 2u}) {
    read(cluster, 0b11, 1);
    for (uint32_t time = 2; time < 100; time++) {
      read(cluster, 0b01, time);
      read(cluster, 0b10, time);
    }
    read(cluster, 0b01, 100);
  }
  std::vector<std::pair<Lanes, uint32_t>> left;
  shadow.find_race(0, 4, access_by(0, true), [&](const RaceAccess &before) {
    left.emplace_back(before.lanes, before.time);
    return true;
  });
  std::ranges::sort(left);
  CHECK(left == std::vector<std::pair<Lanes, uint32_t>>{{1, 100}, {1, 100}, {2, 99}, {2, 99}});
}

// ---- accesses to global memory that are kept

TEST_CASE("race: accesses of the last grid that has ended are kept", "[race]") {
  constexpr uint64_t kAddress = 1 << 20, kDistance = 1 << 16;
  GlobalRaces races;
  const auto is_unordered = [](const RaceAccess &) { return false; };
  RaceAccess access;
  access.lanes = 1;
  access.time = 1;
  access.writes = true;
  const auto has_access = [&](uint64_t address) {
    return races.find_race(address, 4, access, is_unordered) != nullptr;
  };
  const auto write = [&](uint64_t address) { races.add(address, 4, access, is_unordered); };

  // Each grid writes to a page, and all write to the first page.
  for (uint64_t grid = 0; grid < 3; grid++) {
    access.cluster = races.add_grid(std::make_shared<Grid>());
    for (const uint64_t address : {kAddress, kAddress + (1 + grid) * kDistance}) write(address);
  }
  const auto check = [&](bool first, bool second) {
    CHECK(has_access(kAddress));
    CHECK(has_access(kAddress + kDistance) == first);
    CHECK(has_access(kAddress + 2 * kDistance) == second);
    CHECK(has_access(kAddress + 3 * kDistance));
  };
  races.note_ended(0);
  check(true, true);
  races.note_ended(1);
  check(true, true);
  races.note_ended(2);
  check(false, true);
  races.note_ended(3);
  check(false, false);
}

// ---- threads and shared memory

TEST_CASE("race: bar.sync orders the threads of a block", "[race]") {
  check_needed(kWriteOwn, kBarrier, kReadNext);
  check_needed(kReadNext, kBarrier, kWriteOwn);
  check_needed(kWriteOwn, kBarrier, "st.shared.u32 [%next], 7;\n");
  check_needed(kWriteOwn, "barrier.sync 3, 64;\n", kReadNext);
  check_needed(kWriteOwn, "bar.red.or.pred %q, 0, %one;\n", kReadNext);
  CHECK(race(kReadNext + kReadOwn).is_clean());
  CHECK(race(kWriteOwn + kReadOwn + kWriteOwn).is_clean());
}

TEST_CASE("race: the report names both accesses", "[race]") {
  const Outcome outcome = race(kWriteOwn + "setp.eq.u32 %q, %t, 5;\n@%q " + kReadNext);
  REQUIRE(outcome.violations.size() == 1);
  const std::string &message = outcome.violations[0];
  CHECK_CONTAINS(message, "race: reads byte 24 of shared memory, which another writes");
  CHECK_CONTAINS(message, "the other: kernel test, block 0, thread 6, test.ptx:");
  CHECK_CONTAINS(message, "st.shared.u32 [%own], %t");
  CHECK_CONTAINS(message, "kernel test, block 0, thread 5, test.ptx:");
  CHECK_CONTAINS(message, "ld.shared.u32 %v, [%next]");
}

TEST_CASE("race: order is transitive over several barriers", "[race]") {
  // Barrier 1 orders warp 0 before warp 1, barrier 2 orders warp 1 before warp 2.
  const auto body = [](const std::string &first, const std::string &second) {
    return "setp.eq.u32 %q, %w, 0;\n@%q st.shared.u32 [%own], 1;\n@%q " + first +
           "setp.eq.u32 %q, %w, 1;\n@%q bar.sync 1, 64;\n@%q " + second +
           "setp.eq.u32 %q, %w, 2;\n@%q bar.sync 2, 64;\n@%q ld.shared.u32 %v, [%first];\n";
  };
  CHECK(race(body("bar.arrive 1, 64;\n", "bar.arrive 2, 64;\n"), 96).is_clean());
  // An arrival releases but does not acquire: warp 0 reads data that warp 1 wrote before its own
  // arrival.
  CHECK(
      is_race(race("setp.eq.u32 %q, %w, 1;\n@%q st.shared.u32 [%own], 1;\n@%q bar.sync 1, 64;\n"
                   "setp.eq.u32 %q, %w, 0;\n@%q bar.arrive 1, 64;\n@%q ld.shared.u32 %v, "
                   "[%first+128];\n")));
  // An arrival does not release later writes.
  CHECK(
      is_race(race("setp.eq.u32 %q, %w, 0;\n@%q bar.arrive 1, 64;\n@%q st.shared.u32 [%own], 1;\n"
                   "setp.eq.u32 %q, %w, 1;\n@%q bar.sync 1, 64;\n@%q ld.shared.u32 %v, "
                   "[%first];\n")));
}

TEST_CASE("race: barriers with different numbers do not order their threads", "[race]") {
  CHECK(is_race(race(kWriteOwn + "add.u32 %x, %w, 1;\nbar.sync %x, 32;\n" + kReadNext)));
  CHECK(race(kWriteOwn + "mov.u32 %x, 2;\nbar.sync %x, 64;\n" + kReadNext).is_clean());
}

TEST_CASE("race: bar.warp.sync orders only the lanes of its mask", "[race]") {
  const std::string read_next_lane = R"(
    xor.b32 %x, %t, 1;
    mad.lo.u32 %next, %x, 4, %first;
  )" + kReadNext;
  check_needed(kWriteOwn, "bar.warp.sync -1;\n", read_next_lane);
  // Masks of half warps: the other lane is in the same half, or in the other one.
  const std::string halves =
      "setp.lt.u32 %q, %x, 16;\nselp.b32 %x, 0xffff, 0xffff0000, %q;\n"
      "bar.warp.sync %x;\n";
  CHECK(race(kWriteOwn + halves + read_next_lane).is_clean());
  CHECK(is_race(race(kWriteOwn + halves +
                     "xor.b32 %x, %t, 16;\nmad.lo.u32 %next, %x, 4, %first;\n" + kReadNext)));
  CHECK(is_race(race(kWriteOwn + "bar.warp.sync -1;\n" + kReadNext)));  // lane of the other warp
}

TEST_CASE("race: exchanges between lanes do not order memory", "[race]") {
  const std::string read_next_lane =
      "xor.b32 %x, %t, 1;\nmad.lo.u32 %next, %x, 4, %first;\n" + kReadNext;
  for (const char *exchange :
       {"shfl.sync.idx.b32 %x, %t, 0, 31, -1;\n", "vote.sync.ballot.b32 %x, %one, -1;\n",
        "match.any.sync.b32 %x, %t, -1;\n", "redux.sync.add.u32 %x, %t, -1;\n"})
    CHECK(is_race(race(kWriteOwn + exchange + read_next_lane)));
}

TEST_CASE("race: all concurrent readers are tracked", "[race]") {
  // All lanes read word 0; lanes of either warp that did not wait for the others overwrite it.
  const std::string read = "ld.shared.u32 %v, [%first];\n",
                    write = "@%one st.shared.u32 [%first], 1;\n";
  check_needed(read, kBarrier, write);
  check_needed(read + "bar.warp.sync -1;\n", kBarrier, write);
  check_needed(read + kBarrier + read, "bar.warp.sync -1;\n", write, 32);
}

TEST_CASE("race: parts of a word are distinguished", "[race]") {
  const std::string halves = "mad.lo.u32 %own, %t, 2, %first;\ncvt.u16.u32 %h, %t;\n";
  const std::string declare = ".reg .b16 %h;\n" + halves + "st.shared.u16 [%own], %h;\n";
  CHECK(race(declare + "ld.shared.u16 %h, [%own];\n").is_clean());
  check_needed(declare, kBarrier, "ld.shared.u16 %h, [%own+2];\n");
  check_needed(declare, kBarrier, "ld.shared.u32 %v, [%first];\n");
  check_needed(kWriteOwn, kBarrier, "@%one st.shared.u8 [%first+7], 1;\n");
}

TEST_CASE("race: every element of a vector is checked", "[race]") {
  // Thread 7 accesses the last word of the vector that thread 0 accesses.
  const std::string is_last = "setp.eq.u32 %q, %t, 7;\n@%q ",
                    load = "@%one ld.shared.v4.u32 {%v, %x, %w, %b}, [%first+16];\n",
                    store = "@%one st.shared.v4.u32 [%first+16], {%t, %t, %t, %t};\n";
  check_needed(is_last + kWriteOwn, kBarrier, load);
  check_needed(load, kBarrier, is_last + kWriteOwn);
  check_needed(store, kBarrier, is_last + kReadOwn);
}

TEST_CASE("race: lanes of one statement may write the same value", "[race]") {
  CHECK(
      race("mov.u32 %v, 3;\nsetp.eq.u32 %q, %w, 0;\n@%q st.shared.u32 [%first], %v;\n").is_clean());
  CHECK_CONTAINS(only_violation(race("setp.lt.u32 %q, %t, 2;\n@%q st.shared.u32 [%first], %t;\n")),
                 "race: thread 0 concurrently writes a different value to byte 0");
  // Two warps race.
  CHECK(is_race(race("mov.u32 %v, 3;\nst.shared.u32 [%first], %v;\n")));
}

TEST_CASE("race: barrier.cluster orders the blocks of a cluster", "[race]") {
  const std::string read_other =
      "mov.u32 %x, %cluster_ctarank;\nxor.b32 %x, %x, 1;\nmapa.shared::cluster.u32 %x, %own, %x;\n"
      "ld.shared::cluster.u32 %v, [%x];\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n";
  check_needed(kWriteOwn,
               "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n",
               read_other, 64, 2);
  const std::string relaxed = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait;\n";
  CHECK(is_race(race(kWriteOwn + relaxed + read_other, 64, 2)));
  check_needed(kWriteOwn, "fence.acq_rel.cluster;\n", relaxed + read_other, 64, 2);
  CHECK(is_race(race(kWriteOwn + kBarrier + read_other, 64, 2)));  // barrier of the block only
}

TEST_CASE("race: atomics conflict only with other kinds of access", "[race]") {
  const std::string add = "atom.shared.add.u32 %v, [%first], 1;\n";
  CHECK(race(add + "red.shared.max.u32 [%first], 9;\n").is_clean());
  check_needed("@%one st.shared.u32 [%first], 0;\n", kBarrier, add);
  check_needed(add, kBarrier, "ld.shared.u32 %v, [%first];\n");
  CHECK(race(add + "ld.volatile.shared.u32 %v, [%first];\n").is_clean());
  // All atomics are remembered, not only the last one.
  check_needed(add + "bar.warp.sync -1;\n", kBarrier, "@%one st.shared.u32 [%first], 0;\n");
}

/// Warp 0 writes word 64 and then the flag; warp 1 polls the flag and reads the word.
std::string by_flag(const std::string &space, const std::string &write, const std::string &read) {
  const std::string flag = space == "shared" ? "[%first]" : "[%p0]";
  const auto put = [&](std::string text) {
    for (size_t at; (at = text.find("FLAG")) != std::string::npos;) text.replace(at, 4, flag);
    return text;
  };
  return "@%one st.volatile." + space + ".u32 " + flag + ", 0;\nbar.sync 0;\n" + R"(
    setp.eq.u32 %q, %w, 1;
    @%q bra reader;
    @!%one bra done;
    st.shared.u32 [%first+256], 7;
    )" + put(write) +
         R"(bra done;
  reader:
    )" + put(read) +
         R"(setp.eq.u32 %q, %v, 0;
    @%q bra reader;
    AFTER
    ld.shared.u32 %v, [%first+256];
  done:
  )";
}

TEST_CASE("race: flags order memory through fences", "[race]") {
  const auto run = [](const std::string &space, const std::string &write, const std::string &read,
                      const std::string &after) {
    std::string body = by_flag(space, write, read);
    body.replace(body.find("AFTER"), 5, after);
    return race(body);
  };
  for (const std::string space : {"shared", "global"}) {
    const std::string fence = "fence.acq_rel.gpu;\n";
    const std::string set = "st.volatile." + space + ".u32 FLAG, 1;\n",
                      get = "ld.volatile." + space + ".u32 %v, FLAG;\n";
    CHECK(run(space, "membar.gl;\n" + set, get, "membar.gl;\n").is_clean());
    CHECK(run(space, fence + set, get, fence).is_clean());
    CHECK(is_race(run(space, set, get, fence)));
    CHECK(is_race(run(space, fence + set, get, "")));
    const std::string release = "st.release.gpu." + space + ".u32 FLAG, 1;\n",
                      acquire = "ld.acquire.gpu." + space + ".u32 %v, FLAG;\n";
    CHECK(run(space, release, acquire, "").is_clean());
    CHECK(is_race(run(space, set, acquire, "")));
    CHECK(is_race(run(space, release, get, "")));
    // Atomic counters.
    const std::string add = "atom.add." + space + ".u32 %v, FLAG, 1;\n",
                      look = "atom.or." + space + ".b32 %v, FLAG, 0;\n";
    CHECK(run(space, fence + add, look, fence).is_clean());
    CHECK(run(space, "atom.release.gpu." + space + ".add.u32 %v, FLAG, 1;\n",
              "atom.acquire.gpu." + space + ".or.b32 %v, FLAG, 0;\n", "")
              .is_clean());
    CHECK(is_race(run(space, add, look, fence)));
  }
}

TEST_CASE("race: ldmatrix and stmatrix access memory for the lanes that own the elements",
          "[race]") {
  const std::string rows = "mad.lo.u32 %x, %t, 16, %first;\n",
                    load = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%v}, [%x];\n",
                    store = "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%x], {%v};\n";
  // Lane l has word l.
  CHECK(race(kWriteOwn + rows + load, 32).is_clean());
  CHECK(race(rows + store + kReadOwn, 32).is_clean());
  const std::string other = "xor.b32 %w, %t, 3;\nmad.lo.u32 %next, %w, 4, %first;\n";
  check_needed(other + "st.shared.u32 [%next], %t;\n", "bar.warp.sync -1;\n", rows + load, 32);
  check_needed(other + rows + store, "bar.warp.sync -1;\n", kReadNext, 32);
  check_needed(other + rows + load, "bar.warp.sync -1;\n", "st.shared.u32 [%next], %t;\n", 32);
  // Transposed, two lanes hold halves of a word.
  check_needed(kWriteOwn + rows, "bar.warp.sync -1;\n",
               "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%v}, [%x];\n", 32);
}

TEST_CASE("race: each lane of wmma counts as accessing all elements", "[race]") {
  const std::string registers = "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}";
  const std::string declare = ".reg .f32 %f<8>;\nmov.u32 %x, 16;\n",
                    load = "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " + registers +
                           ", [%first], %x;\n",
                    store = "wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%first], " +
                            registers + ", %x;\n";
  check_needed(declare + kWriteOwn, "bar.warp.sync -1;\n", load, 32);
  check_needed(declare + store, "bar.warp.sync -1;\n", kReadOwn, 32);
  check_needed(declare + load, "bar.warp.sync -1;\n", kWriteOwn, 32);
}

}  // namespace

}  // namespace softgpu::test
