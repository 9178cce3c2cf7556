// Races on global memory, of one grid and of dependent grids.
#include "softgpu/tests/race_kernel.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

/// Runs a body with SOFTGPU_RACECHECK in blocks of 32 threads, which can use:
///
///     %p0          global memory: words 0 to 63 are 0
///     %own, %next  addresses of this thread's word, from word 64 on, and of the same lane's word
///                  of the next block (of two)
///     %c, %one     block, and a predicate of thread 0
///     tile, bar    shared memory: 128 bytes and an initialized mbarrier
///     %v, %x, %q, %g  for any purpose
Outcome run_blocks(const std::string &body, uint32_t num_blocks = 2, uint32_t num_threads = 32) {
  const Shape shape{.blocks = {num_blocks, 1, 1}, .threads = {num_threads, 1, 1}};
  return run_checked(body_text(1, R"(
    .shared .align 128 .b32 tile[32];
    .shared .align 8 .b64 bar;
    .reg .b32 %c, %v, %x;
    .reg .b64 %own, %next, %g;
    .reg .pred %one, %q;
    mov.u32 %c, %ctaid.x;
    setp.eq.u32 %one, %t, 0;
    mad.lo.u32 %x, %c, %ntid.x, %t;
    mad.wide.u32 %own, %x, 4, %p0;
    add.u64 %own, %own, 256;
    xor.b32 %x, %x, 32;
    mad.wide.u32 %next, %x, 4, %p0;
    add.u64 %next, %next, 256;
    @%one mbarrier.init.shared::cta.b64 [bar], 1;
    fence.proxy.async.shared::cta;
    bar.sync 0;
  )" + body + "ret;"),
                     shape);
}

const std::string kWrite = "st.global.u32 [%own], %t;\n", kRead = "ld.global.u32 %v, [%next];\n";

/// Checks that there is a race without some instructions and none with them, in several orders.
void check_needed(const std::string &before, const std::string &needed, const std::string &after,
                  uint32_t num_blocks = 2, uint32_t num_threads = 32) {
  INFO(before << "    >>> " << needed << after);
  for (uint64_t seed = 0; seed < 4; seed++) {
    const WithOptions with([&](Options &o) { o.seed = seed; });
    const Outcome with_it = run_blocks(before + needed + after, num_blocks, num_threads);
    const Outcome without = run_blocks(before + after, num_blocks, num_threads);
    INFO("seed " << seed << ", with: " << with_it << "without: " << without);
    CHECK(with_it.is_clean());
    CHECK(is_race(without));
  }
}

TEST_CASE("race: blocks that access different global memory do not race", "[race]") {
  CHECK(run_blocks(kWrite + "ld.global.u32 %v, [%own];\n" + kWrite).is_clean());
  CHECK(run_blocks(kRead + "ld.global.u32 %v, [%own];\n").is_clean());
}

TEST_CASE("race: the report of a race on global memory names both accesses", "[race]") {
  const Outcome outcome = run_blocks("setp.eq.u32 %q, %c, 0;\n@%q " + kWrite +
                                     "setp.eq.and.u32 %q, %t, 3, !%q;\n@%q " + kRead);
  REQUIRE(outcome.violations.size() == 1);
  const std::string &message = outcome.violations[0];
  CHECK_CONTAINS(message, "race: reads byte 268 of a test buffer, which another writes");
  CHECK_CONTAINS(message, "the other: kernel test, block 0, thread 3, test.ptx:");
  CHECK_CONTAINS(message, "kernel test, block 1, thread 3, test.ptx:");
}

TEST_CASE("race: bar.sync orders global memory within a block", "[race]") {
  check_needed(kWrite, kBarrier, kRead, 1, 64);
  check_needed(kRead, kBarrier, kWrite, 1, 64);
  CHECK(is_race(run_blocks(kWrite + kBarrier + kRead)));  // another block
}

/// Returns statements after which the last block continues, with the number of its predecessors.
std::string arrive_last(const std::string &update) {
  return "@%one " + update + "@%one st.shared.u32 [tile], %v;\nbar.sync 0;\n" +
         "ld.shared.u32 %v, [tile];\nsetp.ne.u32 %q, %v, 4;\n@%q ret;\n";
}

