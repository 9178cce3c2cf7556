// wgmma: shapes, layouts and types, compared with plain loops.
#include <algorithm>
#include <cmath>

#include "softgpu/tests/wgmma_kernel.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

struct Case {
  int num_columns;
  Element type;
  FactorLayout a, b;
  bool a_is_in_registers = false;
  bool has_scale_d = true;
  int scale_a = 1, scale_b = 1;
};

std::ostream &operator<<(std::ostream &stream, const Case &c) {
  return stream << "n " << c.num_columns << " " << name_of(c.type) << " A swizzle " << c.a.swizzle
                << " mn " << c.a.is_mn_major << " registers " << c.a_is_in_registers
                << " B swizzle " << c.b.swizzle << " mn " << c.b.is_mn_major;
}

/// PTX ISA, Register Fragments: A of a warp is 16 x 16, as for mma.m16n8k16.
std::vector<uint32_t> registers_of_a(Element type, const Matrix &a) {
  std::vector<uint32_t> words(4 * kWarpgroup);
  for (int row = 0; row < 64; row++)
    for (int k = 0; k < 16; k++) {
      const int thread = row / 16 * 32 + row % 8 * 4 + k % 8 / 2, reg = row % 16 / 8 + k / 8 * 2;
      words[static_cast<size_t>(reg * kWarpgroup + thread)] |= bits_of(type, a(row, k))
                                                               << 16 * (k % 2);
    }
  return words;
}

void check(const Case &c) {
  INFO(c);
  const Matrix a(64, 16, 1), b(16, c.num_columns, 2), start(64, c.num_columns, 3);
  const SharedFactors factors = shared_factors(c.type, {c.a, 64}, {c.b, c.num_columns}, a, b);
  WgmmaText wgmma{c.num_columns, c.type, c.a.is_mn_major, c.b.is_mn_major, c.a_is_in_registers};
  wgmma.scale_d = c.has_scale_d ? "%yes" : "%no";
  wgmma.scale_a = std::to_string(c.scale_a);
  wgmma.scale_b = std::to_string(c.scale_b);
  const auto num_bytes = static_cast<int>(factors.image.size() * 2);
  const Kernel kernel(body_text(
      4, wgmma_prologue(num_bytes, c.num_columns) + load_registers("a", 4, 3, kWarpgroup) +
             "wgmma.fence.sync.aligned;\n" + wgmma.text() +
             "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" +
             store_registers("acc", c.num_columns / 2, 2, kWarpgroup) + "ret;"));

  const Buffer<uint16_t> image(factors.image);
  const Buffer<uint64_t> descriptors(factors.descriptors);
  Buffer<float> accumulators(registers_of(start));
  const Buffer<uint32_t> registers_a(registers_of_a(c.type, a));
  CHECK(kernel(warpgroup_shape(), image, descriptors, accumulators, registers_a).is_clean());
  const Matrix zero(64, c.num_columns);
  const Matrix expected =
      product(a, b, c.has_scale_d ? start : zero, static_cast<float>(c.scale_a * c.scale_b));
  CHECK(accumulators_of(accumulators.values(), c.num_columns).values == expected.values);
}

constexpr int kSwizzles[] = {0, 32, 64, 128};

TEST_CASE("wgmma matches plain loops for each number of columns", "[wgmma]") {
  for (int n = 8; n <= 256; n += 8) check({n, Element::kHalf, {}, {}});
}

TEST_CASE("wgmma supports each layout of A", "[wgmma]") {
  for (const int swizzle : kSwizzles)
    for (const bool is_mn_major : {false, true})
      for (const Element type : {Element::kHalf, Element::kBfloat})
        check({16, type, {swizzle, is_mn_major}, {}});
}

TEST_CASE("wgmma supports each layout of B", "[wgmma]") {
  for (const int swizzle : kSwizzles)
    for (const bool is_mn_major : {false, true})
      for (const Element type : {Element::kHalf, Element::kBfloat})
        for (const int n : {64, 192, 256}) check({n, type, {}, {swizzle, is_mn_major}});
}

