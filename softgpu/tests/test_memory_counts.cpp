// Sectors and wavefronts per instruction, and reads of uninitialized memory.
#include <mutex>

#include "softgpu/machine/written_bytes.h"
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns the counters of the instruction that contains a text, after one launch.
AccessCount count_of(const std::string &body, const std::string &text, uint32_t threads = 32) {
  const WithOptions with([](Options &o) { o.counts_memory = true; });
  const Kernel kernel(body_text(1, R"(
    .reg .b64 %a; .reg .b32 %s, %x, %y, %v<4>; .reg .f64 %d;
    .shared .align 16 .b8 smem[8192]; mov.u32 %s, smem;
    )" + body + " ret;"));
  Buffer<uint32_t> buffer(4096);
  // First 256-byte boundary in the buffer, like an address from cudaMalloc.
  const uint64_t aligned = (buffer.address() + 255) / 256 * 256;
  REQUIRE(kernel({.threads = {threads, 1, 1}}, aligned).is_clean());
  const Program &program = kernel.program();
  for (size_t i = 0; i < program.source.size(); i++)
    if (program.source[i].text.find(text) != std::string::npos)
      return program.totals->tally.accesses.at(i);
  FAIL("no instruction " << text);
  return {};
}

/// Returns the counters of a global access at %p0 + %t * stride + offset.
AccessCount global_count(const std::string &instruction, int stride, int offset = 0) {
  return count_of("mul.lo.u64 %a, %T, " + std::to_string(stride) +
                      "; add.s64 %a, %a, %p0; add.s64 %a, %a, " + std::to_string(offset) + "; " +
                      instruction,
                  instruction.substr(0, 10));
}
AccessCount shared_count(const std::string &instruction, int stride) {
  return count_of(
      "mul.lo.u32 %x, %t, " + std::to_string(stride) + "; add.u32 %s, %s, %x; " + instruction,
      instruction.substr(0, 10));
}

}  // namespace

TEST_CASE("sectors of global accesses are counted") {
  AccessCount c = global_count("ld.global.u32 %x, [%a];", 4);
  REQUIRE(c.requests == 1);
  REQUIRE(c.bytes == 128);
  REQUIRE(c.sectors == 4);
  REQUIRE(c.least_sectors == 4);
  c = global_count("ld.global.u32 %x, [%a];", 4, 4);  // one more sector
  REQUIRE(c.sectors == 5);
  REQUIRE(c.least_sectors == 4);
  c = global_count("st.global.u32 [%a], %x;", 64);
  REQUIRE(c.sectors == 32);
  REQUIRE(c.least_sectors == 4);
  c = global_count("ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%a];", 16);
  REQUIRE(c.bytes == 512);
  REQUIRE(c.sectors == 16);
  REQUIRE(c.least_sectors == 16);
  c = global_count("ld.global.u32 %x, [%a];", 0);  // all lanes at the same address
  REQUIRE(c.sectors == 1);
  REQUIRE(c.least_sectors == 1);
  c = global_count("atom.global.add.u32 %x, [%a], 1;", 4);
  REQUIRE(c.sectors == 4);
  c = count_of("ld.global.u32 %x, [%p0];", "ld.global", 96);
  REQUIRE(c.requests == 3);
  REQUIRE(c.bytes == 384);
}

TEST_CASE("wavefronts of shared accesses are counted") {
  AccessCount c = shared_count("ld.shared.u32 %x, [%s];", 4);
  REQUIRE(c.requests == 1);
  REQUIRE(c.bytes == 128);
  REQUIRE(c.wavefronts == 1);
  REQUIRE(c.least_wavefronts == 1);
  REQUIRE(c.sectors == 0);
  REQUIRE(shared_count("ld.shared.u32 %x, [%s];", 8).wavefronts == 2);
  REQUIRE(shared_count("ld.shared.u32 %x, [%s];", 128).wavefronts == 32);
  REQUIRE(shared_count("ld.shared.u32 %x, [%s];", 128).least_wavefronts == 1);
  REQUIRE(shared_count("ld.shared.u32 %x, [%s];", 132).wavefronts == 1);
  REQUIRE(shared_count("ld.shared.u32 %x, [%s];", 0).wavefronts == 1);
  c = shared_count("ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%s];", 16);
  REQUIRE(c.wavefronts == 4);
  REQUIRE(c.least_wavefronts == 4);
  // Rows of 128 bytes: 8 lanes at a time, all in the same four banks.
  c = shared_count("st.shared.v4.u32 [%s], {%v0, %v1, %v2, %v3};", 128);
  REQUIRE(c.wavefronts == 32);
  REQUIRE(c.least_wavefronts == 4);
  c = shared_count("ld.shared.f64 %d, [%s];", 8);
  REQUIRE(c.wavefronts == 2);
  REQUIRE(c.least_wavefronts == 2);
  // Generic addresses are counted in their actual space.
  c = count_of("cvta.shared.u64 %a, smem; ld.u32 %x, [%a];", "ld.u32");
  REQUIRE(c.wavefronts == 1);
  REQUIRE(c.sectors == 0);
}

