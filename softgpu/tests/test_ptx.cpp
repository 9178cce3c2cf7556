// Parser for PTX modules: results and errors.
#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <string>

#include "softgpu/ptx/syntax.h"
#include "tests/support/catch.h"

using namespace softgpu::ptx;
using Catch::Matchers::ContainsSubstring;

namespace {

Module read_module(const std::string &text) {
  return parse_module("test.ptx", std::make_shared<const std::string>(
                                      ".version 8.3\n.target sm_90a\n.address_size 64\n" + text));
}

/// A body and the module that its statements refer to.
struct Read {
  Module module;
  Body body;
  const Statement &operator[](size_t i) const { return body.statements.at(i); }
};

Read read_kernel(const std::string &text, const Rewrite &rewrite = nullptr) {
  Read read{read_module(text), {}};
  read.body = parse_body(read.module, read.module.entries.at("k"), rewrite);
  return read;
}

Read read_body(const std::string &body, const Rewrite &rewrite = nullptr) {
  return read_kernel(".entry k() {\n" + body + "\n}\n", rewrite);
}

const std::string kRegisters =
    ".reg .pred %p<4>; .reg .b16 %rs<4>; .reg .b32 %r<12>; .reg .f32 %f<4>; .reg .b64 %rd<4>;\n";

Operand operand_of(const std::string &text) {
  return read_body(kRegisters + "test.b32 " + text + ";")[0].operands.at(0);
}

/// Returns the opcodes of a body, with dots between their parts, without the final return.
std::vector<std::string> opcodes(const Body &body) {
  std::vector<std::string> all;
  for (const Statement &s : body.statements) {
    std::string opcode;
    for (std::string_view part : s.opcode) opcode.append(part).append(".");
    opcode.pop_back();
    all.push_back(opcode);
  }
  REQUIRE(all.back() == "ret");
  all.pop_back();
  return all;
}

}  // namespace

TEST_CASE("parse_module returns the declarations", "[ptx]") {
  const Module module = read_module(R"(
// .visible .entry commented_out() { }
.extern .shared .align 1024 .b8 dynamic[];
.shared .align 8 .b8 fixed[48];
.global .align 4 .b8 table[8] = {1, 2, 0xFF, 4};
.visible .global .f32 scale = 0f3F800000;
.const .align 8 .u64 matrix[2][3];
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.func (.param .align 8 .b8 result[24]) helper(.param .b32 x, .param .b64 y)
{
  ret;
}
.visible .entry first(
  .param .u32 n,
  .param .u64 .ptr .global .align 16 p,
  .param .align 128 .b8 map[128]
)
.maxntid 384, 2, 1
.minnctapersm 2
.maxnreg 168
.explicitcluster
.reqnctapercluster 1, 2
.maxclusterrank 4
{
  { /* } */ } // }
  .pragma "}";
  ret;
}
.weak .entry second() .reqntid 32, 4 { ret; }
.entry declared_only();
)");
  CHECK(module.target == 90);
  CHECK(module.is_arch_specific);

  REQUIRE(module.shared.size() == 2);
  CHECK(module.shared[0].is_extern);
  CHECK(module.shared[0].alignment == 1024);
  CHECK(module.shared[1].size == 48);

  REQUIRE(module.globals.size() == 3);
  CHECK(module.globals[0].size == 8);
  CHECK(module.globals[0].initial ==
        std::vector<std::byte>{std::byte{1}, std::byte{2}, std::byte{255}, std::byte{4}});
  CHECK(module.globals[1].initial[3] == std::byte{0x3F});
  CHECK(module.globals[2].size == 48);

  REQUIRE(module.functions.size() == 1);
  CHECK(module.functions.at("helper").results == std::vector<std::string>{"result"});
  CHECK(module.functions.at("helper").parameters == std::vector<std::string>{"x", "y"});

  REQUIRE(module.entries.size() == 2);
  const Entry &first = module.entries.at("first");
  CHECK(first.max_threads == 768);
  CHECK(first.min_blocks == 2);
  CHECK(first.max_registers == 168);
  CHECK(first.required_block == std::array<uint32_t, 3>{});
  CHECK(first.required_cluster == std::array<uint32_t, 3>{1, 2, 1});
  CHECK(first.max_cluster == 4);
  CHECK(first.explicit_cluster);
  REQUIRE(first.parameters.size() == 3);
  CHECK(first.parameters[0].size == 4);
  CHECK(first.parameters[1].size == 8);
  CHECK(first.parameters[1].alignment == 8);  // 16 is the alignment of the pointer's target
  CHECK(first.parameters[2].size == 128);
  CHECK(first.parameters[2].alignment == 128);
  const Entry &second = module.entries.at("second");
  CHECK(second.required_block == std::array<uint32_t, 3>{32, 4, 1});
  CHECK(second.max_threads == 128);
  CHECK(second.max_cluster == 0);
}