TEST_CASE("wgmma supports A in registers", "[wgmma]") {
  for (const Element type : {Element::kHalf, Element::kBfloat})
    for (const bool is_mn_major : {false, true}) check({64, type, {}, {128, is_mn_major}, true});
}

TEST_CASE("wgmma scales A, B and D", "[wgmma]") {
  for (const int scale_a : {1, -1})
    for (const int scale_b : {1, -1})
      for (const bool has_scale_d : {false, true}) {
        check({32, Element::kHalf, {}, {}, false, has_scale_d, scale_a, scale_b});
        check({32, Element::kBfloat, {}, {}, true, has_scale_d, scale_a, scale_b});
      }
}

TEST_CASE("wgmma may complete at any time until the wait", "[wgmma]") {
  for (const Completion completion : {Completion::kLate, Completion::kRandom, Completion::kEarly})
    for (uint64_t seed = 1; seed < 6; seed++) {
      const WithOptions with([&](Options &o) {
        o.completion = completion;
        o.seed = seed;
      });
      check({64, Element::kHalf, {128, false}, {128, true}});
    }
}

TEST_CASE("unsupported forms of wgmma are rejected", "[wgmma]") {
  const auto with = [](std::string opcode, int num_registers) {
    return body_text(0,
                     ".reg .b32 %acc<128>;\n.reg .b64 %da, %db;\n.reg .pred "
                     "%yes;\nwgmma.mma_async.sync.aligned." +
                         opcode + " " + registers("acc", num_registers) +
                         ", %da, %db, %yes, 1, 1, 0, 0;\nret;");
  };
  CHECK_NOTHROW(Kernel(with("m64n64k16.f32.f16.f16", 32)));
  CHECK_THROWS_AS(Kernel(with("m64n64k16.f32.f16.f16", 16)), ptx::Error);
  CHECK_THROWS_AS(Kernel(with("m64n12k16.f32.f16.f16", 6)), ptx::Error);
  CHECK_THROWS_AS(Kernel(with("m64n64k8.f32.tf32.tf32", 32)), ptx::Error);
  CHECK_THROWS_AS(Kernel(with("m64n64k16.f16.f16.f16", 16)), ptx::Error);
}

// ---- order of operations

constexpr int kColumns = 16, kRegisters = kColumns / 2;
const std::string kFence = "wgmma.fence.sync.aligned;\n",
                  kCommit = "wgmma.commit_group.sync.aligned;\n";

std::string wait(int num_pending) {
  return "wgmma.wait_group.sync.aligned " + std::to_string(num_pending) + ";\n";
}
std::string multiply(const std::string &accumulators = "acc") {
  WgmmaText wgmma{kColumns};
  wgmma.accumulators = accumulators;
  return wgmma.text();
}
std::string store(const std::string &accumulators = "acc", int buffer = 2) {
  return store_registers(accumulators, kRegisters, buffer, kWarpgroup);
}

struct Run {
  Outcome outcome;
  Matrix first, second;  ///< contents of buffers 2 and 3 as accumulators
};

/// Runs a kernel that begins with wgmma_prologue.  Buffers: image, descriptors, accumulators, and
/// additional ones.
Run run(const std::string &body, const std::string &fence = "fence.proxy.async;\n",
        int num_threads = kWarpgroup) {
  const Matrix a(64, 16, 1), b(16, kColumns, 2), start(64, kColumns, 3);
  const SharedFactors factors =
      shared_factors(Element::kHalf, {{128, false}, 64}, {{128, false}, kColumns}, a, b);
  const Kernel kernel(body_text(
      4,
      wgmma_prologue(static_cast<int>(factors.image.size() * 2), kColumns, fence) + body + "ret;"));
  const Buffer<uint16_t> image(factors.image);
  const Buffer<uint64_t> descriptors(factors.descriptors);
  Buffer<float> first(registers_of(start)), second(first.size(), 0.0f);
  Shape shape = warpgroup_shape();
  shape.threads[0] = static_cast<uint32_t>(num_threads);
  Outcome outcome = kernel(shape, image, descriptors, first, second);
  return {std::move(outcome), accumulators_of(first.values(), kColumns),
          accumulators_of(second.values(), kColumns)};
}

