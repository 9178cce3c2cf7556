// Invalid forms of instructions: an additional or missing modifier or operand, or an operand that
// must not be negated.  Each is an error that names the instruction.
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

/// Returns "" if the statement decodes, otherwise the message.
std::string error_of(const std::string &statement) {
  constexpr char kRegisters[] =
      ".reg .pred %q, %s;\n.reg .b16 %h<4>;\n.reg .b32 %r<9>;\n.reg .f32 %f<4>;\n.reg .b64 "
      "%rd<9>;\n";
  try {
    const Kernel kernel(body_text(1, kRegisters + statement + ";\nend:\nret;"));
  } catch (const ptx::Error &error) {
    return error.what();
  }
  return "";
}

struct Form {
  const char *known, *unknown;
};

constexpr Form kForms[] = {
    {"add.u32 %r0, %r1, %r2", "add.u32 %r0, !%r1, %r2"},
    {"add.u32 %r0, %r1, %r2", "add.u32 %r0|%q, %r1, %r2"},
    {"setp.eq.and.u32 %q|%s, %r0, 1, !%q", "setp.eq.and.u32 %q|%s, !%r0, 1, %q"},
    {"selp.u32 %r0, %r1, %r2, !%q", "selp.u32 %r0, %r1|%q, %r2, %q"},
    {"ld.global.u32 %r0, [%p0]", "ld.global.u32 %r0, [%p0, {%r1}]"},
    {"bra.uni end", "bra.wide end"},
    {"exit", "exit.uni"},
    {"ret.uni", "ret %r0"},
    {"trap", "trap 1"},
    {"brkpt", "brkpt 1"},
    {"bar.sync 0, 64", "bar.sync 0, 64, 5"},
    {"bar.sync 0", "bar.sync.popc 0"},
    {"bar.arrive 1, 64", "bar.arrive 1"},
    {"bar.red.popc.u32 %r0, 0, !%q", "bar.red.popc.pred %r0, 0, !%q"},
    {"barrier.red.or.aligned.pred %q, 0, 64, %s", "barrier.red.or.and.pred %q, 0, %s"},
    {"barrier.cluster.arrive.relaxed.aligned", "barrier.cluster.arrive.acquire.aligned"},
    {"barrier.cluster.wait", "barrier.cluster.wait 0"},
    {"griddepcontrol.wait", "griddepcontrol.wait.all"},
    {"shfl.sync.idx.b32 %r0|%q, %r1, 0, 31, -1", "shfl.sync.idx.b32 %r0, %r1, 0, 31, -1, 0"},
    {"vote.sync.any.pred %q, !%s, -1", "vote.sync.any.b32 %q, %s, -1"},
    {"match.all.sync.b32 %r0|%q, %r1, -1", "match.any.sync.b32 %r0|%q, %r1, -1"},
    {"redux.sync.add.u32 %r0, %r1, -1", "redux.sync.add.sat.u32 %r0, %r1, -1"},
    {"elect.sync %r0|%q, -1", "elect.sync.b32 %r0|%q, -1"},
    {"bar.warp.sync -1", "bar.warp.sync -1, 0"},
    {"activemask.b32 %r0", "activemask.b32 %r0, %r1"},
    {"membar.gl", "membar"},
    {"fence.acq_rel.gpu", "fence.acq_rel.gpu 1"},
    {"fence.proxy.async", "fence.proxy"},
    {"fence.proxy.async.global", "fence.proxy.async.alias"},
    {"fence.proxy.tensormap::generic.release.gpu", "fence.proxy.tensormap::generic"},
    {"fence.mbarrier_init.release.cluster", "fence.mbarrier_init"},
    {"createpolicy.fractional.L2::evict_first.b64 %rd0, 1.0",
     "createpolicy.fractional.L3::evict_first.b64 %rd0, 1.0"},
    {"createpolicy.cvt.L2.b64 %rd0, %rd1", "createpolicy.L2.b64 %rd0, %rd1"},
    {"prefetch.global.L2 [%p0]", "prefetch.global.L3 [%p0]"},
    {"nanosleep.u32 100", "nanosleep.u32 100, 5"},
    {"cp.async.wait_group 0", "cp.async.wait_group.read 0"},
    {"cp.async.ca.shared.global [%r0], [%p0], 16, %q",
     "cp.async.ca.shared.global [%r0], [%p0], 16, !%q"},
    {"cp.async.bulk.commit_group", "cp.async.bulk.commit_group 0"},
    {"cp.async.bulk.global.shared::cta.bulk_group [%p0], [%r0], 16",
     "cp.async.bulk.global.shared::cta.bulk_group.f16 [%p0], [%r0], 16"},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
     "[%r0], [%p0, {%r1, %r2}], [%r3]",
     "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
     "[%r0], [%p0, {%r1, %r2}]"},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
     "cluster "
     "[%r0], [%p0, {%r1, %r2}], [%r3], %h0",
     "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
     "cluster "
     "[%r0], [%p0, {%r1, %r2}], [%r3]"},
    {"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
     "[%r0], [%p0, {%r1, %r2, %r3}], [%r4], {%h0}",
     "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
     "[%r0], [%p0, {%r1, %r2, %r3}], [%r4]"},
    {"cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%p0, {%r1}], [%r0]",
     "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group.multicast::cluster "
     "[%p0, {%r1}], [%r0]"},
    {"tensormap.replace.tile.rank.global.b1024.b32 [%p0], 2",
     "tensormap.replace.tile.rank.global.b1024.b64 [%p0], 2"},
    {"mbarrier.init.shared::cta.b64 [%r0], 1", "mbarrier.init.parity.shared::cta.b64 [%r0], 1"},
    {"mbarrier.try_wait.parity.shared::cta.b64 %q, [%r0], 0",
     "mbarrier.try_wait.parity.expect_tx.shared::cta.b64 %q, [%r0], 0"},
    {"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0], 16",
     "mbarrier.expect_tx.release.cta.shared::cta.b64 [%r0], 16"},
    {"setmaxnreg.dec.sync.aligned.u32 40", "setmaxnreg.sync.aligned.u32 40"},
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%r4]",
     "ldmatrix.sync.aligned.m8n8.shared.b16 {%r0, %r1, %r2, %r3}, [%r4]"},
    {"wgmma.fence.sync.aligned", "wgmma.fence.sync.aligned 0"},
    {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd1, "
     "%q, 1, -1, 0, 1",
     "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd1, "
     "!%q, 1, -1, 0, 1"},
    {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd1, "
     "%q, 1, 1, 0, 0",
     "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd1, "
     "%q, 1, 0, 0, 0"},
};