TEST_CASE("statements have the line numbers of the file", "[ptx]") {
  const Read read = read_body("\n{ /* a\nb */ }\n  bar.sync\n 0;\n// x\nexit;");
  CHECK(read[0].line == 4 + 4);
  CHECK(read[1].line == 4 + 7);
}

TEST_CASE("a module compiled with -lineinfo is accepted", "[ptx]") {
  const Read read = read_kernel(R"(
.file 1 "/a{b/c.cu", 1700000000, 123
.visible .entry k()
{
  .loc 1 23 0
$L__func_begin0:
  .loc 1 23 0
  .loc 1 25 3, function_name $L__info_string0, inlined_at 1 30 5
  bar.sync 0;
  .loc	1 31 1
  ret;
$L__func_end0:
}
  .file 2 "/d/e.h"
  .section .debug_str
  {
$L__info_string0:
.b8 95,90,78
.b8 0
  }
)");
  CHECK(opcodes(read.body) == std::vector<std::string>{"bar.sync", "ret"});
}

TEST_CASE("numbers", "[ptx]") {
  CHECK(operand_of("5").bits == 5);
  CHECK(operand_of("-1").bits == ~0ull);
  CHECK(operand_of("- 7").bits == -7ull);
  CHECK(operand_of("0x1F").bits == 31);
  CHECK(operand_of("-0x10").bits == -16ull);
  CHECK(operand_of("017").bits == 15);
  CHECK(operand_of("0b101").bits == 5);
  CHECK(operand_of("42U").bits == 42);
  CHECK(operand_of("-9223372036854775808").bits == 1ull << 63);
  CHECK(operand_of("18446744073709551615").bits == ~0ull);
  CHECK(operand_of("0xFFFFFFFFFFFFFFFF").bits == ~0ull);
  CHECK(operand_of("WARP_SZ").bits == 32);
  const Operand single = operand_of("0f3F800000");
  CHECK((single.is_float && !single.is_double && single.bits == 0x3F800000));
  CHECK(operand_of("-0f3F800000").bits == 0xBF800000);
  const Operand wide = operand_of("0dC000000000000000");
  CHECK((wide.is_float && wide.is_double && wide.bits == 0xC000000000000000));
  CHECK(operand_of("1.5").bits == std::bit_cast<uint64_t>(1.5));
  CHECK(operand_of("-2.5e-3").bits == std::bit_cast<uint64_t>(-2.5e-3));
  for (const char *bad : {"0x", "08", "1x", "0f123", "18446744073709551616", "-", "1 2"}) {
    INFO(bad);
    CHECK_THROWS_AS(operand_of(bad), Error);
  }
}

