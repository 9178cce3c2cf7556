// wgmma: recorded results of shapes, layouts and types, and checks.
#include <bit>
#include <cmath>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "softgpu/tests/wgmma_kernel.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

const std::string kFence = "wgmma.fence.sync.aligned;\n",
                  kCommit = "wgmma.commit_group.sync.aligned;\n";

std::string wait(int num_pending) {
  return "wgmma.wait_group.sync.aligned " + std::to_string(num_pending) + ";\n";
}

struct Run {
  Outcome outcome;
  std::vector<float> first, second;  ///< accumulators that were stored to buffers 0 and 1
};

/// Runs a body after the prologue of WgmmaText::module.
Run run(const WgmmaText &wgmma, const std::string &body,
        const std::string &fence = "fence.proxy.async;\n", uint32_t num_threads = kWarpgroup) {
  const Kernel kernel(wgmma.module(body, fence));
  Buffer<float> first(static_cast<size_t>(64 * wgmma.num_columns)), second(first.size());
  Outcome outcome = kernel({.threads = {num_threads, 1, 1}}, first, second);
  return {std::move(outcome), first.values(), second.values()};
}

std::string store(const WgmmaText &wgmma, int buffer = 0) {
  return store_registers(wgmma.accumulators, wgmma.num_columns / 2, buffer, kWarpgroup);
}

/// Returns the FNV-1a hash of the accumulators after one operation.
uint32_t hash_of(const WgmmaText &wgmma) {
  const Run r = run(wgmma, kFence + wgmma.text() + kCommit + wait(0) + store(wgmma));
  CHECK(r.outcome.is_clean());
  uint32_t hash = 2166136261;
  for (const float x : r.first)  // the low bits of x are 0
    hash = (hash ^ std::rotl(std::bit_cast<uint32_t>(x), 16)) * 16777619;
  return hash;
}

std::ostream &operator<<(std::ostream &out, const FactorLayout &layout) {
  return out << (layout.is_mn_major ? "MN" : "K") << "-major, swizzle " << layout.swizzle;
}

/// Compares a hash with one that was recorded when all results agreed with plain loops.  If they
/// differ, prints the hash of each operation, which can be compared with those of another build.
void check(const std::vector<WgmmaText> &operations, uint32_t expected) {
  uint32_t all = 0;
  std::ostringstream list;
  for (const WgmmaText &wgmma : operations) {
    const uint32_t hash = hash_of(wgmma);
    all = all * 31 + hash;
    list << std::hex << "\n  " << hash << std::dec << "  n " << wgmma.num_columns << " "
         << wgmma.type << ", A " << (wgmma.a_is_in_registers ? "in registers, " : "") << wgmma.a
         << ", B " << wgmma.b << ", scales " << wgmma.scale_a << " " << wgmma.scale_b << " "
         << wgmma.scale_d;
  }
  INFO("the hash is 0x" << std::hex << all << "; by operation:" << list.str());
  CHECK(all == expected);
}

constexpr int kSwizzles[] = {0, 32, 64, 128};
constexpr const char *kTypes[] = {"f16", "bf16"};

TEST_CASE("wgmma has the recorded results for each number of columns", "[wgmma]") {
  std::vector<WgmmaText> operations;
  for (int n = 8; n <= 256; n += 8) operations.push_back({.num_columns = n, .a = {}, .b = {}});
  check(operations, 0xD7D88905);
}

TEST_CASE("wgmma has the recorded results for each layout of A and B", "[wgmma]") {
  std::vector<WgmmaText> of_a, of_b, of_registers;
  for (const char *type : kTypes)
    for (const bool is_mn_major : {false, true}) {
      for (const int swizzle : kSwizzles) {
        const FactorLayout layout{swizzle, is_mn_major};
        of_a.push_back({.type = type, .a = layout, .b = {}});
        for (const int n : {64, 192, 256})
          of_b.push_back({.num_columns = n, .type = type, .a = {}, .b = layout});
      }
      of_registers.push_back({64, type, {}, {128, is_mn_major}, true});
    }
  check(of_a, 0x12626265);
  check(of_b, 0xA501EADF);
  check(of_registers, 0xC7737746);
}

TEST_CASE("wgmma scales A, B and D", "[wgmma]") {
  std::vector<WgmmaText> operations;
  for (const char *scale_a : {"1", "-1"})
    for (const char *scale_b : {"1", "-1"})
      for (const char *scale_d : {"%no", "%yes"}) {
        operations.push_back({32, "f16", {}, {}, false, "acc", scale_d, scale_a, scale_b});
        operations.push_back({32, "bf16", {}, {}, true, "acc", scale_d, scale_a, scale_b});
      }
  check(operations, 0x68C640C2);
}

