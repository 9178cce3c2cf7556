// bar, barrier, barrier.cluster and bar.warp.sync.
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

using Words = Buffer<uint32_t>;

/// Returns a kernel with registers %r, %i, %j, %w (warp), predicates %q, %s, and 1 KiB of shared
/// memory at `smem`.  [%o] is the word of the thread, [%n] the word of the thread 32 above it.
std::string with_smem(const std::string &body) {
  return R"(
    .reg .pred %q, %s;
    .reg .b32 %r, %i, %j, %w, %o, %n;
    .reg .b64 %a;
    .shared .align 16 .b8 smem[1024];
    shr.u32 %w, %t, 5;
    mov.u32 %o, smem;
    mad.lo.u32 %n, %t, 4, %o;
    mov.u32 %o, %n;
    add.u32 %n, %n, 128;
    mov.u32 %r, 0;
  )" + body;
}
constexpr char kStore[] = R"(
  store:
    mad.wide.u32 %a, %t, 4, %p0;
    st.global.u32 [%a], %r;
    ret;
)";

Kernel kernel_of(const std::string &body) {
  return Kernel(body_text(1, with_smem(body + kStore)));
}

Shape threads(uint32_t n) {
  const Shape shape{.threads = {n, 1, 1}};
  return shape;
}

TEST_CASE("a barrier of some warps does not wait for other warps", "[barrier]") {
  // Warp 0 polls until warps 1 and 2 have passed their barrier.
  const Kernel kernel = kernel_of(R"(
    .shared .align 4 .b32 flag;
    setp.eq.u32 %q, %w, 0;
    @%q st.shared.u32 [flag], %r;
    bar.sync 0;
    @%q bra spin;
    bar.sync 3, 64;
    mov.u32 %r, 5;
    st.shared.u32 [flag], %r;
    bra.uni store;
  spin:
    ld.volatile.shared.u32 %r, [flag];
    setp.eq.u32 %s, %r, 0;
    @%s bra spin;
  )");
  const auto out = words_of(kernel, 96, threads(96));
  for (uint32_t i = 0; i < 96; i++) CHECK(out[i] == 5);
}

TEST_CASE("bar.arrive does not wait", "[barrier]") {
  const Kernel kernel = kernel_of(R"(
    setp.eq.u32 %q, %w, 0;
    @%q bra consume;
    add.u32 %r, %t, 500;
    st.shared.u32 [%o], %r;
    bar.arrive 1, 64;
    bra.uni store;
  consume:
    bar.sync 1, 64;
    ld.shared.u32 %r, [%n];
  )");
  const auto out = words_of(kernel, 64, threads(64));
  for (uint32_t i = 0; i < 64; i++) CHECK(out[i] == 500 + i + (i < 32 ? 32 : 0));
}

TEST_CASE("bar.red counts and combines predicates", "[barrier]") {
  const Kernel kernel = kernel_of(R"(
    setp.lt.u32 %q, %t, 40;
    bar.red.popc.u32 %i, 0, %q;
    bar.red.popc.u32 %j, 0, 64, !%q;
    shl.b32 %j, %j, 8;
    or.b32 %r, %i, %j;
    bar.red.and.pred %s, 0, %q;
    @%s or.b32 %r, %r, 0x10000;
    bar.red.or.pred %s, 0, %q;
    @%s or.b32 %r, %r, 0x20000;
    setp.lt.u32 %q, %t, 64;
    bar.red.and.pred %s, 0, %q;
    @%s or.b32 %r, %r, 0x40000;
    bar.red.or.pred %s, 0, !%q;
    @%s or.b32 %r, %r, 0x80000;
  )");
  const auto out = words_of(kernel, 64, threads(64));
  for (uint32_t i = 0; i < 64; i++) CHECK(out[i] == (40 | 24 << 8 | 0x60000));
}

TEST_CASE("a partial last warp counts as a full warp at a barrier", "[barrier]") {
  const Kernel kernel = kernel_of("bar.sync 0;\nbar.sync 2, 64;\nmov.u32 %r, 3;\n");
  const auto out = words_of(kernel, 40, threads(40));
  CHECK(out[39] == 3);
}

TEST_CASE("a barrier does not wait for exited warps", "[barrier]") {
  const Kernel kernel = kernel_of(R"(
    setp.eq.u32 %q, %w, 2;
    @%q bra late;
    setp.eq.u32 %q, %w, 1;
    @%q exit;
    bar.sync 0;
    mov.u32 %r, 9;
    bra.uni store;
  late:                       // leaves when the others have waited for long
    add.u32 %i, %i, 1;
    mov.u32 %i, 0;
  more:
    add.u32 %i, %i, 1;
    setp.lt.u32 %q, %i, 1000;
    @%q bra more;
    exit;
  )");
  const auto out = words_of(kernel, 96, threads(96));
  CHECK(out[0] == 9);
  CHECK(out[32] == kNotStored);
}

