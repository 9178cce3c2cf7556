// Grids: special registers, blocks that wait for each other, faults and deadlocks with several
// workers, execution order.
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

using Words = Buffer<uint32_t>;

/// Returns a kernel that stores a special register for each thread of a 3D grid.
Kernel kernel_of_special(const std::string &name) {
  std::string text = "mov.u32 %i, 0;\n";  // the index of the thread in the grid
  for (const std::string axis : {"ctaid.z", "ctaid.y", "ctaid.x", "tid.z", "tid.y", "tid.x"})
    text += "mov.u32 %n, %n" + axis + ";\nmov.u32 %r, %" + axis + ";\nmad.lo.u32 %i, %i, %n, %r;\n";
  return Kernel(body_text(1, text + "mad.wide.u32 %a, %i, 4, %p0;\nmov.u32 %r, " + name +
                                 ";\nst.global.u32 [%a], %r;\n"));
}

TEST_CASE("grids: special registers match the thread and block index", "[grid]") {
  const Shape shape{
      .blocks = {4, 6, 3}, .threads = {5, 3, 4}, .cluster = {2, 3, 1}, .dynamic_smem = 2048};
  constexpr uint32_t kThreads = 60, kBlocks = 72;
  // Expected value of a special register, for a thread index and a block index.
  struct Special {
    const char *name;
    uint32_t (*value)(uint32_t thread, const Dim3 &block);
  };
  const Special specials[] = {
      {"%tid.x", [](uint32_t t, const Dim3 &) { return t % 5; }},
      {"%tid.y", [](uint32_t t, const Dim3 &) { return t / 5 % 3; }},
      {"%tid.z", [](uint32_t t, const Dim3 &) { return t / 15; }},
      {"%ntid.z", [](uint32_t, const Dim3 &) { return 4u; }},
      {"%ctaid.y", [](uint32_t, const Dim3 &b) { return b[1]; }},
      {"%nctaid.y", [](uint32_t, const Dim3 &) { return 6u; }},
      {"%laneid", [](uint32_t t, const Dim3 &) { return t % 32; }},
      {"%warpid", [](uint32_t t, const Dim3 &) { return t / 32; }},
      {"%lanemask_lt", [](uint32_t t, const Dim3 &) { return (1u << t % 32) - 1; }},
      {"%lanemask_ge", [](uint32_t t, const Dim3 &) { return ~0u << t % 32; }},
      {"%lanemask_gt",
       [](uint32_t t, const Dim3 &) { return t % 32 == 31 ? 0 : ~0u << (t % 32 + 1); }},
      {"%lanemask_le", [](uint32_t t, const Dim3 &) { return ~0u >> (31 - t % 32); }},
      {"%cluster_ctaid.x", [](uint32_t, const Dim3 &b) { return b[0] % 2; }},
      {"%cluster_ctaid.y", [](uint32_t, const Dim3 &b) { return b[1] % 3; }},
      {"%cluster_nctaid.y", [](uint32_t, const Dim3 &) { return 3u; }},
      {"%cluster_ctarank", [](uint32_t, const Dim3 &b) { return b[0] % 2 + b[1] % 3 * 2; }},
      {"%cluster_nctarank", [](uint32_t, const Dim3 &) { return 6u; }},
      {"%clusterid.y", [](uint32_t, const Dim3 &b) { return b[1] / 3; }},
      {"%nclusterid.x", [](uint32_t, const Dim3 &) { return 2u; }},
      {"%dynamic_smem_size", [](uint32_t, const Dim3 &) { return 2048u; }},
  };
  for (const Special &special : specials) {
    INFO(special.name);
    Words out(kBlocks * kThreads, 12345);
    REQUIRE(kernel_of_special(special.name)(shape, out).is_clean());
    bool all_equal = true;
    for (uint32_t i = 0; i < out.size(); i++) {
      const uint32_t block = i / kThreads;
      const Dim3 id{block % 4, block / 4 % 6, block / 24};
      all_equal &= out[i] == special.value(i % kThreads, id);
    }
    CHECK(all_equal);
  }
}

TEST_CASE("a grid that is not a multiple of the cluster is a fault", "[grid]") {
  const Shape shape{.blocks = {3, 1, 1}, .cluster = {2, 1, 1}};
  Words out(96);
  CHECK_CONTAINS(kernel_of_special("%tid.x")(shape, out).fault,
                 "not a multiple of the cluster size");
}