TEST_CASE("operands", "[ptx]") {
  SECTION("registers") {
    const Operand x = operand_of("%rd3");
    CHECK(x.kind == OperandKind::kRegister);
    CHECK(x.width == 8);
    CHECK(operand_of("%rs1").width == 4);
    CHECK(operand_of("%p1").width == 1);
    CHECK(operand_of("!%p1").is_negated);
    CHECK(operand_of("%r1").reg != operand_of("%r11").reg);
    CHECK(operand_of("%r12").kind == OperandKind::kSpecial);  // beyond the declared range
    CHECK(operand_of("%r01").kind == OperandKind::kSpecial);  // not a name of the range
    CHECK(operand_of("%tid.x").name == "%tid.x");
    CHECK(operand_of("_").kind == OperandKind::kDiscard);
  }
  SECTION("pairs") {
    const Operand x = operand_of("%p1|%p2");
    REQUIRE(x.second);
    CHECK(x.second->reg == x.reg + 1);
    CHECK(operand_of("_|%p2").kind == OperandKind::kDiscard);
    CHECK(operand_of("%r1 | _").second->kind == OperandKind::kDiscard);
  }
  SECTION("vectors") {
    const Operand x = operand_of("{%r1, _, -3,%f0}");
    REQUIRE(x.kind == OperandKind::kVector);
    REQUIRE(x.items.size() == 4);
    CHECK(x.items[0].kind == OperandKind::kRegister);
    CHECK(x.items[1].kind == OperandKind::kDiscard);
    CHECK(x.items[2].bits == -3ull);
    CHECK(x.items[3].width == 4);
  }
  SECTION("addresses") {
    const Operand x = operand_of("[%rd1+-8]");
    CHECK(x.kind == OperandKind::kAddress);
    CHECK(x.reg == operand_of("%rd1").reg);
    CHECK(x.width == 8);
    CHECK(x.offset == -8);
    CHECK(operand_of("[%rd1-8]").offset == -8);
    CHECK(operand_of("[ %rd1 + 0x10 ]").offset == 16);
    CHECK(operand_of("[%r1]").width == 4);
    CHECK(operand_of("[sym+4]").name == "sym");
    CHECK(operand_of("[sym+4]").offset == 4);
    CHECK(operand_of("[sym+4]").reg == -1);
    const Operand absolute = operand_of("[16]");
    CHECK(absolute.reg == -1);
    CHECK(absolute.name.empty());
    CHECK(absolute.offset == 16);
  }
  SECTION("addresses of tensor maps") {
    const Operand x = operand_of("[%rd1, {%r1, %r2, 0}]");
    REQUIRE(x.items.size() == 1);
    CHECK(x.items[0].kind == OperandKind::kVector);
    CHECK(x.items[0].items.size() == 3);
  }
  SECTION("symbols") {
    const Operand x = operand_of("sym+8");
    CHECK(x.kind == OperandKind::kSymbol);
    CHECK(x.name == "sym");
    CHECK(x.offset == 8);
  }
  SECTION("none") {
    for (const char *bad : {"[%rd1", "{%r1, }", "[%tid.x]", "%r1 %r2", "[%rd1+%r1]", "!5"}) {
      INFO(bad);
      CHECK_THROWS_AS(operand_of(bad), Error);
    }
  }
}

TEST_CASE("opcodes and guards", "[ptx]") {
  const Read read = read_body(kRegisters + R"(
    @%p1 bar.sync 0;
    @!%p2 mbarrier.try_wait.shared::cta.b64 %p0, [%r1], %rd1;
    ld.global.v2.f32 {%f1,%f2},[%rd1];
    exit;)");
  CHECK(read[0].guard == read[1].guard - 1);
  CHECK_FALSE(read[0].guard_is_negated);
  CHECK(read[1].guard_is_negated);
  CHECK(read[1].opcode[2] == "shared::cta");
  CHECK(read[1].operands.size() == 3);
  CHECK(read[2].opcode.back() == "f32");
  CHECK(read[2].text == "ld.global.v2.f32 {%f1,%f2},[%rd1]");
  CHECK(read[3].guard == -1);
  CHECK(read[3].operands.empty());
  CHECK_THROWS_AS(read_body(kRegisters + "@%r1 exit;"), Error);
  CHECK_THROWS_AS(read_body(kRegisters + "@%nothing exit;"), Error);
}

