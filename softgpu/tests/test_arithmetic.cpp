// Results of arithmetic, comparisons, conversions and moves, for all types and modifiers.
#include <bit>
#include <cmath>

#include "softgpu/tests/harness.h"
#include "softgpu/tests/recorded.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

TEST_CASE("integer arithmetic has the recorded results", "[arithmetic]") {
  constexpr Recorded kRows[] = {
      {"***", "<add/sub>.INT", 0xBC0B3880},
      {"***", "<mul.lo/mul.hi>.INT", 0x6411E190},
      {"****", "<mad.lo/mad.hi>.INT", 0x7BC2D646},
      {"****", "sad.INT", 0x3BD8F336},
      {"***", "<div/rem>.INT", 0x60F37ED0},  // by zero: all ones, the dividend
      {"***", "<min/max>.INT", 0xEB51A81E},
      {"**", "<abs/neg>.<s16/s32/s64>", 0xC8BBEB12},
      {"w**", "mul.wide.<u16/s16/u32/s32>", 0xACBF8287},
      {"w**w", "mad.wide.<u16/s16/u32/s32>", 0xBC38CF57},
      {"444", "<add/min/max>.<u16x2/s16x2>", 0x32D85A08},
      {"***", "<and/or/xor>.<b16/b32/b64>", 0x3E4BC931},
      {"**", "not.<b16/b32/b64>", 0xBBEC7CE5},
      {"**4", "<shl/shr>.<b16/b32/b64>", 0xF4211AA0},
      {"**4", "shr.INT", 0xDA219D9F},
      {"4444", "shf.<l/r>.<wrap/clamp>.b32", 0xAE2F6BF6},
      {"4444", "lop3.b32|<0/255/1/2/4/8/16/32/64/128/0xE8/0x96/0xCA/0x6A>", 0x49BAB39B},
      {"**44", "bfe.<u32/s32/u64/s64>", 0x8F341906},
      {"***44", "bfi.<b32/b64>", 0x6B085348},
      {"4*", "<popc/clz>.<b32/b64>", 0x7FA8DE63},
      {"**", "brev.<b32/b64>", 0xACC32385},
      {"4*", "bfind</.shiftamt>.<u32/s32/u64/s64>", 0x8D5E5200},
      {"4444", "prmt.b32", 0x3E7187C6},
      {"444", "bmsk.<clamp/wrap>.b32", 0x37A62CE2},
  };
  check_recorded(kRows);
}

TEST_CASE("multi-word sums have the recorded results", "[arithmetic]") {
  constexpr Recorded kShort[] = {
      {"44444",
       "<add/sub>.cc.u32 %w1, %a, %b; <addc/subc>.cc.u32 %w2, %c, %e; <addc/subc>.u32 %w3, 0, 0;",
       0x45582D5E},
      {"44444",
       "mad.lo.cc.u32 %w1, %b, %e, %a; madc.hi.cc.u32 %w2, %b, %e, %c; addc.u32 %w3, 0, 0;",
       0xFA043A0A},
      {"44444", "mad.hi.cc.u32 %w1, %a, %b, %c; madc.lo.u32 %w2, %a, %b, %e; mov.b32 %w3, 0;",
       0x22725557},
      // Other statements keep the carry.
      {"44444",
       "add.cc.u32 %w1, %a, %b; { .reg .b32 %u1, %u2; add.u32 %u1, %t, 1; add.u32 %u2, %u1, %u1; } "
       "addc.u32 %w2, 0, 0; mov.b32 %w3, 0;",
       0x82A2E834},
      // Inactive lanes keep their carry.
      {"44444", "add.cc.u32 %w1, %a, %b; @%executes add.cc.u32 %w2, 0, 0; addc.u32 %w3, 0, 0;",
       0x55363CB4},
  };
  constexpr Recorded kLong[] = {
      {"88888",
       "<add/sub>.cc.u64 %l1, %a, %b; <addc/subc>.cc.u64 %l2, %c, %e; <addc/subc>.u64 %l3, 0, 0;",
       0x8F7A5958},
      {"88888",
       "mad.lo.cc.u64 %l1, %b, %e, %a; madc.hi.cc.u64 %l2, %b, %e, %c; addc.u64 %l3, 0, 0;",
       0xEF24C299},
      {"88888", "mad.hi.cc.u64 %l1, %a, %b, %c; madc.lo.u64 %l2, %a, %b, %e; mov.b64 %l3, 0;",
       0x7326DA5B},
  };
  check_recorded(kShort, "", "mad.lo.u32 %d, %w1, 31, %w2; mad.lo.u32 %d, %d, 31, %w3;");
  check_recorded(kLong, "", "mad.lo.u64 %d, %l1, 31, %l2; mad.lo.u64 %d, %d, 31, %l3;");
}

