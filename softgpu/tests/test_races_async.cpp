// Races with asynchronous operations: cp.async, mbarriers, bulk copies and wgmma.
#include "softgpu/tests/race_kernel.h"
#include "softgpu/tests/wgmma_kernel.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

// ---- cp.async

const std::string kCopy =
                      "mad.lo.u32 %x, %t, 16, %first;\n"
                      "cp.async.cg.shared.global [%x], [%g], 16;\n",
                  kCommit = "cp.async.commit_group;\n",
                  kReadCopy = "mad.lo.u32 %x, %t, 16, %first;\nld.shared.u32 %v, [%x];\n";

std::string wait(int num_pending) {
  return "cp.async.wait_group " + std::to_string(num_pending) + ";\n";
}

TEST_CASE("race: a wait orders cp.async before its thread", "[race]") {
  check_needed(kCopy + kCommit, wait(0), kReadCopy);
  CHECK(race(kCopy + "cp.async.wait_all;\n" + kReadCopy).is_clean());
  CHECK(is_race(race(kCopy + kCommit + wait(1) + kReadCopy)));
  CHECK(is_race(race(kCopy + wait(0) + kReadCopy)));  // no committed group
  // The copy may write from its issue until the wait.
  CHECK(is_race(race(kCopy + "st.shared.u32 [%x], 1;\n" + kCommit + wait(0))));
  CHECK(race("mad.lo.u32 %x, %t, 16, %first;\nst.shared.u32 [%x], 1;\n" + kCopy).is_clean());
}

TEST_CASE("race: two copies to one address require a wait in between", "[race]") {
  check_needed(kCopy + kCommit, wait(0), kCopy + kCommit + wait(0));
  CHECK(is_race(race(kCopy + kCopy + kCommit + wait(0))));
}

TEST_CASE("race: the report names the thread that issued a copy", "[race]") {
  const Outcome outcome = race(
      "setp.eq.u32 %q, %t, 3;\nmad.lo.u32 %x, %t, 16, %first;\n"
      "@%q cp.async.cg.shared.global [%x], [%g], 16;\n" +
      kCommit + "setp.eq.u32 %q, %t, 40;\n@%q ld.shared.u32 %v, [%first+52];\n" + wait(0));
  REQUIRE(is_race(outcome));
  CHECK_CONTAINS(outcome.violations[0],
                 "the other: a copy in flight of kernel test, block 0, thread 3");
  CHECK_CONTAINS(outcome.violations[0], "kernel test, block 0, thread 40");
}

TEST_CASE("race: a wait covers only the older groups", "[race]") {
  const std::string both =
      kCopy + kCommit + "cp.async.cg.shared.global [%x+4096], [%g], 16;\n" + kCommit + wait(1);
  CHECK(race(both + kReadCopy).is_clean());
  CHECK(is_race(race(both + kReadCopy + "ld.shared.u32 %v, [%x+4096];\n")));
}

TEST_CASE("race: copies of other threads require a barrier after their waits", "[race]") {
  const std::string read_next =
      "xor.b32 %x, %t, 33;\nmad.lo.u32 %x, %x, 16, %first;\nld.shared.u32 %v, [%x];\n";
  check_needed(kCopy + kCommit + wait(0), kBarrier, read_next);
  CHECK(is_race(race(kCopy + kCommit + kBarrier + wait(0) + read_next)));
  check_needed(read_next, kBarrier, kCopy);
}

// ---- mbarriers

std::string initialise(int count) {
  return "@%one mbarrier.init.shared::cta.b64 [%b], " + std::to_string(count) + ";\n";
}
const std::string kArrive = "mbarrier.arrive.shared::cta.b64 _, [%b];\n";
std::string wait_for(int parity, const std::string &label, const std::string &order = "") {
  return label + ":\nmbarrier.try_wait.parity" + order + ".shared::cta.b64 %q, [%b], " +
         std::to_string(parity) + ";\n@!%q bra " + label + ";\n";
}

TEST_CASE("race: an mbarrier orders accesses before an arrival and after a wait", "[race]") {
  const std::string begin = initialise(64) + kBarrier;
  check_needed(begin + kWriteOwn + kArrive, wait_for(0, "w"), kReadNext);
  CHECK(is_race(race(begin + kArrive + kWriteOwn + wait_for(0, "w") + kReadNext)));
  CHECK(race(begin + kReadNext + kArrive + wait_for(0, "w") + kWriteOwn).is_clean());
  const std::string relaxed = "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%b];\n";
  CHECK(is_race(race(begin + kWriteOwn + relaxed + wait_for(0, "w") + kReadNext)));
  CHECK(is_race(race(begin + kWriteOwn + kArrive + wait_for(0, "w", ".relaxed.cta") + kReadNext)));
  CHECK(race(begin + kWriteOwn + "fence.acq_rel.cta;\n" + relaxed +
             wait_for(0, "w", ".relaxed.cta") + "fence.acq_rel.cta;\n" + kReadNext)
            .is_clean());
}