TEST_CASE("race: the last block reads the results of all blocks", "[race]") {
  const std::string read_all =
      "mad.wide.u32 %g, %t, 4, %p0;\nld.global.u32 %v, [%g+256];\nld.global.u32 %v, [%g+768];\n";
  const std::string add = "atom.global.add.u32 %v, [%p0], 1;\n", fence = "membar.gl;\n";
  const std::string write = kWrite + "bar.sync 0;\n";
  check_needed(write, "@%one " + fence, arrive_last(add) + fence + read_all, 5);
  check_needed(write + "@%one " + fence + arrive_last(add), fence, read_all, 5);
  check_needed(kWrite + fence, kBarrier, arrive_last(add) + fence + read_all, 5, 64);
  for (const std::string order : {".acq_rel", ".release"})
    CHECK(run_blocks(write + arrive_last("atom" + order + ".gpu.global.add.u32 %v, [%p0], 1;\n") +
                         (order == ".release" ? fence : "bar.sync 0;\n") + read_all,
                     5)
              .is_clean());
  CHECK(is_race(run_blocks(
      write + arrive_last("atom.acquire.gpu.global.add.u32 %v, [%p0], 1;\n") + read_all, 5)));
}

TEST_CASE("race: the last block may reset the counter", "[race]") {
  const std::string reset = "@%one st.global.u32 [%p0], 0;\n";
  for (uint64_t seed = 0; seed < 4; seed++) {
    const WithOptions with([&](Options &o) { o.seed = seed; });
    CHECK(run_blocks(arrive_last("atom.global.add.u32 %v, [%p0], 1;\n") + reset, 5).is_clean());
    // Every block resets it.
    CHECK(is_race(run_blocks("@%one atom.global.add.u32 %v, [%p0], 1;\n" + reset, 5)));
  }
}

TEST_CASE("race: a flag in global memory orders two blocks", "[race]") {
  const auto run = [](const std::string &set, const std::string &get, const std::string &after) {
    return run_blocks("setp.eq.u32 %q, %c, 1;\n@%q bra reader;\n" + kWrite + "bar.warp.sync -1;\n" +
                      set + "ret;\nreader:\n" + get + "setp.eq.u32 %q, %v, 0;\n@%q bra reader;\n" +
                      after + kRead);
  };
  const std::string fence = "membar.gl;\n", set = "@%one st.volatile.global.u32 [%p0], 1;\n",
                    get = "ld.volatile.global.u32 %v, [%p0];\n";
  CHECK(run(fence + set, get, fence).is_clean());
  CHECK(run("@%one st.release.gpu.global.u32 [%p0], 1;\n", "ld.acquire.gpu.global.u32 %v, [%p0];\n",
            "")
            .is_clean());
  CHECK(run("@%one red.release.gpu.global.add.u32 [%p0], 1;\n",
            "ld.acquire.gpu.global.u32 %v, [%p0];\n", "")
            .is_clean());
  CHECK(is_race(run(set, get, fence)));
  CHECK(is_race(run(fence + set, get, "")));
  CHECK(is_race(
      run("@%one st.global.u32 [%p0], 1;\n", "ld.acquire.gpu.global.u32 %v, [%p0];\n", "")));
}

TEST_CASE("race: order passes from block to block", "[race]") {
  // Block 0 releases to block 1, which releases to block 2.
  const auto run = [](const std::string &first, const std::string &get, const std::string &second) {
    return run_blocks(
        "setp.eq.u32 %q, %c, 2;\n@%q bra last;\nsetp.eq.u32 %q, %c, 1;\n"
        "@%q bra middle;\n@%one st.global.u32 [%p0+128], 7;\n" +
            first + "ret;\nmiddle:\n" + get +
            "setp.eq.u32 %q, %v, 0;\n@%q bra middle;\nbar.warp.sync -1;\n" + second +
            "ret;\n"
            "last:\nld.acquire.gpu.global.u32 %v, [%p0+4];\nsetp.eq.u32 %q, %v, 0;\n"
            "@%q bra last;\nmembar.gl;\nld.global.u32 %v, [%p0+128];\n",
        3);
  };
  const std::string release = "@%one st.release.gpu.global.u32 [%p0], 1;\n",
                    acquire = "ld.acquire.gpu.global.u32 %v, [%p0];\n",
                    relaxed_get = "ld.relaxed.gpu.global.u32 %v, [%p0];\n",
                    release_next = "@%one st.release.gpu.global.u32 [%p0+4], 1;\n",
                    relaxed_next = "@%one st.relaxed.gpu.global.u32 [%p0+4], 1;\n",
                    fence = "membar.gl;\n";
  CHECK(run(release, acquire, release_next).is_clean());
  CHECK(run(release, acquire, fence + relaxed_next).is_clean());
  CHECK(run(release, relaxed_get, fence + release_next).is_clean());
  CHECK(is_race(run(release, acquire, relaxed_next)));
  // A fence in another block does not help.
  CHECK(is_race(run(fence + release, acquire, relaxed_next)));
  CHECK(is_race(run(release, relaxed_get, release_next)));
}