/// Returns the accumulators after a number of products.
Matrix expected(int num_products) {
  const Matrix a(64, 16, 1), b(16, kColumns, 2), start(64, kColumns, 3);
  return product(a, b, start, static_cast<float>(num_products));
}

TEST_CASE("pending accumulators are NaN until the wait", "[wgmma]") {
  const Run r = run(kFence + multiply() + kCommit + store("acc", 3) + wait(0) + store());
  CHECK(r.outcome.is_clean());
  CHECK(std::isnan(r.second(5, 7)));
  CHECK(r.first.values == expected(1).values);
}

TEST_CASE("wgmma on the same accumulators are ordered", "[wgmma]") {
  const Run r =
      run(kFence + multiply() + multiply() + kCommit + multiply() + kCommit + wait(0) + store());
  CHECK(r.outcome.is_clean());
  CHECK(r.first.values == expected(3).values);
}

TEST_CASE("wait_group leaves the latest groups pending", "[wgmma]") {
  const std::string copy_accumulators = ".reg .b32 %second<8>;\n" + [] {
    std::string text;
    for (int i = 0; i < kRegisters; i++)
      text += "mov.b32 %second" + std::to_string(i) + ", %acc" + std::to_string(i) + ";\n";
    return text;
  }();
  const Run r = run(copy_accumulators + kFence + multiply() + kCommit + multiply("second") +
                    kCommit + wait(1) + store() + store("second", 3) + wait(0));
  CHECK(r.outcome.is_clean());
  CHECK(r.first.values == expected(1).values);
  CHECK(std::isnan(r.second(0, 0)));
}

TEST_CASE("a copy of a pending register takes over its accumulator", "[wgmma]") {
  const Run r = run(".reg .b32 %other;\n" + kFence + multiply() + kCommit +
                    "mov.b32 %other, %acc3;\nmov.b32 %acc3, 0;\n" + wait(0) +
                    "mov.b32 %acc3, %other;\n" + store());
  CHECK(r.outcome.is_clean());
  CHECK(r.first.values == expected(1).values);
}

TEST_CASE("registers of a pending wgmma are not used for other values", "[wgmma]") {
  // Neither A nor a copy that has taken over an accumulator is read again, but both must keep their
  // slots until the wait.
  std::string declare = ".reg .b32 %a<4>, %x<8>, %other;\n", write, read;
  for (int i = 0; i < 4; i++) declare += "mov.b32 %a" + std::to_string(i) + ", 0x3C003C00;\n";
  for (int i = 0; i < 8; i++) {
    write += "mov.b32 %x" + std::to_string(i) + ", 0f42000000;\n";
    read += "mov.b32 %acc" + std::to_string(i) + ", %x" + std::to_string(i) + ";\n";
  }
  WgmmaText wgmma{kColumns};
  wgmma.a_is_in_registers = true;
  Matrix ones(64, 16);
  std::ranges::fill(ones.values, 1.0f);
  const Run product_of_ones = run(declare + kFence + wgmma.text() + kCommit + write + wait(0) +
                                  store() + read + "{\n" + store("acc", 3) + "}\n");
  CHECK(product_of_ones.outcome.is_clean());
  CHECK(product_of_ones.first.values ==
        product(ones, Matrix(16, kColumns, 2), Matrix(64, kColumns, 3)).values);
  CHECK(product_of_ones.second(63, 15) == 32);
  const Run copied =
      run(declare + kFence + multiply() + kCommit + "mov.b32 %other, %acc3;\nmov.b32 %acc3, 0;\n" +
          write + wait(0) + read + store());
  CHECK(copied.outcome.is_clean());
  CHECK(copied.first.values == std::vector<float>(64 * kColumns, 32.0f));
}

TEST_CASE("the first wgmma requires a wgmma.fence", "[wgmma]") {
  CHECK(run(kFence + multiply() + kCommit + wait(0)).outcome.is_clean());
  const Run r = run(multiply() + kCommit + wait(0));
  REQUIRE(!r.outcome.violations.empty());
  CHECK_CONTAINS(r.outcome.violations[0], "first wgmma without wgmma.fence");
}