/// Reads the word of a lane in the other warp.
const std::string kReadOther =
    "xor.b32 %x, %t, 33;\nmad.lo.u32 %x, %x, 4, %first;\nld.shared.u32 %v, [%x];\n";

TEST_CASE("race: one lane may arrive for its warp after bar.warp.sync", "[race]") {
  const std::string begin = initialise(2) + kBarrier + kReadOther, arrive = "@%lane0 " + kArrive;
  check_needed(begin, "bar.warp.sync -1;\n", arrive + wait_for(0, "w") + kWriteOwn);
  // Only one lane waits.
  const std::string one_waits = "@!%lane0 bra behind;\n" + wait_for(0, "w") + "behind:\n";
  check_needed(begin + "bar.warp.sync -1;\n" + arrive + one_waits, "bar.warp.sync -1;\n",
               kWriteOwn);
}

TEST_CASE("race: a phase orders only accesses released in it", "[race]") {
  // Warp 0 arrives for phase 0, writes, and arrives for phase 1; warp 1 reads after either phase.
  const auto body = [](int parity) {
    return initialise(32) + kBarrier + "setp.eq.u32 %q, %w, 1;\n@%q bra reader;\n" + kArrive +
           wait_for(0, "first") + kWriteOwn + kArrive + "bra done;\nreader:\n" +
           wait_for(parity, "second") + "ld.shared.u32 %v, [%own+-128];\ndone:\n";
  };
  const WithOptions with([](Options &o) { o.quantum = 1000; });
  CHECK(race(initialise(32) + kBarrier + "setp.eq.u32 %q, %w, 1;\n@%q bra reader;\n" + kWriteOwn +
             kArrive + "bra done;\nreader:\n" + wait_for(0, "w") +
             "ld.shared.u32 %v, [%own+-128];\ndone:\n")
            .is_clean());
  CHECK(is_race(race(body(1))));  // a wait for parity 1 passes while phase 0 is incomplete
}

TEST_CASE("race: an mbarrier must be initialized before other threads use it", "[race]") {
  CHECK(race(initialise(64) + kBarrier + kArrive).is_clean());
  CHECK(is_race(race(initialise(64) + "setp.lt.u32 %q, %t, 2;\n@%q " + kArrive)));
}

// ---- bulk copies

const std::string kLoad =
                      "@%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 256;\n"
                      "@%one cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                      "[%first], [%p0], 256, "
                      "[%b];\n",
                  kLoadBegin = initialise(1) + "fence.mbarrier_init.release.cluster;\n" + kBarrier;

TEST_CASE("race: a wait for the phase orders a bulk load before its readers", "[race]") {
  CHECK(race(kLoadBegin + kLoad + wait_for(0, "w") + kReadNext).is_clean());
  CHECK(is_race(race(kLoadBegin + kLoad + kReadOwn)));
  // One warp has waited, the other has not.
  const std::string one_waits =
      "setp.eq.u32 %q, %w, 1;\n@%q bra behind;\n" + wait_for(0, "w") + "behind:\n";
  check_needed(kLoadBegin + kLoad + one_waits, kBarrier, kReadNext);
}

TEST_CASE("race: a bulk load must follow reads of its destination", "[race]") {
  check_needed(kLoadBegin + kReadNext, kBarrier, kLoad + wait_for(0, "w"));
}

TEST_CASE("race: bulk loads to one address in the same phase race", "[race]") {
  CHECK(race(kLoadBegin + kLoad + wait_for(0, "w") + kBarrier + kLoad + wait_for(1, "again"))
            .is_clean());
  const std::string load =
      "@%one cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%first], [%p0], "
      "256, [%b];\n";
  CHECK(
      is_race(race(kLoadBegin + "@%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 512;\n" +
                   load + load + wait_for(0, "w"))));
}