TEST_CASE("race: lanes of one statement may write the same value to global memory", "[race]") {
  const auto run = [](const std::string &statements) {
    return run_blocks(".reg .b16 %h;\nshr.u32 %x, %t, 1;\n" + statements, 1);
  };
  CHECK(run("mov.u32 %v, 7;\nst.global.u32 [%p0], %v;\n").is_clean());
  CHECK(run("st.volatile.global.u32 [%p0], %t;\n").is_clean());
  // Pairs of lanes write the same value.
  const std::string address = "mad.wide.u32 %g, %x, 4, %p0;\n";
  CHECK(run(address + "st.global.u32 [%g], %x;\n").is_clean());
  for (const std::string store :
       {"st.global.u32 [%g+16], %t;\n", "cvta.global.u64 %g, %g;\nst.u32 [%g+16], %t;\n"}) {
    const Outcome outcome = run(address + store);
    REQUIRE(outcome.violations.size() == 1);
    CHECK_CONTAINS(outcome.violations[0],
                   "race: thread 0 concurrently writes a different value to "
                   "byte 16 of a test buffer");
    CHECK_CONTAINS(outcome.violations[0], "kernel test, block 0, thread 1, ");
  }
  // Statements of one or two bytes that overlap.
  CHECK(run("cvt.u16.u32 %h, %x;\nmad.wide.u32 %g, %x, 2, %p0;\nst.global.u16 [%g], %h;\n")
            .is_clean());
  CHECK(
      is_race(run("cvt.u16.u32 %h, %t;\nmad.wide.u32 %g, %x, 2, %p0;\nst.global.u16 [%g], %h;\n")));
}

TEST_CASE("race: atomics on global memory conflict only with weak accesses", "[race]") {
  const std::string add = "red.global.add.u32 [%p0], 1;\n";
  CHECK(run_blocks(add + "atom.global.max.u32 %v, [%p0], 9;\nld.volatile.global.u32 %v, [%p0];\n")
            .is_clean());
  CHECK(is_race(run_blocks(add + "ld.global.u32 %v, [%p0];\n")));
  CHECK(is_race(run_blocks("st.global.u32 [%p0], 1;\n")));
}

TEST_CASE("race: an atomic update is not ordered after polls by other blocks", "[race]") {
  for (uint64_t seed = 0; seed < 8; seed++) {
    const WithOptions with([&](Options &o) { o.seed = seed; });
    const Outcome outcome = run_blocks(
        "setp.eq.u32 %q, %c, 1;\n@%q bra reader;\n@%one atom.global.add.u32 %v, [%p0], 1;\n"
        "@%one st.global.u32 [%p0], 0;\nret;\n"
        "reader:\n@%one ld.volatile.global.u32 %v, [%p0];\n");
    INFO("seed " << seed << ": " << outcome);
    CHECK(is_race(outcome));
  }
}

TEST_CASE("race: a lane's update is not ordered after strong stores of other lanes", "[race]") {
  const std::string update = "@%one atom.global.add.u32 %v, [%p0], 1;\n",
                    store = "setp.eq.u32 %q, %t, 1;\n@%q st.volatile.global.u32 [%p0], 3;\n",
                    reset = "@%one st.global.u32 [%p0], 0;\n";
  CHECK(run_blocks(store + update + reset, 1).is_clean());
  CHECK(is_race(run_blocks(update + store + reset, 1)));
}

// ---- asynchronous operations

const std::string kCopy =
    "@%one cp.async.cg.shared.global [tile], [%p0], 16;\n@%one cp.async.commit_group;\n";

TEST_CASE("race: cp.async reads global memory until its wait", "[race]") {
  const std::string write = "@%one st.global.u32 [%p0+12], 1;\n",
                    wait = "@%one cp.async.wait_group 0;\n";
  CHECK(run_blocks(kCopy + wait + write, 1).is_clean());
  CHECK(is_race(run_blocks(kCopy + write + wait, 1)));
  CHECK(is_race(run_blocks(kCopy + wait + write, 2)));
  CHECK(run_blocks(kCopy + wait + "@%one st.global.u32 [%p0+16], 1;\n", 1).is_clean());
}

TEST_CASE("race: cp.async reports a write to a part of its words", "[race]") {
  const Outcome outcome = run_blocks(
      ".reg .b16 %h;\nmov.u16 %h, 1;\nsetp.eq.and.u32 %q, %c, 0, %one;\n"
      "@%q st.global.u16 [%p0+2], %h;\nsetp.eq.and.u32 %q, %c, 1, %one;\n"
      "@%q cp.async.ca.shared.global [tile], [%p0], 8, 6;\n");
  REQUIRE(outcome.violations.size() == 1);
  CHECK_CONTAINS(outcome.violations[0], "race: ");
  CHECK_CONTAINS(outcome.violations[0], "@%q st.global.u16 [%p0+2], %h");
}

const std::string kLoad =
                      "@%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;\n"
                      "@%one cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                      "[tile], [%p0], 128, [bar];\n",
                  kWaitForLoad =
                      "wait:\nmbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;\n"
                      "@!%q bra wait;\n",
                  kStore =
                      "@%one cp.async.bulk.global.shared::cta.bulk_group [%p0], [tile], 128;\n"
                      "@%one cp.async.bulk.commit_group;\n";