TEST_CASE("floating-point arithmetic has the recorded results", "[arithmetic]") {
  constexpr Recorded kRows[] = {
      {"***", "<add/sub/mul></.ftz/.sat/.ftz.sat>.f32", 0xF3D61927},
      {"****", "fma.rn</.ftz/.sat/.ftz.sat>.f32", 0x18B258A1},
      {"***", "<add/sub/mul/div>.ROUND.<f32/f64>", 0xDA2FA707},
      {"****", "fma.ROUND.<f32/f64>", 0x761ABE00},
      {"**", "<rcp/sqrt>.ROUND.<f32/f64>", 0x6322FF46},
      {"***", "<add/sub/mul>.f64", 0x7F26B8C6},
      {"***", "<min/max></.ftz/.NaN>.f32", 0xB28E2CC3},
      {"***", "<min/max>.f64", 0xDDC0FADD},
      {"4f", "<abs/neg></.ftz>.f32", 0x864E3C6A},
      {"8d", "<abs/neg>.f64", 0xE34AEC40},
      {"4ff", "copysign.f32", 0xBE880D6D},
      {"8dd", "copysign.f64", 0x086340EC},
      {"**", "<rcp/sqrt/rsqrt>.approx</.ftz>.f32", 0x8D994317},
      {"***", "div.<approx/full></.ftz>.f32", 0x658DF130},
      {"**", "<rcp.approx.ftz/rsqrt.approx/rsqrt.approx.ftz>.f64", 0x96BDA761},
      // Halves are rounded once.
      {"***", "<add/sub.rn/mul>.<f16/bf16/f16x2/bf16x2>", 0x7CCCF2B3},
      {"****", "fma.rn</.relu>.<f16/bf16/f16x2/bf16x2>", 0x326F1BC8},
      {"***", "<add/sub/mul>.sat.<f16/f16x2>", 0x26E15BE0},
      {"****", "fma.rn.sat.<f16/f16x2>", 0xA03B0EA9},
      {"***", "<min/max></.NaN>.<f16/bf16/f16x2/bf16x2>", 0x19DB6742},
      {"**", "<abs/neg>.<f16/bf16/f16x2/bf16x2>", 0xBB1403C0},
      // (1 + 2^-k) (1 + 2^-l) is the midpoint of two halves, and the addend below the last bit of
      // an fp32.
      {"h",
       "mov.b16 %h1, <0x3C20/0xBC20>; mov.b16 %h2, 0x3C10; mov.b16 %h3, <0/1/0x8001>; "
       "fma.rn.f16 %d, %h1, %h2, %h3;",
       0x32DF31E0},
      {"h",
       "mov.b16 %h1, <0x3F90/0xBF90>; mov.b16 %h2, 0x3F84; mov.b16 %h3, <0/1/0x8001/0x3380>; "
       "fma.rn.bf16 %d, %h1, %h2, %h3;",
       0x7BA87280},
  };
  check_recorded(kRows);
}

/// Checks a function of the C library, whose last bit differs between versions.
template <class F>
void check_function(const std::string &opcode, F &&function) {
  for (const bool flushes : {false, true}) {
    if (flushes && opcode == "tanh") continue;
    const auto flush = [&](float x) {
      return flushes && std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
    };
    const std::string text =
        "mov.b32 %d, 0; " + opcode + ".approx" + (flushes ? ".ftz" : "") + ".f32 %d, %a;";
    const auto results = run_recorded("ff", text), operands = operands_of('f', 1, results.size());
    CAPTURE(text);
    for (size_t i = 0; i < results.size(); i++) {
      const float x = std::bit_cast<float>(static_cast<uint32_t>(operands[i])),
                  y = flush(function(flush(x)));
      CAPTURE(x);
      REQUIRE(results[i] == (std::isnan(y) ? 0x7FFFFFFF : std::bit_cast<uint32_t>(y)));
    }
  }
}

