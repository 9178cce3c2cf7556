// mbarriers: phases, counts and transactions, in a block and across a cluster.
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = Buffer<uint32_t>;

/// Thread 0 initializes the mbarrier at %b for `count` arrivals; %one is the predicate of thread 0.
std::string with_mbarrier(const std::string &count, const std::string &body) {
  return body_text(1,
                   ".shared .align 8 .b64 bar;\n.reg .b32 %b, %r, %i, %n;\n.reg .b64 %g, %state;\n"
                   ".reg .pred %one, %q;\nsetp.eq.u32 %one, %t, 0;\nmov.u32 %b, bar;\n"
                   "@%one mbarrier.init.shared::cta.b64 [%b], " +
                       count + ";\nbar.sync 0;\n" + body + "ret;");
}
const std::string kStore = "mad.wide.u32 %g, %t, 4, %p0;\nst.global.u32 [%g], %r;\n";
const std::string kArrive = "mbarrier.arrive.shared::cta.b64 _, [%b];\n";

std::string test_wait(int parity) {
  return "mbarrier.test_wait.parity.shared::cta.b64 %q, [%b], " + std::to_string(parity) +
         ";\nselp.u32 %r, 1, 0, %q;\n";
}
std::string try_wait(int parity) {
  const std::string label = "wait" + std::to_string(parity);
  return label + ":\nmbarrier.try_wait.parity.shared::cta.b64 %q, [%b], " + std::to_string(parity) +
         ";\n@!%q bra " + label + ";\n";
}

Outcome run(const std::string &module, Words &out, uint32_t num_threads = 64) {
  const Shape shape{.threads = {num_threads, 1, 1}};
  return Kernel(module)(shape, out);
}
Outcome run(const std::string &count, const std::string &body, uint32_t num_threads = 64) {
  Words out(64);
  return run(with_mbarrier(count, body), out, num_threads);
}

/// Returns the %r of 64 threads after the body.
std::vector<uint32_t> words_after(const std::string &count, const std::string &body) {
  return words_of(Kernel(with_mbarrier(count, body + kStore)), 64, {.threads = {64, 1, 1}});
}

TEST_CASE("a phase completes after all arrivals", "[mbarrier]") {
  const std::string arrive = "@%one " + kArrive, test = "bar.sync 0;\n" + test_wait(0);
  CHECK(words_after("2", arrive + test)[0] == 0);
  CHECK(words_after("2", arrive + arrive + test) == std::vector<uint32_t>(64, 1));
}

TEST_CASE("waits for an incomplete phase are counted once", "[mbarrier]") {
  const WithOptions with([](Options &o) { o.quantum = 1; });
  Words out(64);
  // The second warp waits for many iterations of the first.
  std::string turns = "setp.lt.u32 %q, %t, 32;\n@!%q bra come;\n";
  for (int i = 0; i < 20; i++) turns += "add.u32 %i, %t, 1;\n";
  const Kernel kernel(
      with_mbarrier("1", turns + "@%one " + kArrive + "come:\n" + try_wait(0) + try_wait(1)));
  CHECK(!kernel({.threads = {64, 1, 1}}, out).is_clean());  // the second phase never completes
  const auto &tally = kernel.program().totals->tally;
  const size_t first = kernel.statement("%q, [%b], 0"), second = kernel.statement("%q, [%b], 1");
  CHECK(tally.accesses[first].incomplete == 1);
  CHECK(tally.executed[first] == 2);
  CHECK(tally.accesses[second].incomplete == 2);
  CHECK(tally.executed[second] == 0);
}

TEST_CASE("try_wait returns false so that the warp can complete the phase itself", "[mbarrier]") {
  const std::string poll = "mbarrier.try_wait.parity.shared::cta.b64 %q, [%b], 0;\n";
  const Kernel kernel(with_mbarrier(
      "1", poll + "selp.u32 %r, 1, 0, %q;\n" + kStore + "@%one " + kArrive + try_wait(0)));
  for (uint64_t seed = 0; seed < 4; seed++) {
    const WithOptions with([&](Options &o) { o.seed = seed; });
    Words out(32, 5);
    CHECK(kernel({}, out).is_clean());
    CHECK(out[0] == 0);
  }
}