/// Address of this thread's word in the 128 bytes at %p0.
const std::string kAddress = "mad.wide.u32 %g, %t, 4, %p0;\n";
const std::string kWriteSource = "st.global.u32 [%g], 1;\n";

TEST_CASE("race: a bulk load reads global memory until the end of its phase", "[race]") {
  CHECK(run_blocks(kAddress + kLoad + kWaitForLoad + kWriteSource, 1).is_clean());
  CHECK(is_race(run_blocks(kAddress + kLoad + kWriteSource + kWaitForLoad, 1)));
  CHECK(run_blocks(kLoad + kWaitForLoad, 2).is_clean());
}

TEST_CASE("race: a bulk store writes global memory until its complete wait", "[race]") {
  const std::string fill =
      "mov.u32 %x, tile;\nmad.lo.u32 %x, %t, 4, %x;\nst.shared.u32 [%x], 5;\n"
      "fence.proxy.async.shared::cta;\nbar.sync 0;\n";
  const std::string begin = kAddress + fill + kStore, read = "@%one ld.global.u32 %v, [%p0];\n";
  CHECK(run_blocks(begin + "@%one cp.async.bulk.wait_group 0;\n" + read, 1).is_clean());
  CHECK(is_race(run_blocks(begin + "@%one cp.async.bulk.wait_group.read 0;\n" + read, 1)));
  CHECK(run_blocks(
            begin + "@%one cp.async.bulk.wait_group 0;\nbar.sync 0;\nld.global.u32 %v, [%g];\n", 1)
            .is_clean());
  CHECK(is_race(run_blocks(
      begin + "@%one cp.async.bulk.wait_group 0;\n@!%one ld.global.u32 %v, [%g];\n", 1)));
  CHECK(is_race(run_blocks(begin + "@%one cp.async.bulk.wait_group 0;\n", 2)));
}

// ---- proxies

TEST_CASE("race: generic writes to global memory require a proxy fence before TMA", "[race]") {
  const auto report = [](const std::string &between, const std::string &body) {
    const Outcome outcome = run_blocks(kAddress + kWriteSource + between + body, 1);
    return outcome.fault.empty() ? first_violation(outcome) : outcome.fault;
  };
  const std::string load = kLoad + kWaitForLoad,
                    store = "@%one st.shared.u32 [tile], 5;\nfence.proxy.async.shared::cta;\n" +
                            kStore + "@%one cp.async.bulk.wait_group 0;\n";
  for (const std::string fence : {"fence.proxy.async;\n", "fence.proxy.async.global;\n"}) {
    for (const std::string &body : {load, store}) {
      CHECK(report(fence + kBarrier, body) == "");
      CHECK(report(kBarrier + "@%one " + fence, body) == "");
    }
  }
  for (const std::string &between :
       {kBarrier, "fence.proxy.async.shared::cta;\n" + kBarrier, "membar.gl;\n" + kBarrier,
        kBarrier + "@!%one fence.proxy.async.global;\n"}) {
    CHECK_CONTAINS(report(between, load), "a bulk load reads global memory without");
    CHECK_CONTAINS(report(between, store), "a bulk store writes global memory without");
  }
  // A fence before the write.
  CHECK_CONTAINS(report(kBarrier, load), "st.global.u32 [%g], 1");
  CHECK(!run_blocks(kAddress + "fence.proxy.async;\n" + kWriteSource + kBarrier + load, 1)
             .is_clean());
}

TEST_CASE("race: the proxy fence may be in another block", "[race]") {
  // Block 0 writes and sets a flag; block 1 loads by TMA.
  const auto run = [](const std::string &writer, const std::string &reader) {
    return run_blocks(
        "setp.eq.u32 %q, %c, 1;\n@%q bra reader;\n"
        "@%one st.global.u32 [%p0+512], 7;\n" +
        writer +
        "@%one st.release.gpu.global.u32 [%p0+768], 1;\nret;\n"
        "reader:\nld.acquire.gpu.global.u32 %v, [%p0+768];\n"
        "setp.eq.u32 %q, %v, 0;\n@%q bra reader;\n" +
        reader + "add.u64 %p0, %p0, 512;\n" + kLoad + kWaitForLoad);
  };
  CHECK(run("fence.proxy.async;\n", "").is_clean());
  CHECK(run("", "fence.proxy.async.global;\n").is_clean());
  const std::string message = first_violation(run("", "fence.proxy.async.shared::cta;\n"));
  CHECK_CONTAINS(message, "a bulk load reads global memory without fence.proxy.async");
  CHECK_CONTAINS(message, "kernel test, block 0, thread 0");
}

}  // namespace
}  // namespace softgpu::test