constexpr const char *kKnown[] = {
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, %r3}, "
    "{%r4, %r5}, {%r0, %r1, %r2, %r3}",
    "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, "
    "[%r8], %t"};

constexpr const char *kRejected[] = {
    "add.u32.wrong %r0, %r1, %r2",
    "add.wrong.u32 %r0, %r1, %r2",
    "add.u8 %h0, %h1, %h2",
    "add.u32 %r0, %r1",
    "add.u32 %r0, %r1, %r2, %r3",
    "add.sat.u32 %r0, %r1, %r2",
    "add.rn.u32 %r0, %r1, %r2",
    "max.relu.s32 %r0, %r1, %r2",
    "mul.u32 %r0, %r1, %r2",
    "mul.wide.u64 %rd0, %rd1, %rd2",
    "and.u32 %r0, %r1, %r2",
    "shl.u32 %r0, %r1, %r2",
    "prmt.b32.f4e %r0, %r1, %r2, %r3",
    "fma.f32 %f0, %f1, %f2, %f3",
    "div.f32 %f0, %f1, %f2",
    "sqrt.f32 %f0, %f1",
    "ex2.f32 %f0, %f1",
    "add.rna.f32 %f0, %f1, %f2",
    "max.sat.f32 %f0, %f1, %f2",
    "add.sat.bf16 %h0, %h1, %h2",
    "add.ftz.f16 %h0, %h1, %h2",
    "setp.u32 %q, %r0, %r1",
    "setp.lo.s32 %q, %r0, %r1",
    "setp.lt.b32 %q, %r0, %r1",
    "setp.nan.s32 %q, %r0, %r1",
    "setp.lt.and.s32 %q, %r0, %r1",
    "cvt.f32.s32 %f0, %r0",
    "cvt.s32.f32 %r0, %f0",
    "cvt.rn.e4m3x2.f32 %h0, %f0, %f1",
    "cvt.rn.s32.u32 %r0, %r1",
    "cvt.sat.s8.s32 %r0, %r1",
    "cvt.rn.relu.f16x2.f32 %r0, %f0, %f1",
    "cvt.rz.tf32.f32 %r0, %f0",
    "mov.v2.u32 %r0, %r1",
    "mov.u32 %r0, 0x",
    "mov.u32 %r0, 08",
    "mov.u32 %r0, 1x",
    "mov.u32 %r0, 0f123",
    "mov.u64 %rd0, 18446744073709551616",
    "mov.u32 %r0, -",
    "mov.u32 %r0, 1 2",
    "mov.u32 %r0, %r9",
    "mov.u32 %r0, %r01",
    "add.u32 %r0, %r1, !5",
    "add.u32 %r0, %r1, %r2 %r3",
    "mov.b64 %rd0, {%r1, }",
    "ld.global.u32 %r0, [%rd1",
    "ld.global.u32 %r0, [%tid.x]",
    "ld.global.u64 %rd0, [%rd1+%rd1]",
    "mov.b32 %r0, {%h0, %h1, %h2}",
    "cvta.wrong.u64 %rd0, %rd1",
    "lop3.b32 %r0, %r1, %r2, %r3, %r3",
    "wrong.u32 %r0, %r1",
    "ld.global.f16 %h0, [%p0]",
    "ld.global.b128 %rd1, [%p0]",
    "ld.global.v8.u32 %r1, [%p0]",
    "ld.global.v4.u64 {%rd1, %rd1, %rd1, %rd1}, [%p0]",
    "ld.global.u64 %r1, [%p0]",
    "ld.global.wrong.u32 %r1, [%p0]",
    "st.const.u32 [%p0], %r1",
    "st.param.u32 [p0], %r1",
    "ld.global.v2.u32 %r1, [%p0]",
    "ld.global.u32 %r1, [%p0], %rd1",
    "fence.wrong",
    "atom.global.add.b32 %r1, [%p0], %r1",
    "red.global.exch.b32 [%p0], %r1",
    "atom.global.min.f32 %r1, [%p0], %r1",
    "atom.global.nand.b32 %r1, [%p0], %r1",
    "cp.async.cg.shared.global [%r1], [%p0], 8",
    "cp.async.ca.shared.global [%r1], [%p0], 2",
    "cp.async.ca.global.shared [%r1], [%p0], 4",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%p0], [%r1], 16",
    "mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, %r3}, "
    "{%r4, %r5}, {%r0, %r1, %r2, %r3}",
    "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, "
    "%r3}, {%r4, %r5}, {%r0, %r1, %r2, %r3}",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, "
    "%r3}, {%r4, %r5}, {%r0, %r1, %r2, %r3}",
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, %r3}, "
    "{%r4, %r5}, {%r0, %r1, %r2, %r3}",
    "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r0, %r1, %r2, %r3}, [%r8], %t",
    "wmma.load.a.sync.aligned.row.m32n8k16.shared.f16 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, "
    "[%r8], %t",
    "wmma.load.a.sync.aligned.row.m16n16k16.shared.u8 {%r0, %r1}, [%r8], %t",
    "wmma.load.c.sync.aligned.row.m16n16k16.shared.f16 {%r0, %r1, %r2, %r3}, [%r8], %t",
    "wmma.store.d.sync.aligned.col.m16n16k16.shared.f32 [%r8], {%r0, %r1, %r2, %r3, %r4, %r5, %r6, "
    "%r7}, %t"};

TEST_CASE("invalid instruction forms are rejected", "[forms]") {
  for (const Form &form : kForms) {
    CHECK(error_of(form.known) == "");
    CHECK_THAT(error_of(form.unknown), Catch::Matchers::ContainsSubstring(form.unknown));
  }
  for (const char *statement : kKnown) CHECK(error_of(statement) == "");
  for (const char *statement : kRejected) {
    CAPTURE(statement);
    CHECK(error_of(statement) != "");
  }
}

}  // namespace
}  // namespace softgpu::test