TEST_CASE("try_wait may return early with a seed", "[mbarrier]") {
  const Kernel kernel(with_mbarrier(
      "1", "setp.lt.u32 %q, %t, 32;\n@!%q bra come;\n@%one " + kArrive + "ret;\ncome:\n" +
               "mbarrier.try_wait.parity.shared::cta.b64 %q, [%b], 0;\nselp.u32 %r, 1, 0, %q;\n" +
               kStore));
  size_t num_done = 0;
  for (uint64_t seed = 0; seed < 32; seed++) {
    const WithOptions with([&](Options &o) { o.seed = seed; });
    const auto out = words_of(kernel, 64, {.threads = {64, 1, 1}});
    if (seed == 0) CHECK(out[32] == 1);
    num_done += out[32];
  }
  CHECK(num_done < 32);
}

TEST_CASE("a deadlock of mbarrier waits lists all warps", "[mbarrier]") {
  for (uint64_t seed = 0; seed < 4; seed++) {
    const WithOptions with([&](Options &o) { o.seed = seed; });
    const std::string fault = run("1", try_wait(0)).fault;
    CHECK_CONTAINS(fault, "deadlock");
    CHECK_THAT(fault, ContainsSubstring("warp 0 lanes ffffffff at ") &&
                          ContainsSubstring("warp 1 lanes ffffffff at "));
    CHECK_CONTAINS(fault, "try_wait");
  }
}

TEST_CASE("the phase before the first is complete and has parity 1", "[mbarrier]") {
  CHECK(words_after("1", test_wait(1))[7] == 1);
}

TEST_CASE("arrive returns the previous state", "[mbarrier]") {
  const std::string body =
      "@%one mbarrier.arrive.shared::cta.b64 %state, [%b];\n"
      "mbarrier.test_wait.shared::cta.b64 %q, [%b], %state;\nselp.u32 %r, 1, 0, %q;\n";
  CHECK(words_after("2", body)[0] == 0);
  CHECK(words_after("1", body)[0] == 1);
}

TEST_CASE("an arrival may have a count", "[mbarrier]") {
  const std::string arrive = "mov.u32 %n, 3;\n@%one mbarrier.arrive.shared::cta.b64 _, [%b], %n;\n";
  CHECK(words_after("3", arrive + "bar.sync 0;\n" + test_wait(0))[1] == 1);
}

TEST_CASE("arrive_drop reduces the expected arrivals", "[mbarrier]") {
  const std::string body = "@%one mbarrier.arrive_drop.shared::cta.b64 _, [%b];\n@%one " + kArrive +
                           "@%one " + kArrive + "bar.sync 0;\n" + test_wait(1);  // phases 0 and 1
  CHECK(words_after("2", body)[0] == 1);
}

TEST_CASE("a phase waits for its transactions", "[mbarrier]") {
  for (const std::string &expect :
       {std::string("@%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 48;\n"),
        "@%one mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%b], 16;\n@%one " + kArrive}) {
    CHECK(words_after("1", expect + "bar.sync 0;\n" + test_wait(0))[0] == 0);
  }
}

TEST_CASE("misuse of an mbarrier is a fault", "[mbarrier]") {
  CHECK(run("64", kArrive).is_clean());
  CHECK(run("63", kArrive + try_wait(0)).is_clean());
  CHECK_CONTAINS(run("40", "@%one mbarrier.arrive.shared::cta.b64 _, [%b], 41;\n").fault,
                 "41 arrivals at an mbarrier whose phase waits for 40 more");
  CHECK_CONTAINS(run("0", "").fault, "mbarrier of 0 arrivals");
  CHECK_CONTAINS(run("1", "add.u32 %b, %b, 4;\n@%one " + kArrive).fault, "misaligned mbarrier");
  CHECK_CONTAINS(
      run("1", "mov.u32 %n, 2;\nmbarrier.test_wait.parity.shared::cta.b64 %q, [%b], %n;\n").fault,
      "parity 2");
  CHECK_CONTAINS(run("1", "@%one mbarrier.inval.shared::cta.b64 [%b];\n@%one " + kArrive).fault,
                 "not initialized");
  const std::string init = "@%one mbarrier.init.shared::cta.b64 [%b], 1;\n";
  CHECK(run("1", "@%one mbarrier.inval.shared::cta.b64 [%b];\n" + init).is_clean());
  CHECK_CONTAINS(only_violation(run("1", init)), "initializes an mbarrier again");
  CHECK_CONTAINS(run("2", "@%one " + kArrive + try_wait(0)).fault, "deadlock");
  CHECK_CONTAINS(run("1", "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%b], 1048000;\n").fault,
                 "tx-count");
  Words out(1);
  CHECK_CONTAINS(run(body_text(1,
                               ".shared .align 8 .b64 bar;\nmbarrier.arrive.shared::cta.b64 _, "
                               "[bar];\nret;"),
                     out)
                     .fault,
                 "not initialized");
}