/// Each block adds 1 to p0[0], polls until all blocks have done so, and stores the sum to
/// p1[block].
constexpr char kMeeting[] = R"(
  mov.u32 %n, %nctaid.x;
  mov.u32 %i, %ctaid.x;
  setp.ne.u32 %q, %t, 0;
  @%q bra wait;
  atom.global.add.u32 %r, [%p0], 1;
spin:
  ld.volatile.global.u32 %r, [%p0];
  setp.ne.u32 %q, %r, %n;
  @%q bra spin;
  mad.wide.u32 %a, %i, 4, %p1;
  st.global.u32 [%a], %r;
wait:
  bar.sync 0;
)";

TEST_CASE("all blocks of a grid that fits may wait for each other", "[grid]") {
  const int num_threads = GENERATE(1, 2);
  const uint64_t seed = GENERATE(0, 1);
  const WithOptions with([&](Options &o) {
    o.num_threads = num_threads;
    o.seed = seed;
  });
  const Kernel kernel(body_text(2, kMeeting));
  const Shape shape{.blocks = {40, 1, 1}, .threads = {64, 1, 1}};
  Words sum(1), out(40);
  CHECK(kernel(shape, sum, out).is_clean());
  for (uint32_t i = 0; i < 40; i++) CHECK(out[i] == 40);
}

/// Blocks that wait for each other on one multiprocessor.
struct Meeting {
  int arch;
  uint32_t num_threads, dynamic_smem;
  const char *directive;  ///< directive of the kernel
  uint32_t room;          ///< blocks that fit at a time

  Outcome run(uint32_t num_blocks) const {
    std::string text = body_text(2, kMeeting);
    text.insert(text.find('{'), directive);
    Words sum(1), out(num_blocks);
    return Kernel(text)({.blocks = {num_blocks, 1, 1},
                         .threads = {num_threads, 1, 1},
                         .dynamic_smem = dynamic_smem},
                        sum, out);
  }
};

TEST_CASE("blocks that do not fit on the device do not run concurrently", "[grid]") {
  const Meeting meeting =
      GENERATE(Meeting{75, 1024, 0, "", 1}, Meeting{75, 32, 0, "", 16}, Meeting{90, 1024, 0, "", 2},
               Meeting{90, 32, 0, "", 32}, Meeting{90, 32, 100 << 10, "", 2},
               Meeting{80, 32, 100 << 10, "", 1}, Meeting{90, 512, 0, ".maxnreg 128\n", 1},
               Meeting{90, 512, 0, ".maxntid 512\n", 4},
               Meeting{90, 256, 0, ".maxntid 256\n.minnctapersm 3\n", 3});
  const int num_threads = GENERATE(1, 3);
  const uint64_t seed = GENERATE(0, 1);
  const WithOptions with([&](Options &o) {
    o.arch = meeting.arch;
    o.num_sms = 1;
    o.num_threads = num_threads;
    o.seed = seed;
    o.quantum = 20;
    o.max_instructions = 1'000'000;
  });
  INFO(meeting.arch << ", " << meeting.num_threads << " threads, " << meeting.directive);
  CHECK(meeting.run(meeting.room).is_clean());
  CHECK_CONTAINS(meeting.run(meeting.room + 1).fault, "SOFTGPU_LIMIT exceeded");
}