TEST_CASE("modified accumulators require another wgmma.fence", "[wgmma]") {
  const std::string again = multiply() + kCommit + wait(0), change = "add.f32 %acc3, %acc3, 1.0;\n";
  CHECK(run(kFence + again + again + store()).outcome.is_clean());
  CHECK(run(kFence + again + change + kFence + again + store()).outcome.is_clean());
  for (const std::string &body : {again + change, again + again + change}) {
    CHECK_CONTAINS(first_violation(run(kFence + body + again + store()).outcome),
                   "changed without wgmma.fence");
  }
  // The first operation overwrites its accumulators without reading them.
  WgmmaText wgmma{kColumns};
  wgmma.scale_d = "%no";
  CHECK(run(kFence + again + change + wgmma.text() + kCommit + wait(0) + again + store())
            .outcome.is_clean());
}

TEST_CASE("registers of A that are written require another wgmma.fence", "[wgmma]") {
  WgmmaText wgmma{kColumns};
  wgmma.a_is_in_registers = true;
  const std::string declare = ".reg .b32 %a<4>;\n", last = wgmma.text() + kCommit + wait(0),
                    more = "add.u32 %a1, %a1, 1;\n";
  std::string load;
  for (int r = 0; r < 4; r++) load += "add.u32 %a" + std::to_string(r) + ", %t, 7;\n";
  CHECK(run(declare + load + kFence + last).outcome.is_clean());
  CHECK(run(declare + load + kFence + last + more + kFence + last).outcome.is_clean());
  CHECK(run(declare + load + kFence + last + last).outcome.is_clean());
  for (const std::string &body : {kFence + load + last, load + kFence + last + more + last,
                                  load + kFence + "setp.eq.u32 %q, %t, 77;\n@%q " + more + last}) {
    CHECK_CONTAINS(first_violation(run(declare + body).outcome),
                   "registers of A of wgmma were written");
  }
}

TEST_CASE("generic writes require a proxy fence before wgmma", "[wgmma]") {
  const std::string body = kFence + multiply() + kCommit + wait(0);
  CHECK(run(body).outcome.is_clean());
  // The reader may execute the fence, after the barrier.
  CHECK(run("fence.proxy.async.shared::cta;\n" + body, "").outcome.is_clean());
  CHECK_CONTAINS(first_violation(run(body, "").outcome), "wgmma reads without fence.proxy.async");
  // Neither a fence for global memory nor one before the write is sufficient.
  CHECK(!run("fence.proxy.async.global;\n" + body, "").outcome.violations.empty());
  CHECK(!run("fence.proxy.async;\nst.shared.u32 [smem], %v;\nbar.sync 0;\n" + body)
             .outcome.violations.empty());
}

TEST_CASE("the proxy fence must precede the issue of wgmma", "[wgmma]") {
  // A later fence before the wait is too late.
  for (const Completion completion : {Completion::kLate, Completion::kEarly}) {
    const WithOptions with([&](Options &o) { o.completion = completion; });
    CHECK_CONTAINS(
        first_violation(
            run(kFence + multiply() + kCommit + "fence.proxy.async;\nbar.sync 0;\n" + wait(0), "")
                .outcome),
        "wgmma reads without fence.proxy.async");
  }
  // The operand must not be modified before the wait.
  CHECK(!run(kFence + multiply() + kCommit + "st.shared.u32 [smem], %v;\n" + wait(0))
             .outcome.violations.empty());
}

TEST_CASE("the proxy fence of each warp counts for B", "[wgmma]") {
  WgmmaText wgmma{kColumns};
  wgmma.a_is_in_registers = true;
  const std::string body =
      ".reg .b32 %a<4>;\nmov.b32 %a0, 0;\nmov.b32 %a1, 0;\nmov.b32 %a2, 0;\n"
      "mov.b32 %a3, 0;\n" +
      kFence + wgmma.text() + kCommit + wait(0);
  const std::string fence_below = "setp.lt.u32 %q, %t, %i;\n@%q fence.proxy.async;\n";
  CHECK(run("mov.u32 %i, 128;\n" + fence_below + body, "").outcome.is_clean());
  CHECK_CONTAINS(first_violation(run("mov.u32 %i, 96;\n" + fence_below + body, "").outcome),
                 "wgmma reads without fence.proxy.async");
}