TEST_CASE("wgmma may complete at any time until the wait", "[wgmma]") {
  for (const Completion completion : {Completion::kLate, Completion::kRandom, Completion::kEarly})
    for (uint64_t seed = 1; seed < 6; seed++) {
      const WithOptions with([&](Options &o) {
        o.completion = completion;
        o.seed = seed;
      });
      check({{.num_columns = 64, .b = {128, true}}}, 0x0964BA3C);
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

const WgmmaText kPlain, kOfRegisters{.a_is_in_registers = true}, kOverwriting{.scale_d = "%no"};
const std::string kMultiply = kPlain.text(), kMultiplyRegisters = kOfRegisters.text(),
                  kOnce = kMultiply + kCommit + wait(0), kStore = store(kPlain),
                  kStoreSecond = store(kPlain, 1);

Run run(const std::string &body, const std::string &fence = "fence.proxy.async;\n",
        uint32_t num_threads = kWarpgroup) {
  return run(kPlain, body, fence, num_threads);
}

/// Returns the accumulators after a number of products.
std::vector<float> expected(int num_products) {
  const std::vector<float> start = run(kStore).first;
  std::vector<float> sums = run(kFence + kOnce + kStore).first;
  for (size_t i = 0; i < sums.size(); i++)
    sums[i] = start[i] + static_cast<float>(num_products) * (sums[i] - start[i]);
  return sums;
}

TEST_CASE("pending accumulators are NaN until the wait", "[wgmma]") {
  const Run r = run(kFence + kMultiply + kCommit + kStoreSecond + wait(0) + kStore);
  CHECK(r.outcome.is_clean());
  CHECK(std::isnan(r.second[5]));
  CHECK(r.first == expected(1));
}

TEST_CASE("wgmma on the same accumulators are ordered", "[wgmma]") {
  const Run r = run(kFence + kMultiply + kMultiply + kCommit + kOnce + kStore);
  CHECK(r.outcome.is_clean());
  CHECK(r.first == expected(3));
}

TEST_CASE("wait_group leaves the latest groups pending", "[wgmma]") {
  const WgmmaText second{.accumulators = "second"};
  std::string copy_accumulators = ".reg .b32 %second<8>;\n";
  for (const char i : std::string("01234567"))
    copy_accumulators += std::string("mov.b32 %second") + i + ", %acc" + i + ";\n";
  const Run r = run(copy_accumulators + kFence + kMultiply + kCommit + second.text() + kCommit +
                    wait(1) + kStore + store(second, 1) + wait(0));
  CHECK(r.outcome.is_clean());
  CHECK(r.first == expected(1));
  CHECK(std::isnan(r.second[0]));
}

TEST_CASE("a copy of a pending register takes over its accumulator", "[wgmma]") {
  const Run r = run(".reg .b32 %other;\n" + kFence + kMultiply + kCommit +
                    "mov.b32 %other, %acc3;\nmov.b32 %acc3, 0;\n" + wait(0) +
                    "mov.b32 %acc3, %other;\n" + kStore);
  CHECK(r.outcome.is_clean());
  CHECK(r.first == expected(1));
}

TEST_CASE("registers of a pending wgmma are not used for other values", "[wgmma]") {
  // Neither A nor a copy that has taken over an accumulator is read again, but both must keep their
  // slots until the wait.
  std::string declare = ".reg .b32 %x<8>, %other;\n", write, read;
  for (int i = 0; i < 8; i++) {
    write += "mov.b32 %x" + std::to_string(i) + ", 0f42000000;\n";
    read += "mov.b32 %acc" + std::to_string(i) + ", %x" + std::to_string(i) + ";\n";
  }
  const Run simple = run(kFence + kMultiplyRegisters + kCommit + wait(0) + kStore);
  const Run of_registers = run(declare + kFence + kMultiplyRegisters + kCommit + write + wait(0) +
                               kStore + read + "{\n" + kStoreSecond + "}\n");
  CHECK(of_registers.outcome.is_clean());
  CHECK(of_registers.first == simple.first);
  CHECK(of_registers.second.back() == 32);
  const Run copied =
      run(declare + kFence + kMultiply + kCommit + "mov.b32 %other, %acc3;\nmov.b32 %acc3, 0;\n" +
          write + wait(0) + read + kStore);
  CHECK(copied.outcome.is_clean());
  CHECK(copied.first == std::vector<float>(copied.first.size(), 32.0f));
}

TEST_CASE("the first wgmma requires a wgmma.fence", "[wgmma]") {
  CHECK(run(kFence + kOnce).outcome.is_clean());
  CHECK_CONTAINS(first_violation(run(kOnce).outcome), "first wgmma without wgmma.fence");
}

TEST_CASE("modified accumulators require another wgmma.fence", "[wgmma]") {
  const std::string change = "add.f32 %acc3, %acc3, 1.0;\n";
  CHECK(run(kFence + kOnce + kOnce + kStore).outcome.is_clean());
  CHECK(run(kFence + kOnce + change + kFence + kOnce + kStore).outcome.is_clean());
  for (const std::string &body : {kOnce + change, kOnce + kOnce + change}) {
    CHECK_CONTAINS(first_violation(run(kFence + body + kOnce + kStore).outcome),
                   "changed without wgmma.fence");
  }
  // The first operation overwrites its accumulators without reading them.
  CHECK(run(kFence + kOnce + change + kOverwriting.text() + kCommit + wait(0) + kOnce + kStore)
            .outcome.is_clean());
}

TEST_CASE("registers of A that are written require another wgmma.fence", "[wgmma]") {
  const std::string last = kMultiplyRegisters + kCommit + wait(0), more = "add.u32 %a1, %a1, 1;\n";
  std::string load;
  for (int r = 0; r < 4; r++) load += "add.u32 %a" + std::to_string(r) + ", %t, 7;\n";
  CHECK(run(load + kFence + last).outcome.is_clean());
  CHECK(run(load + kFence + last + more + kFence + last).outcome.is_clean());
  CHECK(run(load + kFence + last + last).outcome.is_clean());
  for (const std::string &body : {kFence + load + last, load + kFence + last + more + last,
                                  load + kFence + "setp.eq.u32 %q, %t, 77;\n@%q " + more + last}) {
    CHECK_CONTAINS(first_violation(run(body).outcome), "registers of A of wgmma were written");
  }
}

TEST_CASE("generic writes require a proxy fence before wgmma", "[wgmma]") {
  const std::string body = kFence + kOnce;
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
            run(kFence + kMultiply + kCommit + "fence.proxy.async;\nbar.sync 0;\n" + wait(0), "")
                .outcome),
        "wgmma reads without fence.proxy.async");
  }
  // The operand must not be modified before the wait.
  CHECK(!run(kFence + kMultiply + kCommit + "st.shared.u32 [smem], %v;\n" + wait(0))
             .outcome.violations.empty());
}