TEST_CASE("approximations match the C library", "[arithmetic]") {
  check_function("ex2",
                 [](float x) { return static_cast<float>(std::exp2(static_cast<double>(x))); });
  check_function("lg2", [](float x) { return std::log2(x); });
  check_function("sin", [](float x) { return std::sin(x); });
  check_function("cos", [](float x) { return std::cos(x); });
  check_function("tanh", [](float x) { return std::tanh(x); });
  // Functions of halves convert to fp32 and back.
  for (const std::string type : {"f16", "bf16"}) {
    CAPTURE(type);
    const auto half = run_recorded("hh", "tanh.approx." + type + " %d, %a;");
    const std::string wide = "cvt.f32." + type + " %f1, %a; tanh.approx.f32 %f1, %f1; ";
    CHECK(run_recorded("hh", wide + "cvt.rn." + type + ".f32 %d, %f1;") == half);
    CHECK(run_recorded("4h", "mov.b32 %w1, {%a, %h1}; tanh.approx." + type +
                                 "x2 %d, %w1; and.b32 %d, %d, 0xFFFF;") == half);
  }
}

TEST_CASE("comparisons have the recorded results", "[arithmetic]") {
  constexpr Recorded kRows[] = {
      {"p**", "setp.<eq/ne/lt/le/gt/ge>.INT", 0x8C926AC0},
      {"p**", "setp.<lo/ls/hi/hs>.<u16/u32/u64>", 0x470E5040},
      {"p**", "setp.<eq/ne>.<b16/b32/b64>", 0xB4A9B5A0},
      {"p**", "setp.<eq/ne/lt/le/gt/ge>.<f32/ftz.f32/f64/f16/bf16>", 0x255A93E7},
      {"p**", "setp.<equ/neu/ltu/leu/gtu/geu/num/nan>.<f32/ftz.f32/f64/f16/bf16>", 0xFCA56D39},
      {"#**", "set.<lt.u32.s32/gt.f32.f32/leu.u32.f64>", 0x5FB0E4DA},
      {"#**p", "set.lt.and.u32.s32", 0x8BDBE935},
      {"4xx", "set.lt.<f16x2.f16x2/bf16x2.bf16x2/u32.f16x2>", 0x57043925},
      {"hhh", "set.lt.<f16.f16/bf16.bf16>", 0x1AFAA520},
      {"***p", "selp.<b16/u16/s16/b32/u32/s32/f32/b64/u64/s64>", 0xF0756A6F},
      {"8ddp", "selp.f64", 0x46EA21F6},
  };
  check_recorded(kRows);
}

TEST_CASE("predicates have the recorded results", "[arithmetic]") {
  constexpr Recorded kRows[] = {
      {"4ffp", "setp.lt.s32 <%q1/_>|%q2, %a, %b;", 0xF8BEE079},
      {"4ffp", "setp.lt.<and/or/xor>.s32 %q1|%q2, %a, %b, <%c/!%c>;", 0x02F57C30},
      // A destination may be the predicate of the combination.
      {"4ffp", "mov.pred %q1, %c; setp.lt.and.s32 %q1|%q2, %a, %b, %q1;", 0xCEC49DC6},
      {"4ffp", "@%c setp.lt.s32 %q1|%q2, %a, %b;", 0xCEC49DC6},
      {"4xx", "setp.ltu.<f16x2/bf16x2> %q1|%q2, %a, %b;", 0x380B1B7A},
      {"4ffp", "setp.lt.u32 %q2, %a, %b; <and/or/xor>.pred %q1, <%q2/!%q2>, <%c/!%c>;", 0xBD39EC00},
      {"4ffp", "setp.lt.u32 %q2, %a, %b; not.pred %q1, %q2; @%c not.pred %q2, %q2;", 0x4376B8FD},
      {"4ffp", "mov.pred %q1, <1/0/%c/!%c>;", 0x254EFAB0},
      {"4ffp", "selp.b32 %w1, 1, 0, !%c; setp.eq.u32 %q1, %w1, 1;", 0x204615AD},
  };
  check_recorded(kRows, "setp.ne.u32 %q1, 0, 0; setp.ne.u32 %q2, 0, 0;",
                 "selp.u32 %w1, 1, 0, %q1; selp.u32 %w2, 2, 0, %q2; or.b32 %d, %w1, %w2;");
}