/// Two blocks; thread 0 of each arrives at the mbarrier of the other block and waits at its own.
std::string exchange(const std::string &rank) {
  return body_text(1, R"(
    .shared .align 8 .b64 bar;
    .reg .b32 %b, %other, %r, %rank;
    .reg .b64 %g;
    .reg .pred %one, %q;
    setp.eq.u32 %one, %t, 0;
    mov.u32 %b, bar;
    @%one mbarrier.init.shared::cta.b64 [%b], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.relaxed.aligned;
    barrier.cluster.wait.acquire.aligned;
    mov.u32 %r, %cluster_ctarank;
    xor.b32 %rank, %r, 1;
    mapa.shared::cluster.u32 %other, %b, )" +
                          rank + R"(;
    @%one mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%other];
  wait:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q, [%b], 0;
    @!%q bra wait;
    getctarank.shared::cluster.u32 %rank, %other;
    mad.wide.u32 %g, %r, 4, %p0;
    st.global.u32 [%g], %rank;
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    ret;)");
}

TEST_CASE("blocks of a cluster may arrive at remote mbarriers", "[mbarrier]") {
  const Shape shape{.blocks = {2, 1, 1}, .cluster = {2, 1, 1}};
  for (uint64_t seed = 0; seed < 4; seed++) {
    const WithOptions with([&](Options &o) { o.seed = seed; });
    const auto out = words_of(Kernel(exchange("%rank")), 2, shape);
    CHECK(out == std::vector<uint32_t>{1, 0});
  }
  Words out(2);
  CHECK_CONTAINS(Kernel(exchange("2"))(shape, out).fault, "mapa of rank 2");
}

TEST_CASE("a remote mbarrier is visible after a fence or a releasing barrier", "[mbarrier]") {
  const Shape shape{.blocks = {2, 1, 1}, .cluster = {2, 1, 1}};
  const auto run = [&](const std::string &fence, const std::string &arrive) {
    const std::string both =
        "fence.mbarrier_init.release.cluster;\n    barrier.cluster.arrive.relaxed.aligned;";
    std::string text = exchange("%rank");
    text.replace(text.find(both), both.size(), fence + "barrier.cluster.arrive" + arrive);
    Words out(2);
    return Kernel(text)(shape, out);
  };
  const std::string relaxed = ".relaxed.aligned;", releasing = ".aligned;";
  CHECK(run("", releasing).is_clean());
  CHECK(run("fence.proxy.async;\n", relaxed).is_clean());
  CHECK(run("fence.acq_rel.cluster;\n", relaxed).is_clean());
  for (const char *fence : {"", "@!%one fence.mbarrier_init.release.cluster;\n"}) {
    CHECK_CONTAINS(first_violation(run(fence, relaxed)),
                   "whose thread 0 has initialized it without a subsequent fence");
  }
}

TEST_CASE("shared::cta addresses the own block", "[mbarrier]") {
  const Shape shape{.blocks = {2, 1, 1}, .cluster = {2, 1, 1}};
  std::string text = exchange("%rank");
  const std::string remote = "mbarrier.arrive.release.cluster.shared::cluster.b64";
  text.replace(text.find(remote), remote.size(), "mbarrier.arrive.shared::cta.b64");
  Words out(2);
  CHECK_CONTAINS(Kernel(text)(shape, out).fault, "not in its own block");
}

TEST_CASE("a generic address keeps its window through mapa", "[mbarrier]") {
  const Kernel kernel(body_text(1, R"(
    .shared .align 8 .b32 word;
    .reg .b64 %m;
    mov.u64 %a, word;
    cvta.shared.u64 %a, %a;
    mov.u32 %r, 0;
    mapa.u64 %m, %a, %r;
    xor.b64 %m, %m, %a;
    st.global.u64 [%p0], %m;
    ret;)"));
  Words out(2, 1);
  CHECK(kernel(Shape{}, out).is_clean());
  CHECK(out[0] == 0);
  CHECK(out[1] == 0);
}

}  // namespace
}  // namespace softgpu::test
