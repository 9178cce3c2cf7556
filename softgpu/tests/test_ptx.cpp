// Parser for PTX modules: declarations and errors.  All programs of the other tests test the rest.
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

Read read_kernel(const std::string &text) {
  Read read{read_module(text), {}};
  read.body = parse_body(read.module, read.module.entries.at("k"));
  return read;
}

Read read_body(const std::string &body) {
  return read_kernel(".entry k() {\n" + body + "\n}\n");
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

TEST_CASE("declarations that no running kernel shows are parsed", "[ptx]") {
  const Module module = read_module(R"(
// .visible .entry commented_out() { }
.const .align 8 .u64 matrix[2][3];
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.visible .entry first(.param .u64 .ptr .global .align 16 p) .maxntid 384, 2, 1 .maxnreg 168
.explicitcluster
{
  { /* } */ } // }
  .pragma "}";
  ret;
}
.weak .entry second() { ret; }
.entry declared_only();
)");
  CHECK(module.globals.at(0).size == 48);
  REQUIRE(module.entries.size() == 2);
  const Entry &first = module.entries.at("first");
  CHECK(first.max_threads == 768);
  CHECK(first.max_registers == 168);
  CHECK(first.explicit_cluster);
  CHECK(first.parameters.at(0).alignment == 8);  // 16 is the alignment of the pointer's target
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

TEST_CASE("a syntax error names file and line", "[ptx]") {
  CHECK_THROWS_WITH(read_module("\n.nonsense 5;"),
                    ContainsSubstring("test.ptx:5: ") && ContainsSubstring(".nonsense"));
  CHECK_THROWS_WITH(read_body("\nadd.s32 [;"), ContainsSubstring("test.ptx:6: "));
  CHECK_THROWS_AS(read_module(".entry k() { ret;"), Error);
  CHECK_THROWS_AS(read_module(".global .b32 x = generic(y);"), Error);
  CHECK_THROWS_AS(read_module(".entry k() .unknown 3 { }"), Error);
  CHECK_THROWS_AS(read_module(".entry k() .reqnctapercluster 2 .blocksareclusters { }"), Error);
  CHECK_THROWS_WITH(read_body("{ HERE: nop; } bra HERE;"), ContainsSubstring("unknown label HERE"));
  for (const char *const body :
       {".reg .b32 %r<2>; A: brx.idx %r1, A;", "T: .branchtargets T; bra T;",
        ".reg .b32 %r1; @%r1 exit;", "@%nothing exit;"})
    CHECK_THROWS_AS(read_body(body), Error);
  CHECK_THROWS_AS(read_body(".reg .b128 %x;"), Error);
  CHECK_THROWS_AS(read_body(".nonsense;"), Error);
  CHECK_THROWS_AS(read_body("exit"), Error);
}