TEST_CASE("conversions have the recorded results", "[arithmetic]") {
  constexpr Recorded kRows[] = {
      {"#*", "cvt.ALL.ALL", 0xB6C6C280},
      {"#*", "cvt.ROUND.<f32/f64>.ALL", 0x64B25B9E},
      {"#*", "cvt.rn.<f16/bf16>.ALL", 0x493743DE},
      {"#*", "cvt.<rni/rzi/rmi/rpi>.ALL.<f32/f64/f16/bf16>", 0xEE879630},
      {"#*", "cvt.rpi.ftz.ALL.f32", 0x18AB7A55},
      {"#*", "cvt.<f32/f64>.<f16/bf16>", 0x491A06F4},
      {"#*", "cvt.sat.f32.f16", 0x975F0DC5},
      {"#*", "cvt.<f64.f32/ftz.f64.f32/sat.f32.f32/ftz.f32.f32>", 0x30DB3944},
      {"#*", "cvt.ROUND.f32.f64", 0x6E21E380},
      {"#*", "cvt.<rni/rzi/rmi/rpi>.<f32.f32/f64.f64/f16.f16>", 0xAA9B6FBB},
      {"#*", "cvt.ROUND.<f16/bf16>.<f32/f64>", 0xBA51D47F},
      {"#*", "cvt.rn.ftz.<f16/bf16>.f32", 0xED5E1AC1},
      {"#ff", "cvt.rn.<f16x2/bf16x2>.f32", 0xCD3582BE},
      {"4f", "cvt.rna.tf32.f32", 0x23DA43E5},
      // Registers may be wider than the types.
      {"88", "cvt.<s32.s8/u16.u32>", 0xA8F98DD0},
      {"84", "cvt.s16.s32", 0xAA85F180},
      {"44", "cvt.<s16.s32/u16.u32>", 0x31507700},
      {"4f", "cvt.rzi.s16.f32", 0xD9613F18},
      {"2f", "cvt.rzi.s8.f32", 0x448DE265},
      {"48", "cvt.u32.u16", 0xA86783B8},
      {"22", "cvt.<u16.u8/s16.s8>", 0x05CD5700},
  };
  check_recorded(kRows);
}