TEST_CASE("lanes may arrive at barrier.sync separately", "[barrier]") {
  // barrier.sync without .aligned: the halves of a warp may arrive at different instructions.
  const Kernel kernel = kernel_of(R"(
    setp.lt.u32 %q, %t, 16;
    @%q bra low;
    barrier.sync 1;
    mov.u32 %r, 2;
    bra.uni store;
  low:
    barrier.sync 1;
    mov.u32 %r, 1;
  )");
  const auto out = words_of(kernel, 64, threads(64));
  for (uint32_t i = 0; i < 64; i++) CHECK(out[i] == (i < 16 ? 1 : 2));
}

TEST_CASE("a barrier does not wait for exited lanes of a warp", "[barrier]") {
  const Kernel kernel = kernel_of(R"(
    setp.lt.u32 %q, %t, 16;
    @!%q bra leave;
    barrier.sync 1;
    mov.u32 %r, 1;
    bra.uni store;
  leave:
    exit;
  )");
  const auto out = words_of(kernel, 32, threads(32));
  for (uint32_t i = 0; i < 32; i++) CHECK(out[i] == (i < 16 ? 1 : kNotStored));
}

TEST_CASE("invalid numbers at a barrier are faults", "[barrier]") {
  Words out(64);
  const auto fault_of = [&](const std::string &body) {
    return kernel_of(body)(threads(64), out).fault;
  };
  CHECK_CONTAINS(fault_of("mov.u32 %i, 16;\nbar.sync %i;\n"), "barrier 16 does not exist");
  CHECK_CONTAINS(fault_of("bar.sync 1, 40;\n"), "40 threads");
  CHECK_CONTAINS(fault_of("and.b32 %i, %t, 1;\nbar.sync %i;\n"), "differ in the barrier");
  CHECK_CONTAINS(
      fault_of("setp.eq.u32 %q, %w, 0;\n@%q bar.arrive 1, 128;\n@!%q bar.arrive 1, 96;\n"),
      "a barrier of 96 threads, which another warp uses with 128");
}

TEST_CASE("a barrier without all arrivals is a deadlock that lists the waiting warps",
          "[barrier]") {
  const Kernel kernel = kernel_of(R"(
    setp.eq.u32 %q, %w, 1;
    @%q bra other;
    bar.sync 1, 64;
    bra.uni store;
  other:
    bar.sync 2, 64;
  )");
  Words out(64);
  const std::string fault = kernel(threads(64), out).fault;
  CHECK_CONTAINS(fault, "deadlock in kernel test");
  CHECK_CONTAINS(fault, "warp 0 lanes ffffffff waits at test.ptx:");
  CHECK_CONTAINS(fault, "bar.sync 1, 64");
  CHECK_CONTAINS(fault, "bar.sync 2, 64");
}

TEST_CASE("an aligned barrier in a divergent branch is a deadlock", "[barrier]") {
  const Kernel kernel = kernel_of(R"(
    setp.lt.u32 %q, %t, 16;
    @%q bra low;
    bar.sync 1;
    bra.uni store;
  low:
    bar.sync 2;
  )");
  Words out(32);
  CHECK_CONTAINS(kernel(threads(32), out).fault, "deadlock");
}

TEST_CASE("bar.warp.sync reconverges the lanes of a warp", "[barrier]") {
  const Kernel kernel = kernel_of(R"(
    setp.lt.u32 %q, %t, 16;
    st.shared.u32 [%o], %r;
    @%q bra wait;
    mov.u32 %i, 77;
    st.shared.u32 [%o], %i;
  wait:
    bar.warp.sync 0xffffffff;
    xor.b32 %j, %t, 16;
    sub.u32 %j, %j, %t;
    shl.b32 %j, %j, 2;
    add.u32 %o, %o, %j;
    ld.shared.u32 %r, [%o];
  )");
  const WithOptions with([](Options &o) {
    o.seed = 3;
    o.diverges = true;
  });
  const auto out = words_of(kernel, 32, threads(32));
  for (uint32_t i = 0; i < 32; i++) CHECK(out[i] == (i < 16 ? 77 : 0));
}

// ---- pausing warps