TEST_CASE("cp.async counts global and shared traffic") {
  const AccessCount c = count_of(R"(
    shl.b64 %a, %T, 4; add.s64 %a, %a, %p0; shl.b32 %x, %t, 4; add.u32 %s, %s, %x;
    cp.async.cg.shared.global [%s], [%a], 16; cp.async.wait_all;)",
                                 "cp.async.cg");
  REQUIRE(c.requests == 1);
  REQUIRE(c.bytes == 512);
  REQUIRE(c.sectors == 16);
  REQUIRE(c.wavefronts == 4);
}

TEST_CASE("a partially copied sector is counted once") {
  const std::string copy = R"(
    shl.b64 %a, %T, 4; add.s64 %a, %a, %p0; shl.b32 %x, %t, 4; add.u32 %s, %s, %x;
    and.b32 %x, %t, 1; shl.b32 %x, %x, 3; add.u32 %x, %x, 8;
    cp.async.ca.shared.global [%s], [%a], 16, %x; cp.async.wait_all;)";
  const AccessCount c = count_of(copy, "cp.async.ca");  // 8 and 16 bytes of each sector
  REQUIRE(c.bytes == 384);
  REQUIRE(c.global_bytes == 384);
  REQUIRE(c.sectors == 16);
  REQUIRE(c.least_sectors == 12);
  REQUIRE(c.wavefronts == 4);
}

TEST_CASE("equal addresses count once, constants and parameters not as global") {
  AccessCount c = count_of("ld.global.u32 %x, [%p0];", "ld.global");
  REQUIRE(c.bytes == 128);
  REQUIRE(c.global_bytes == 4);
  c = shared_count("ld.shared.u32 %x, [%s];", 0);
  REQUIRE(c.shared_bytes == 4);
  c = global_count("ld.const.u32 %x, [%a];", 4);
  REQUIRE(c.bytes == 128);
  REQUIRE(c.global_bytes == 0);
  REQUIRE(c.sectors == 0);
  c = count_of("", "ld.param");
  REQUIRE(c.requests == 1);
  REQUIRE(c.global_bytes == 0);
}

TEST_CASE("bytes are always counted, sectors only on request") {
  const Kernel kernel(body_text(1, ".reg .b32 %x; ld.global.u32 %x, [%p0]; ret;"));
  Buffer<uint32_t> buffer(1);
  REQUIRE(kernel({}, buffer).is_clean());
  uint64_t bytes = 0, sectors = 0;
  for (size_t i = 0; i < kernel.program().source.size(); i++) {
    if (kernel.program().source[i].text.find("ld.global") == std::string::npos) continue;
    bytes += kernel.program().totals->tally.accesses[i].bytes;
    sectors += kernel.program().totals->tally.accesses[i].sectors;
  }
  REQUIRE(bytes == 128);
  REQUIRE(sectors == 0);
}