TEST_CASE("moves have the recorded results", "[arithmetic]") {
  constexpr Recorded kRows[] = {
      {"**", "mov.<b16/u16/s16/b32/u32/s32/f32/b64/u64/s64>", 0xD4CE93A1},
      {"88", "mov.f64", 0x1228C689},
      {"88", "mov.b64 {%w0, %w1}, %a; mov.b64 %d, {<%w0, %w1/%w1, %w0>};", 0xC9B72558},
      {"88", "mov.b64 {%h0, %h1, %h2, %h3}, %a; mov.b64 %d, {<%h0, %h1/%h3, %h2>, %h2, %h0};",
       0x0645A0F1},
      {"88", "mov.b64 {_, %w1}, %a; cvt.u64.u32 %d, %w1;", 0x4D9FB027},
      {"44", "mov.b32 {%h0, %h1}, %a; mov.b32 %d, {%h1, %h0};", 0x52ED537A},
      {"88", "mov.b64 %d, {1, -1};", 0x10329DC5},
      {"88", "mov.b64 {%w0, %w1}, %a; @%executes mov.b64 %d, {%w1, %w0};", 0x248AF981},
      {"88",
       "mov.b32 %w0, 5; mov.b32 %w1, 6; @%executes mov.b64 {%w0, %w1}, %a; mov.b64 %d, {%w0, %w1};",
       0x9C36D989},
      {"4", "mov.u32 %d, %laneid;", 0x22B51DC5},
      // Immediates convert to the type of the instruction.
      {"f", "mov.f32 %d, <0f40000000/0d4000000000000000/-1.5>;", 0x302CF925},
      {"f", "mov.f64 %l1, 1.5; cvt.rn.f32.f64 %d, %l1;", 0x96E99DC5},
      {"4", "mov.u64 %l1, -2; shr.u64 %l1, %l1, 32; cvt.u32.u64 %d, %l1;", 0x11201DC5},
      {"8",
       "mov.u64 %d, <5/-1/- 7/0x1F/-0x10/017/0b101/42U/-9223372036854775808/18446744073709551615/"
       "0xFFFFFFFFFFFFFFFF/WARP_SZ>;",
       0x5C2FBBC0},
      {"f", "mov.f32 %d, <-0f3F800000/-2.5e-3/0dC000000000000000>;", 0x3926F925},
      {"8", "mov.f64 %d, <0dC000000000000000/-2.5e-3>;", 0xAF8138A0},
      // Names and labels of a block hide those of enclosing blocks: 114, 3 and 53.
      {"4",
       ".reg .b32 %x, %y1, %y2; mov.u32 %x, 1; mov.u32 %y2, 2; { .reg .b64 %x; .reg .b32 %y1; "
       "mov.u64 %x, 5; mov.u32 %y1, 7; add.u32 %y2, %y2, %y1; { .reg .b32 %x; mov.u32 %x, 11; } "
       "cvt.u32.u64 %y1, %x; add.u32 %y2, %y2, %y1; } mad.lo.u32 %d, %x, 100, %y2;",
       0xFE349DC5},
      {"4",
       ".local .b32 s; st.local.u32 [s], 3; { .local .b64 s; st.local.u64 [s], 9; } "
       "ld.local.u32 %d, [s];",
       0x11201DC5},
      {"4",
       "mov.u32 %d, 0; { AGAIN: add.u32 %d, %d, 1; setp.lt.u32 %q1, %d, 3; @!%q1 bra DONE; "
       "bra AGAIN; DONE: } { AGAIN: add.u32 %d, %d, 10; setp.lt.u32 %q1, %d, 50; @!%q1 bra DONE; "
       "bra.uni AGAIN; DONE: }",
       0x81591DC5},
      // The clock increases between two reads.
      {"p", "mov.u64 %l1, %clock64; mov.u64 %l2, %clock64; setp.lt.u64 %d, %l1, %l2;", 0x5FB31DC5},
      {"4", "mov.u32 %w0, %clock; mov.u32 %w1, %clock; sub.u32 %d, %w1, %w0;", 0x5FB31DC5},
      {"p",
       "mov.u64 %l1, tile; cvta.shared.u64 %l1, %l1; isspacep.<shared/shared::cta/shared::cluster> "
       "%d, %l1;",
       0x35C67925},
      {"p", "mov.u64 %l1, tile; cvta.shared.u64 %l1, %l1; isspacep.<global/local> %d, %l1;",
       0x0D33B8A0},
      {"p", "mov.u64 %l1, depot; cvta.local.u64 %l1, %l1; isspacep.<local/shared> %d, %l1;",
       0xCF1A38A0},
      {"p", "cvta.global.u64 %l1, %p1; isspacep.<global/local> %d, %l1;", 0xCF1A38A0},
      {"8",
       "mov.u64 %l1, tile; cvta.shared.u64 %l2, %l1; cvta.to.shared.u64 %l2, %l2; sub.u64 %d, %l1, "
       "%l2;",
       0x38699DC5},
      {"8",
       "mov.u64 %l1, depot; cvta.local.u64 %l2, %l1; cvta.to.local.u64 %l2, %l2; sub.u64 %d, %l1, "
       "%l2;",
       0x38699DC5},
      {"8", "cvta.global.u64 %l2, %p1; cvta.to.global.u64 %l2, %l2; sub.u64 %d, %p1, %l2;",
       0x38699DC5},
      {"4",
       "mov.u64 %l1, tile; cvta.shared.u64 %l1, %l1; st.u32 [%l1], 77; ld.shared.u32 %d, [tile];",
       0x5A791DC5},
  };
  check_recorded(kRows);
}

TEST_CASE("cvta.to of an address outside its space is a violation", "[arithmetic]") {
  Buffer<uint32_t> buffer(1);
  const Kernel kernel(body_text(1, ".reg .b64 %x;\ncvta.to.shared.u64 %x, %p0;\n"));
  const Outcome outcome = kernel({}, buffer);
  CAPTURE(outcome);
  REQUIRE(outcome.violations.size() == 1);
  CHECK_CONTAINS(outcome.violations[0], "state space that does not contain it");
}

}  // namespace
}  // namespace softgpu::test