TEST_CASE("a block hides names of enclosing blocks", "[ptx]") {
  const Read read = read_body(R"(
    .reg .b32 x, y<3>;
    .shared .b32 s;
    use x, y2, s;
    {
      .reg .b64 x; .reg .pred y<2>; .shared .b64 s;
      use x, y1, s;
      use y2;
      { .reg .b32 x; use x; }
      use x;
    }
    use x, y1, s;)");
  CHECK(read[0].operands[0].width == 4);
  CHECK(read[1].operands[0].width == 8);
  CHECK(read[1].operands[1].width == 1);
  CHECK(read[2].operands[0].reg == read[0].operands[1].reg);  // the inner range has no y2
  CHECK(read[3].operands[0].width == 4);
  CHECK(read[3].operands[0].reg != read[0].operands[0].reg);
  CHECK(read[4].operands[0].reg == read[1].operands[0].reg);
  CHECK(read[5].operands[0].reg == read[0].operands[0].reg);
  CHECK(read[0].operands[2].name != read[1].operands[2].name);
  CHECK(read[5].operands[2].name == read[0].operands[2].name);
  REQUIRE(read.body.shared.size() == 2);
  CHECK(read.body.shared[1].offset == 8);
  CHECK(read.body.shared_bytes == 16);
}

TEST_CASE("equal labels in several blocks are distinct", "[ptx]") {
  const Read read = read_body(R"(
    .reg .pred %p;
    AGAIN: nop;
    { AGAIN: nop; @%p bra DONE; bra AGAIN; DONE: }
    { AGAIN: nop; @%p bra DONE; bra.uni AGAIN; DONE: }
    bra AGAIN;)");
  const auto target = [&](size_t i) { return read.body.labels.at(read[i].operands.at(0).bits); };
  CHECK(target(2) == 4);
  CHECK(target(3) == 1);
  CHECK(target(5) == 7);
  CHECK(target(6) == 4);
  CHECK(target(7) == 0);
  CHECK_THROWS_WITH(read_body("{ HERE: nop; } bra HERE;"), ContainsSubstring("unknown label HERE"));
}

TEST_CASE("branch tables are parsed", "[ptx]") {
  const Read read = read_body(R"(
    .reg .b32 %r<2>;
    $T: .branchtargets $B, $A, $B;
    brx.idx %r1, $T;
    $A: nop;
    { $A: brx.idx %r1, U; U: .branchtargets $A, $B; }
    $B: exit;)");
  const auto targets = [&](size_t i) {
    std::vector<uint32_t> all;
    for (uint32_t label : read.body.branch_tables.at(read[i].operands.at(1).bits))
      all.push_back(read.body.labels.at(label));
    return all;
  };
  CHECK(targets(0) == std::vector<uint32_t>{3, 1, 3});
  CHECK(targets(2) == std::vector<uint32_t>{2, 3});
  CHECK_THROWS_AS(read_body(".reg .b32 %r<2>; A: brx.idx %r1, A;"), Error);
  CHECK_THROWS_AS(read_body("T: .branchtargets T; bra T;"), Error);
}

TEST_CASE("a called function is inlined", "[ptx]") {
  const Read read = read_kernel(R"(
.func (.param .b32 f_result) twice(.param .b32 f_x)
{
  .reg .b32 %r<3>; .reg .pred %p<2>;
  .shared .b32 common;
  .local .b64 own;
  ld.param.b32 %r1, [f_x];
LOOP:
  @%p1 bra LOOP;
  @%p1 ret;
  st.param.b32 [f_result], %r1;
  st.shared.b32 [common], %r1;
  ret;
}
.entry k()
{
  .reg .b32 %r<3>; .reg .pred %p<2>;
LOOP:
  { // callseq 0, 0
    .param .b32 param0;
    .param .b32 retval0;
    call.uni (retval0), twice, (param0);
    ld.param.b32 %r1, [retval0];
  }
  {
    .param .b32 param0;
    .param .b32 retval0;
    @%p1 call (retval0),
      twice,
      (param0);
  }
  @%p1 bra LOOP;
})");
  const auto target = [&](size_t i) { return read.body.labels.at(read[i].operands.at(0).bits); };
  const std::vector<std::string> function = {"ld.param.b32", "bra",           "bra",
                                             "st.param.b32", "st.shared.b32", "bra"};
  std::vector<std::string> expected = function;
  expected.push_back("ld.param.b32");
  expected.push_back("bra");  // skips the call
  expected.insert(expected.end(), function.begin(), function.end());
  expected.push_back("bra");
  REQUIRE(opcodes(read.body) == expected);

  CHECK(target(1) == 1);
  CHECK(target(2) == 6);
  CHECK(target(5) == 6);
  CHECK(target(7) == 14);
  CHECK(read[7].guard_is_negated);
  CHECK(target(9) == 9);
  CHECK(target(13) == 14);
  CHECK(target(14) == 0);
  // Registers differ between calls; parameters are variables of the caller.
  CHECK(read[0].operands[0].reg != read[8].operands[0].reg);
  CHECK(read[3].operands[0].name == read[6].operands[1].name);
  CHECK(read[0].operands[1].name != read[3].operands[0].name);
  // Shared variables of a function are common to all calls; local variables of blocks that have
  // ended share memory.
  CHECK(read[4].operands[0].name == read[12].operands[0].name);
  CHECK(read.body.shared.size() == 1);
  CHECK(read.body.local_bytes == 24);
}