TEST_CASE("a loop that polls for a copy ends", "[grid]") {
  const WithOptions with([](Options &o) { o.completion = Completion::kLate; });
  const Kernel kernel(body_text(2, R"(
    .shared .align 16 .b8 to[16];
    .shared .align 8 .b64 barrier;
    setp.ne.u32 %q, %t, 0;
    @%q exit;
    mbarrier.init.shared::cta.b64 [barrier], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [barrier], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [to], [%p1], 16, [barrier];
  again:
    mbarrier.test_wait.parity.shared::cta.b64 %q, [barrier], 0;
    @!%q bra again;
    ld.shared.u32 %r, [to];
    st.global.u32 [%p0], %r;
  )"));
  Words out(1);
  Buffer<uint64_t> in(2, 77);
  CHECK(kernel(Shape{}, out, in).is_clean());
  CHECK(out[0] == 77);
}

TEST_CASE("a fault in one block stops polling blocks", "[grid]") {
  const WithOptions with([](Options &o) { o.num_threads = 2; });
  const Kernel kernel(body_text(2, R"(
    mov.u32 %i, %ctaid.x;
    setp.eq.u32 %q, %i, 1;
    @%q trap;
  forever:
    bra.uni forever;
  )"));
  const Shape shape{.blocks = {2, 1, 1}};
  Words a(1), b(1);
  CHECK_CONTAINS(kernel(shape, a, b).fault, "trap");
}

TEST_CASE("several workers detect a deadlock", "[grid]") {
  const WithOptions with([](Options &o) { o.num_threads = 2; });
  // Block 0 runs for long before it reaches the barrier, at which its second warp never arrives.
  const Kernel kernel(body_text(2, R"(
    mov.u32 %n, %ctaid.x;
    setp.ne.u32 %q, %n, 0;
    mov.u32 %i, 0;
    @%q bra meet;
  more:
    add.u32 %i, %i, 1;
    setp.lt.u32 %q, %i, 100000;
    @%q bra more;
  meet:
    bar.sync 5, 64;
  )"));
  const Shape shape{.blocks = {6, 1, 1}};
  Words a(1), b(1);
  const std::string fault = kernel(shape, a, b).fault;
  CHECK_CONTAINS(fault, "deadlock");
  CHECK_CONTAINS(fault, "block (0, 0, 0) warp 0");
  CHECK_CONTAINS(fault, "block (5, 0, 0) warp 0");
}

TEST_CASE("a deadlock message lists at most 60 warps", "[grid]") {
  const Kernel kernel(body_text(1, "bar.sync 5, 1024;\n"));
  const Shape shape{.blocks = {100, 1, 1}};
  Words a(1);
  CHECK_CONTAINS(kernel(shape, a).fault, "and 40 more");
}

/// Returns the order of blocks: each takes the next number from p0[0] and stores it to p1[block].
std::vector<uint32_t> order_of_blocks(uint64_t seed, uint64_t id) {
  const WithOptions with([&](Options &o) { o.seed = seed; });
  const Kernel kernel(body_text(2, R"(
    setp.ne.u32 %q, %t, 0;
    @%q exit;
    atom.global.add.u32 %r, [%p0], 1;
    mov.u32 %i, %ctaid.x;
    mad.wide.u32 %a, %i, 4, %p1;
    st.global.u32 [%a], %r;
  )"));
  const Shape shape{.blocks = {50, 1, 1}, .id = id};
  Words next(1), out(50);
  CHECK(kernel(shape, next, out).is_clean());
  return out.values();
}

TEST_CASE("a seed determines the order of blocks", "[grid]") {
  CHECK(order_of_blocks(1, 7) == order_of_blocks(1, 7));
  CHECK(order_of_blocks(1, 7) != order_of_blocks(2, 7));
  CHECK(order_of_blocks(1, 7) != order_of_blocks(1, 8));
}

TEST_CASE("fresh shared memory is poisoned", "[grid]") {
  const Kernel kernel(body_text(1, R"(
    .shared .align 4 .b32 word;
    ld.shared.u32 %r, [word];
    st.global.u32 [%p0], %r;
    st.shared.u32 [word], 1;
  )"));
  Words out(1);
  for (int i = 0; i < 2; i++) {
    CHECK(kernel(Shape{}, out).is_clean());
    CHECK(out[0] == kPoison);
  }
}

TEST_CASE("registers that a path does not write are poisoned", "[grid]") {
  for (const std::string write : {"@%q mov.u32 %r, 7;", "@!%q bra SKIP;\nmov.u32 %r, 7;\nSKIP:"}) {
    INFO(write);
    const Kernel kernel(body_text(1, "setp.lt.u32 %q, %t, 16;\n" + write + R"(
      mad.wide.u32 %a, %t, 4, %p0;
      st.global.u32 [%a], %r;
      mov.u32 %r, 1;
    )"));
    // The second launch has the registers of the first.
    for (int i = 0; i < 2; i++) {
      const auto out = words_of(kernel, 32);
      for (uint32_t t = 0; t < 32; t++) CHECK(out[t] == (t < 16 ? 7 : kPoison));
    }
  }
}

}  // namespace
}  // namespace softgpu::test