TEST_CASE("race: a bulk load into another block must follow reads there", "[race]") {
  const std::string wait = "barrier.cluster.wait.aligned;\n",
                    sync = "barrier.cluster.arrive.aligned;\n" + wait,
                    relaxed = "barrier.cluster.arrive.relaxed.aligned;\n" + wait;
  // Block 0 loads into block 1.
  const std::string load = R"(
    mov.u32 %w, %cluster_ctarank;
    setp.eq.and.u32 %q, %w, 1, %one;
    @%q mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 256;
    mov.u32 %x, 1;
    mapa.shared::cluster.u32 %own, %first, %x;
    mapa.shared::cluster.u32 %next, %b, %x;
    setp.eq.and.u32 %q, %w, 0, %one;
    @%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
        [%own], [%p0], 256, [%next];
    setp.eq.u32 %q, %w, 0;
    @%q bra done;
  )" + wait_for(0, "w") + "done:\n";
  const std::string begin =
      initialise(1) + "fence.mbarrier_init.release.cluster;\n" + sync + kReadOwn;
  CHECK(race(begin + sync + load, 64, 2).is_clean());
  CHECK(is_race(race(begin + relaxed + load, 64, 2)));
  CHECK(is_race(race(begin + kBarrier + load, 64, 2)));
}

TEST_CASE("race: a bulk store reads until the wait of its thread", "[race]") {
  const std::string begin = kWriteOwn + "fence.proxy.async.shared::cta;\n" + kBarrier +
                            "@%one cp.async.bulk.global.shared::cta.bulk_group [%p0], [%first], "
                            "256;\n@%one cp.async.bulk.commit_group;\n",
                    write = "st.shared.u32 [%own], 1;\n", own_write = "@%one " + write;
  for (const std::string wait :
       {"@%one cp.async.bulk.wait_group.read 0;\n", "@%one cp.async.bulk.wait_group 0;\n"}) {
    CHECK(race(begin + wait + own_write).is_clean());
    CHECK(is_race(race(begin + own_write + wait)));
    check_needed(begin + wait, kBarrier, write);
    CHECK(is_race(race(begin + kBarrier + write + wait)));
  }
  // The source of a store must be written before the store.
  CHECK(is_race(race(kWriteOwn + "fence.proxy.async.shared::cta;\n"
                                 "@%one cp.async.bulk.global.shared::cta.bulk_group [%p0], "
                                 "[%first], 256;\n@%one cp.async.bulk.commit_group;\n"
                                 "@%one cp.async.bulk.wait_group 0;\n")));
}

// ---- wgmma

Outcome multiply(const std::string &between, const std::string &behind,
                 const std::string &before = "") {
  const WithOptions with([](Options &o) { o.checks_races = true; });
  const WgmmaText wgmma;
  const Buffer<float> unused(1);
  return Kernel(wgmma.module(before + "wgmma.fence.sync.aligned;\n" + wgmma.text() +
                             "wgmma.commit_group.sync.aligned;\n" + between +
                             "wgmma.wait_group.sync.aligned 0;\n" + behind))(
      {.threads = {kWarpgroup, 1, 1}}, unused, unused);
}

TEST_CASE("race: wgmma reads its factors until the wait", "[race]") {
  // Thread 77 writes to the rows of A for warp 0, or to B, which follows A.
  for (const std::string offset : {"0", "8192"}) {
    const std::string write =
        "setp.eq.u32 %q, %t, 77;\nmov.u32 %s, smem;\n@%q st.shared.u32 [%s+" + offset + "], 0;\n";
    CHECK(multiply("", "").is_clean());
    CHECK(multiply("", write).is_clean());
    CHECK(is_race(multiply(write, "")));
    CHECK(is_race(multiply("bar.sync 0;\n" + write, "")));
  }
}

TEST_CASE("race: wgmma follows the accesses of all warps of its warpgroup", "[race]") {
  // Thread 77 modifies A; a barrier orders this before all warps.
  const std::string write =
      "setp.eq.u32 %q, %t, 77;\nmov.u32 %s, smem;\n@%q st.shared.u32 [%s], "
      "0;\nfence.proxy.async;\n";
  CHECK(multiply("", "", write + "bar.sync 0;\n").is_clean());
  CHECK(is_race(multiply("", "", write)));
  CHECK(is_race(multiply("", "", write + "bar.warp.sync -1;\n")));
  // The fourth warp, which reads all of B, is not ordered.
  std::string write_b = write;
  write_b.replace(write_b.find("[%s]"), 4, "[%s+8192]");
  CHECK(multiply("", "", write_b + "bar.sync 0;\n").is_clean());
  CHECK(is_race(multiply("", "", write_b + "setp.lt.u32 %q, %t, 96;\n@%q bar.sync 1, 96;\n")));
}

}  // namespace
}  // namespace softgpu::test
