"""PTX with known machine code, for the tests: one instruction of each kind."""

PTX = """\
.version 8.0
.target sm_{arch}
.address_size 64
.visible .entry f(.param .u64 p) {{
  .reg .b64 %p; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b16 %h; .reg .f64 %d<2>;
  .shared .align 128 .b8 buffer[1024];
  ld.param.u64 %p, [p];
  cvta.to.global.u64 %p, %p;
{body}  ret;
}}
"""
# (architecture, instruction, group in which it is counted)
ASSEMBLED = [
    ("75", "ld.volatile.global.v4.f32 {%f0, %f1, %f2, %f3}, [%p];", "LDG.128"),
    ("75", "ld.volatile.global.v2.f32 {%f0, %f1}, [%p];", "LDG.64"),
    ("75", "ld.volatile.global.f32 %f0, [%p];", "LDG.32"),
    ("75", "ld.volatile.global.s16 %r0, [%p];", "LDG.16"),
    ("75", "ld.volatile.global.u8 %r0, [%p];", "LDG.8"),
    ("75", "ld.volatile.u32 %r0, [%p];", "LD.32"),
    ("75", "st.volatile.global.v4.u32 [%p], {0, 0, 0, 0};", "STG.128"),
    ("75", "st.volatile.global.u8 [%p], 0;", "STG.8"),
    ("75", "ld.volatile.shared.v2.f32 {%f0, %f1}, [buffer];", "LDS.64"),
    ("75", "st.volatile.shared.v4.u32 [buffer], {0, 0, 0, 0};", "STS.128"),
    ("75", "ld.volatile.global.f32 %f0, [%p]; fma.rn.f32 %f0, %f0, %f0, %f0; st.volatile.global.f32 [%p], %f0;",
     "FFMA"),
    ("75", "ld.volatile.global.f64 %d0, [%p]; fma.rn.f64 %d0, %d0, %d0, %d0; st.volatile.global.f64 [%p], %d0;",
     "FP64"),
    ("75", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2}, "
     "{%f4, %f5, %f6, %f7}; st.volatile.global.f32 [%p], %f0;", "HMMA"),
    ("75", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [buffer]; "
     "st.volatile.global.u32 [%p], %r0;", "LDSM"),
    ("75", "membar.gl; st.volatile.global.u32 [%p], 0;", "MEMBAR"),
    ("80", "cp.async.cg.shared.global [buffer], [%p], 16;", "LDGSTS.128"),
    ("80", "cp.async.ca.shared.global [buffer], [%p], 4;", "LDGSTS.32"),
    ("90a", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %p, %p, 0, 1, 1, 0, 0; "
     "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; st.volatile.global.f32 [%p], %f0;", "HGMMA"),
    ("90a", "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], "
     "[%p, {0, 0}], [buffer];", "UTMALDG"),
    ("90a", "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%p, {0, 0}], [buffer];", "UTMASTG"),
    ("90a", "stmatrix.sync.aligned.m8n8.x4.shared.b16 [buffer], {%r0, %r1, %r2, %r3};", "STSM"),
]


# Loops with a known number of 128-bit loads in flight: volatile accesses keep their order, so a
# store of loaded data before the next load waits for the first load.
def loop(steps):
    """Returns a loop with groups of loads, each followed by its stores; `steps`: loads per
    group."""
    lines, at = [], 0
    for loads in steps:
        places = range(at, at + loads)
        lines += [f"ld.volatile.global.v4.f32 {{%x{i}0, %x{i}1, %x{i}2, %x{i}3}}, [%p + {16 * i}];" for i in places]
        lines += [f"st.volatile.global.f32 [%p + {16 * i}], %x{i}0;" for i in places]
        at += loads
    registers = ", ".join(f"%x{i}{j}" for i in range(at) for j in range(4))
    return "\n".join([f".reg .f32 {registers}; .reg .pred %again;", "again:", *lines,
                      "ld.volatile.global.u32 %r0, [%p + 4096];", "setp.ne.u32 %again, %r0, 0;", "@%again bra again;"])


# (steps, loads in flight)
LOOPS = [([1], 1), ([1, 1], 1), ([1, 1, 1, 1], 1), ([2], 2), ([2, 1], 2), ([1, 2, 1], 2), ([4], 4), ([3, 4], 4)]
NO_LOOP = "ld.volatile.global.v4.f32 {%f0, %f1, %f2, %f3}, [%p]; st.volatile.global.f32 [%p], %f0;"