TEST_CASE("all warps of a warpgroup must execute the same wgmma", "[wgmma]") {
  const std::string body = kFence + multiply() + kCommit + wait(0);
  CHECK_CONTAINS(run("setp.gt.u32 %q, %t, 63;\n@%q add.u64 %db, %db, 2;\n" + body).outcome.fault,
                 "pass different operands");
  CHECK_CONTAINS(run("setp.eq.u32 %q, %t, 63;\n@%q add.u64 %db, %db, 2;\n" + body).outcome.fault,
                 "differ in the descriptor");
  CHECK_CONTAINS(run("setp.eq.u32 %yes, %t, 63;\n" + body).outcome.fault, "differ in scale-d");
  CHECK_CONTAINS(run(body, "fence.proxy.async;\n", 96).outcome.fault, "four warps");
  // Waits for an operation that another warp never issues.
  CHECK_CONTAINS(run("setp.gt.u32 %q, %t, 95;\n@%q bra end;\n" + body + "end:\n").outcome.fault,
                 "deadlock");
}

TEST_CASE("wgmma descriptors must stay in shared memory", "[wgmma]") {
  const std::string body = kFence + multiply() + kCommit + wait(0);
  CHECK_CONTAINS(run("add.u64 %db, %db, 4096;\n" + body).outcome.fault,
                 "B of wgmma reads shared memory");
  CHECK_CONTAINS(run("add.u64 %da, %da, 4096;\n" + body).outcome.fault,
                 "A of wgmma reads shared memory");
  CHECK_CONTAINS(first_violation(run("or.b64 %db, %db, 562949953421312;\n" + body).outcome),
                 "base offset");
}

TEST_CASE("pending wgmma must share all accumulators or none", "[wgmma]") {
  const std::string other =
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
      "{%acc1, %acc0, %acc2, %acc3, %acc4, %acc5, %acc6, %acc7}, %da, %db, %yes, 1, 1, 0, 0;\n";
  CHECK_CONTAINS(run(kFence + multiply() + kCommit + other + kCommit + wait(0)).outcome.fault,
                 "some of these accumulators");
  CHECK(
      run(kFence + multiply() + kCommit + wait(0) + other + kCommit + wait(0)).outcome.is_clean());
  const std::string overlapping =
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
      "{%x0, %x1, %x2, %x3, %x4, %x5, %x6, %acc0}, %da, %db, %yes, 1, 1, 0, 0;\n";
  CHECK_CONTAINS(
      run(".reg .b32 %x<7>;\n" + kFence + multiply() + kCommit + overlapping + kCommit + wait(0))
          .outcome.fault,
      "some of these accumulators");
}

TEST_CASE("registers of A must not change until the wait", "[wgmma]") {
  WgmmaText wgmma{kColumns};
  wgmma.a_is_in_registers = true;
  const std::string body =
      ".reg .b32 %a<4>;\nmov.b32 %a0, 0;\nmov.b32 %a1, 0;\nmov.b32 %a2, 0;\n"
      "mov.b32 %a3, 0;\n" +
      kFence + wgmma.text() + kCommit;
  CHECK(run(body + wait(0) + "mov.b32 %a2, 1;\nst.global.b32 [%p3], %a2;\n").outcome.is_clean());
  const Run r = run(body + "mov.b32 %a2, 1;\n" + wait(0) + "st.global.b32 [%p3], %a2;\n");
  REQUIRE(!r.outcome.violations.empty());
  CHECK_CONTAINS(r.outcome.violations[0], "registers of A changed");
}

TEST_CASE("a warp must not exit with pending wgmma", "[wgmma]") {
  CHECK_CONTAINS(first_violation(run(kFence + multiply() + kCommit).outcome),
                 "exits with wgmma in flight");
}

}  // namespace

}  // namespace softgpu::test