TEST_CASE("SOFTGPU_LAG delays a warp beyond a long computation of another", "[barrier]") {
  const Kernel kernel = kernel_of(R"(
    st.shared.u32 [%o], %r;
    bar.sync 0;
    setp.ne.u32 %q, %w, 0;
    @%q bra read;
    mov.u32 %i, 0;
  loop:
    add.u32 %i, %i, 1;
    setp.lt.u32 %s, %i, 2000;
    @%s bra loop;
    mov.u32 %j, 7;
    st.shared.u32 [%n], %j;
    bra store;
  read:
    ld.shared.u32 %r, [%o];
  )");
  const auto num_late = [&](bool lags) {
    int count = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
      const WithOptions with([&](Options &o) {
        o.seed = seed;
        o.lags = lags;
      });
      const auto out = words_of(kernel, 64, threads(64));
      count += out[32] == 7;
    }
    return count;
  };
  CHECK(num_late(false) == 0);
  CHECK(num_late(true) > 0);
}

// ---- clusters

/// Four blocks of two warps, two blocks per cluster.
Shape clusters() {
  const Shape shape{.blocks = {4, 1, 1}, .threads = {64, 1, 1}, .cluster = {2, 1, 1}};
  return shape;
}

TEST_CASE("barrier.cluster synchronizes the blocks of a cluster", "[barrier]") {
  // Each thread reads the shared memory of the other block.
  const Kernel kernel = kernel_of(R"(
    mov.u32 %j, %ctaid.x;
    mul.lo.u32 %i, %j, 100;
    add.u32 %i, %i, %t;
    st.shared.u32 [%o], %i;
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    mov.u32 %i, %cluster_ctarank;
    xor.b32 %i, %i, 1;
    mapa.shared::cluster.u32 %n, %o, %i;
    ld.shared::cluster.u32 %r, [%n];
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mad.lo.u32 %t, %j, 64, %t;
  )");
  for (uint64_t seed = 0; seed < 4; seed++) {
    const WithOptions with([&](Options &o) { o.seed = seed; });
    const auto out = words_of(kernel, 256, clusters());
    for (uint32_t i = 0; i < 256; i++) CHECK(out[i] == (i / 64 ^ 1) * 100 + i % 64);
  }
}

TEST_CASE("exited warps count as arrived at barrier.cluster", "[barrier]") {
  const Kernel kernel = kernel_of(R"(
    mov.u32 %i, %cluster_ctarank;
    setp.eq.u32 %q, %i, 1;
    @%q exit;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mov.u32 %r, 4;
  )");
  const auto out = words_of(kernel, 64, clusters());
  CHECK(out[63] == 4);
}

TEST_CASE("misuse of barrier.cluster is reported", "[barrier]") {
  Words out(64);
  const auto run = [&](const std::string &body) { return kernel_of(body)(clusters(), out); };
  CHECK_CONTAINS(run("barrier.cluster.arrive;\nbarrier.cluster.arrive;\n").fault,
                 "again without a wait");
  CHECK_CONTAINS(run("barrier.cluster.wait;\n").fault, "without an arrival");
  const Outcome outcome = run("barrier.cluster.arrive;\n");
  CHECK(outcome.fault.empty());
  REQUIRE(outcome.violations.size() == 8);  // one per warp
  CHECK_CONTAINS(outcome.violations[0], "between barrier.cluster.arrive and");
}

// ---- setmaxnreg

using Catch::Matchers::ContainsSubstring;

/// Runs eight warps; the first four and the last four have different bodies.
Outcome run_registers(const std::string &first, const std::string &second) {
  const Kernel kernel(module_text("",
                                  ".reg .b32 %t;\n.reg .pred %q;\nmov.u32 %t, %tid.x;\n"
                                  "setp.lt.u32 %q, %t, 128;\n@!%q bra second;\n" +
                                      first + "ret;\nsecond:\n" + second + "ret;"));
  const Shape shape{.threads = {256, 1, 1}};
  return kernel(shape);
}

TEST_CASE("setmaxnreg.inc waits for released registers", "[set_max_registers]") {
  // 1024 threads have 64 registers each.
  const std::string inc = "setmaxnreg.inc.sync.aligned.u32 ",
                    dec = "setmaxnreg.dec.sync.aligned.u32 ";
  CHECK(run_registers(inc + "88;\n", dec + "40;\n").is_clean());
  CHECK_CONTAINS(run_registers(inc + "96;\n", dec + "40;\n").fault, "deadlock");
  CHECK_CONTAINS(run_registers(inc + "88;\n", "").fault, "deadlock");
  CHECK_CONTAINS(run_registers(inc + "40;\n", "").fault, "setmaxnreg.inc to 40 from 64");
  CHECK_CONTAINS(run_registers(dec + "72;\n", "").fault, "setmaxnreg.dec to 72 from 64");
  CHECK_THROWS_AS(run_registers(dec + "44;\n", ""), ptx::Error);
}

}  // namespace

}  // namespace softgpu::test