TEST_CASE("vprintf is ignored, __assertfail traps, and other external calls are rejected",
          "[ptx]") {
  const Read read = read_body(R"(
    .reg .pred %p<2>; .reg .b64 %rd<2>; .param .b64 a; .param .b32 r;
    call.uni (r), vprintf, (a, a);
    @%p1 call.uni __assertfail, (a, a);
    nop;)");
  CHECK(opcodes(read.body) == std::vector<std::string>{"trap", "nop"});
  CHECK(read[0].guard >= 0);
  CHECK_THROWS_WITH(read_body(".param .b64 a; call unknown_function, (a);"),
                    ContainsSubstring("unknown_function"));
  CHECK_THROWS_AS(read_body(".reg .b64 %rd1; call %rd1, ();"), Error);
  CHECK_THROWS_WITH(read_kernel(".func f() { call f; ret; } .entry k() { call f; ret; }"),
                    ContainsSubstring("nested"));
  CHECK_THROWS_WITH(read_kernel(".func f(.param .b32 x) { ret; } .entry k() { call f; ret; }"),
                    ContainsSubstring("number of parameters"));
}

TEST_CASE("statements can be rewritten before they are parsed", "[ptx]") {
  std::vector<std::string> shown;
  const Read read = read_body(".reg .b32 %r<3>;\nadd.s32 \t%r1,\n %r2, 1;\nbar.sync 0;\nexit;",
                              [&](const std::string &statement) -> std::optional<std::string> {
                                shown.push_back(statement);
                                if (statement == "bar.sync 0") return "";
                                if (statement.starts_with("add")) return "sub.s32 %r2, %r1, 2";
                                return std::nullopt;
                              });
  CHECK(shown == std::vector<std::string>{"add.s32 %r1, %r2, 1", "bar.sync 0", "exit"});
  CHECK(opcodes(read.body) == std::vector<std::string>{"sub.s32", "exit"});
  CHECK(read[0].operands[2].bits == 2);
}

TEST_CASE("a syntax error names file and line", "[ptx]") {
  CHECK_THROWS_WITH(read_module("\n.nonsense 5;"),
                    ContainsSubstring("test.ptx:5: ") && ContainsSubstring(".nonsense"));
  CHECK_THROWS_WITH(read_body("\nadd.s32 [;"), ContainsSubstring("test.ptx:6: "));
  CHECK_THROWS_AS(read_module(".entry k() { ret;"), Error);
  CHECK_THROWS_AS(read_module(".global .b32 x = generic(y);"), Error);
  CHECK_THROWS_AS(read_module(".entry k() .unknown 3 { }"), Error);
  CHECK_THROWS_AS(read_module(".entry k() .reqnctapercluster 2 .blocksareclusters { }"), Error);
  CHECK_THROWS_AS(read_body(".reg .b128 %x;"), Error);
  CHECK_THROWS_AS(read_body(".nonsense;"), Error);
  CHECK_THROWS_AS(read_body("exit"), Error);
}