namespace {

/// Runs with SOFTGPU_INITCHECK=1; the first `written` of 64 bytes of a buffer are initialized.
Outcome check(const std::string &body, uint64_t written) {
  const WithOptions with([](Options &o) { o.checks_initialised = true; });
  const Kernel kernel(body_text(1, R"(
    .reg .b64 %a; .reg .b32 %s, %x, %v<4>; .reg .pred %g;
    .shared .align 16 .b8 smem[1024]; mov.u32 %s, smem;
    )" + body + " ret;"));
  Buffer<uint32_t> buffer(256);
  note_written(buffer.address(), written);
  return kernel({.threads = {1, 1, 1}}, buffer);
}
std::string message(const Outcome &outcome) {
  REQUIRE(outcome.fault.empty());
  REQUIRE(outcome.violations.size() == 1);
  return outcome.violations[0];
}

}  // namespace

TEST_CASE("a read of uninitialized global memory is a violation") {
  REQUIRE(check("ld.global.u32 %x, [%p0+60];", 64).is_clean());
  REQUIRE_THAT(message(check("ld.global.u32 %x, [%p0+64];", 64)),
               ContainsSubstring("uninitialized read: 4 of 4 bytes of global memory") &&
                   ContainsSubstring("ld.global.u32 %x, [%p0+64]"));
  REQUIRE_THAT(message(check("ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%p0+48];", 62)),
               ContainsSubstring("2 of 16 bytes"));
  REQUIRE_THAT(message(check("ld.u8 %x, [%p0+64];", 64)), ContainsSubstring("1 of 1 bytes"));
  REQUIRE_THAT(message(check("atom.global.add.u32 %x, [%p0+64], 1;", 64)),
               ContainsSubstring("4 of 4"));
  REQUIRE(check("st.global.u32 [%p0+64], 1; ld.global.u32 %x, [%p0+64];", 64).is_clean());
  REQUIRE_THAT(message(check("st.global.u16 [%p0+64], 1; ld.global.u32 %x, [%p0+64];", 64)),
               ContainsSubstring("2 of 4 bytes"));
  // The result of an atomic operation is initialized, so the violation is not repeated.
  REQUIRE(
      check("red.global.add.u32 [%p0+64], 1; ld.global.u32 %x, [%p0+64];", 64).violations.size() ==
      1);
}

TEST_CASE("a read of uninitialized shared memory is a violation") {
  REQUIRE_THAT(message(check("ld.shared.u32 %x, [%s+16];", 64)),
               ContainsSubstring("4 of 4 bytes of shared memory"));
  REQUIRE(check("st.shared.u32 [%s+16], 1; ld.shared.u32 %x, [%s+16];", 64).is_clean());
  REQUIRE_THAT(message(check("st.shared.u8 [%s+16], 1; ld.shared.u16 %x, [%s+16];", 64)),
               ContainsSubstring("1 of 2 bytes"));
}

TEST_CASE("cp.async initializes its destination at completion and checks its source") {
  const std::string copy = "cp.async.cg.shared.global [%s], [%p0], 16; ";
  REQUIRE(check(copy + "cp.async.wait_all; ld.shared.u32 %x, [%s];", 16).is_clean());
  // The copy is not waited for; the destination was initialized before.
  REQUIRE_THAT(message(check("st.shared.u32 [%s], 1; " + copy + "ld.shared.u32 %x, [%s];", 16)),
               ContainsSubstring("of shared memory"));
  REQUIRE_THAT(message(check(copy + "cp.async.wait_all;", 12)),
               ContainsSubstring("4 of 16 bytes of global memory"));
  REQUIRE(
      check("cp.async.cg.shared.global [%s], [%p0], 16, 12; cp.async.wait_all;", 12).is_clean());
  REQUIRE_THAT(
      message(check("cp.async.cg.shared.global [%s], [%p0], 16, 12; cp.async.wait_all;", 8)),
      ContainsSubstring("4 of 12 bytes of global memory") && ContainsSubstring("thread 0"));
}

TEST_CASE("without SOFTGPU_INITCHECK uninitialized reads are not reported") {
  const Kernel kernel(body_text(1, ".reg .b32 %x; ld.global.u32 %x, [%p0]; ret;"));
  Buffer<uint32_t> buffer(1);
  REQUIRE(kernel({}, buffer).is_clean());
}

TEST_CASE("WrittenBytes finds uninitialized ranges") {
  WrittenBytes written(1000);
  REQUIRE(written.find_unwritten(0, 1000).count == 1000);
  written.set(3, 130);
  REQUIRE(written.find_unwritten(3, 130).count == 0);
  REQUIRE(written.find_unwritten(0, 200).first == 0);
  REQUIRE(written.find_unwritten(0, 200).count == 70);
  REQUIRE(written.find_unwritten(64, 200).first == 133);
  written.set(63, 2, false);
  REQUIRE(written.find_unwritten(3, 130).first == 63);
  REQUIRE(written.find_unwritten(3, 130).count == 2);
  written.set(0, 1000);
  REQUIRE(written.find_unwritten(0, 1000).count == 0);
}

TEST_CASE("unfenced_writer finds generic writes without a proxy fence") {
  SharedMemory smem;
  smem.reset(0, 256, true);
  std::vector<uint32_t> fences(64, 0);
  REQUIRE(smem.unfenced_writer(kReservedSmem, 256, fences, 0) == -1);
  smem.note_write(33, kReservedSmem + 8, 4);
  REQUIRE(smem.unfenced_writer(kReservedSmem, 8, fences, 0) == -1);
  REQUIRE(smem.unfenced_writer(kReservedSmem, 12, fences, 0) == 33);
  fences[32] = smem.fence();  // fence of another thread
  REQUIRE(smem.unfenced_writer(kReservedSmem, 12, fences, 0) == 33);
  fences[33] = smem.fence();
  REQUIRE(smem.unfenced_writer(kReservedSmem, 12, fences, 0) == -1);
  smem.note_write(33, kReservedSmem + 8, 4);  // after the fence
  REQUIRE(smem.unfenced_writer(kReservedSmem, 12, fences, 0) == 33);
  // The reader has executed a fence.
  REQUIRE(smem.unfenced_writer(kReservedSmem, 12, fences, smem.fence()) == -1);
  smem.note_write(5, kReservedSmem + 40, 16);
  smem.forget_writes(kReservedSmem + 40, 16);
  REQUIRE(smem.unfenced_writer(kReservedSmem, 256, fences, 0) == -1);
  smem.reset(0, 256, false);
  smem.note_write(5, kReservedSmem, 4);
  REQUIRE(smem.unfenced_writer(kReservedSmem, 256, fences, 0) == -1);
}

}  // namespace softgpu::test
