// Test kernels with wgmma operations of one warpgroup.
#pragma once

#include <cstdint>
#include <string>

#include "softgpu/tests/harness.h"

namespace softgpu::test {

constexpr int kWarpgroup = 128;
constexpr int kFactorA = 0, kFactorB = 8192;  ///< byte offsets in shared memory
constexpr int kFactorBytes = 40960;           ///< size of both factors in their largest layouts

/// Layout of a factor in shared memory (PTX ISA, Shared Memory Matrix Layout).
struct FactorLayout {
  int swizzle = 0;  ///< swizzle span in bytes: 0, 32, 64 or 128
  bool is_mn_major = false;

  /// Returns the descriptor of a factor at a byte offset, with 16 of k and `extent` rows of A or
  /// columns of B, 16 bits per element.
  uint64_t descriptor(int begin, int extent) const {
    int leading = is_mn_major ? extent * 16 : 128, stride = is_mn_major ? 128 : 256, mode = 0;
    if (swizzle != 0) {
      leading = is_mn_major ? 16 * swizzle : 16;  // ignored if K-major
      stride = 8 * swizzle;
      mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : 3;
    }
    return static_cast<uint64_t>(begin >> 4) | static_cast<uint64_t>(leading >> 4) << 16 |
           static_cast<uint64_t>(stride >> 4) << 32 | static_cast<uint64_t>(mode) << 62;
  }
};

/// wgmma.mma_async with the descriptors %da and %db, or with A in %a0 to %a3.
struct WgmmaText {
  int num_columns = 16;
  const char *type = "f16";
  FactorLayout a{128}, b{128};
  bool a_is_in_registers = false;
  std::string accumulators = "acc", scale_d = "%yes", scale_a = "1", scale_b = "1";

  std::string text() const {
    return "wgmma.mma_async.sync.aligned.m64n" + std::to_string(num_columns) + "k16.f32." + type +
           "." + type + " " + registers(accumulators, num_columns / 2) + ", " +
           (a_is_in_registers ? registers("a", 4) : "%da") + ", %db, " + scale_d + ", " + scale_a +
           ", " + scale_b +
           (a_is_in_registers ? ""
            : a.is_mn_major   ? ", 1"
                              : ", 0") +
           (b.is_mn_major ? ", 1;\n" : ", 0;\n");
  }

  /// Returns a module whose kernel has buffers %p0 and %p1 and executes a body after a prologue
  /// that fills `smem` and %a0 to %a3 with numbers of +-1 to 1.75 and %acc0, ... with 0 to 7.
  /// @param fence  statements before the barrier in the prologue
  std::string module(const std::string &body,
                     const std::string &fence = "fence.proxy.async;\n") const {
    const std::string bytes = std::to_string(kFactorBytes), mn = std::to_string(num_columns / 2);
    std::string text =
        ".shared .align 1024 .b8 smem[" + bytes + "];\n.reg .b32 %s, %v, %a<4>, %acc<" + mn +
        ">;\n.reg .b64 %da, %db;\n.reg .pred %yes, %no;\n"
        "setp.eq.u32 %yes, 0, 0;\nsetp.ne.u32 %no, 0, 0;\nshl.b32 %i, %t, 2;\nfill:\n"
        "mul.lo.u32 %v, %i, 0x9E3779B1;\nshr.u32 %s, %v, 15;\nxor.b32 %v, %v, %s;\n"
        "mul.lo.u32 %v, %v, 0x85EBCA6B;\nshr.u32 %s, %v, 13;\nxor.b32 %v, %v, %s;\n"
        "lop3.b32 %v, %v, " +
        std::string(type == std::string("f16") ? "0x83008300, 0x3C003C00"
                                               : "0x80608060, 0x3F803F80") +
        ", 0xEA;\nmov.u32 %s, smem;\nadd.u32 %s, %s, %i;\nst.shared.u32 [%s], %v;\n"
        "add.u32 %i, %i, 512;\nsetp.lt.u32 %q, %i, " +
        bytes + ";\n@%q bra fill;\n";
    for (int i = 0; i < 4; i++)
      text += "ld.shared.b32 %a" + std::to_string(i) + ", [%s-" + std::to_string(512 * i) + "];\n";
    for (int i = 0; i < num_columns / 2; i++) {
      const std::string acc = "%acc" + std::to_string(i);
      text += "mad.lo.u32 %v, %t, 31, " + std::to_string(i) +
              ";\nand.b32 %v, %v, 7;\ncvt.rn.f32.u32 " + acc + ", %v;\n";
    }
    text += fence + "bar.sync 0;\nmov.u32 %s, smem;\nshr.u32 %s, %s, 4;\ncvt.u64.u32 %db, %s;\n" +
            "add.u64 %da, %db, " + std::to_string(a.descriptor(kFactorA, 64)) +
            ";\nadd.u64 %db, %db, " + std::to_string(b.descriptor(kFactorB, num_columns)) + ";\n";
    return body_text(2, text + body + "ret;");
  }
};

}  // namespace softgpu::test