TEST_CASE("the proxy fence of each warp counts for B", "[wgmma]") {
  const std::string body = kFence + kMultiplyRegisters + kCommit + wait(0);
  const std::string fence_below = "setp.lt.u32 %q, %t, %i;\n@%q fence.proxy.async;\n";
  CHECK(run("mov.u32 %i, 128;\n" + fence_below + body, "").outcome.is_clean());
  CHECK_CONTAINS(first_violation(run("mov.u32 %i, 96;\n" + fence_below + body, "").outcome),
                 "wgmma reads without fence.proxy.async");
}

TEST_CASE("all warps of a warpgroup must execute the same wgmma", "[wgmma]") {
  const std::string body = kFence + kOnce;
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
  const std::string body = kFence + kOnce;
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
  CHECK_CONTAINS(run(kFence + kMultiply + kCommit + other + kCommit + wait(0)).outcome.fault,
                 "some of these accumulators");
  CHECK(run(kFence + kOnce + other + kCommit + wait(0)).outcome.is_clean());
  const std::string overlapping =
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
      "{%x0, %x1, %x2, %x3, %x4, %x5, %x6, %acc0}, %da, %db, %yes, 1, 1, 0, 0;\n";
  CHECK_CONTAINS(
      run(".reg .b32 %x<7>;\n" + kFence + kMultiply + kCommit + overlapping + kCommit + wait(0))
          .outcome.fault,
      "some of these accumulators");
}

TEST_CASE("registers of A must not change until the wait", "[wgmma]") {
  const std::string body = kFence + kMultiplyRegisters + kCommit;
  CHECK(run(body + wait(0) + "mov.b32 %a2, 1;\nst.global.b32 [%p1], %a2;\n").outcome.is_clean());
  CHECK_CONTAINS(
      first_violation(
          run(body + "mov.b32 %a2, 1;\n" + wait(0) + "st.global.b32 [%p1], %a2;\n").outcome),
      "registers of A changed");
}

TEST_CASE("a warp must not exit with pending wgmma", "[wgmma]") {
  CHECK_CONTAINS(first_violation(run(kFence + kMultiply + kCommit).outcome),
                 "exits with wgmma in flight");
}

}  // namespace

}  // namespace softgpu::test
