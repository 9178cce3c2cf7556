"""Tests of tools/gpu/kernel_report on injected builds: each check fails only for its own
violation."""
import dataclasses
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess

import pytest
from codegen import assembled, cubin, injected, peers
from codegen.occupancy import SMS, occupancy


def mangled(name, file_hash="b8cf07f2"):
    """void mp::cuda::(anonymous namespace)::NAME<(mp_op)2>(Args), with the hashes that nvcc adds"""
    space = f"_GLOBAL__N__8f05c8c9_7_file_cu_{file_hash}"
    return f"_ZN2mp4cuda{len(space)}{space}{len(name)}{name}IL5mp_op2EEEvNS0_4ArgsE"


PLAIN, OTHER = mangled("f"), mangled("g")
TILE = "NS_8WmmaTileILi128ELi128ELi64ELi64ELi3ELi2EEE"
WMMA = mangled("gemm_wmma").replace("IL5mp_op2E", f"I{TILE}")
WMMA_NAME = "gemm_wmma<WmmaTile<128, 128, 64, 64, 3, 2>>"
COLUMNS_SMEM = 61440  # tiles.h: 60 KiB for A and B by k


def library_of(size) -> bytes:
    """Returns the headers of a library of one segment, which ends at `size`."""
    header = bytearray(64)
    struct.pack_into("<Q", header, 32, len(header))  # offset of the program headers
    struct.pack_into("<H", header, 56, 1)  # their number
    return bytes(header) + struct.pack("<IIQQQQQQ", cubin.LOADED, 0, 0, 0, 0, size, size, 0)


@dataclasses.dataclass
class Report:
    """kernel_report with a scratch folder for the build and the baseline."""
    work: pathlib.Path
    tool: pathlib.Path
    run_program: object

    def run(self, *arguments, code=0, build=None) -> str:
        return self.run_program(self.tool, "--baseline", self.work / "baseline.json", *arguments, build or self.work,
                                code=code)

    def check(self, what, kernels, code, *texts, **how):
        """Checks the result of --check for this build and the baseline."""
        injected.build(self.work, kernels, **how)
        said = self.run("--check", code=code)
        assert all(text in said for text in texts), what

    def baseline(self, kernel) -> dict:
        """Writes the baseline of a kernel, which has no differences, and returns the kernel."""
        self.check("no baseline", [kernel], 0)
        self.run("--write-baseline")
        assert self.run("--check").count("\n") == 1
        (found,) = json.loads(self.run("--json"))["kernels"]
        return found


@pytest.fixture
def report(root, run, tmp_path) -> Report:
    return Report(tmp_path, root / "tools/gpu/kernel_report", run)


def test_gates(report):
    base, other = injected.Injected(PLAIN), injected.Injected(OTHER)
    changed = lambda **values: [dataclasses.replace(base, **values), other]  # noqa: E731
    name = "sm_80 f<MP_OP_T>"
    report.check("no baseline, no comparison", [base, other], 0, "no baseline")
    report.run("--write-baseline")
    baseline = report.work / "baseline.json"
    written = baseline.read_bytes()

    report.check("a build equal to the baseline", [base, other], 0)
    assert report.run("--check").count("\n") == 1, "and has no differences"
    report.check("a spill", changed(spill=8), 1, f"{name} spills: 8 bytes of stores, 8 of loads")
    report.run("--write-baseline", code=1)  # a build with spills is rejected as baseline
    assert baseline.read_bytes() == written, "and leaves the one that is there"
    report.check("a spill in a called function", changed(callee_spill=4), 1, f"{name} spills")
    for code in ("C7510", "C7518"):
        warning = f"ptxas info : ({code}) Potential Performance Loss: wgmma.mma_async instructions are serialized"
        report.check("serialized wgmma", changed(warning=warning), 1, "kernels/injected.cu: ", f"({code})")
    report.check("a warning", changed(warning="ptxas warning : something"), 1, "something")
    report.check("more stack", changed(stack=16), 1, name, "stack 0 -> 16: more stack")
    report.check("registers that nothing depends on", changed(registers=61), 0,
                 f"{name}: registers 64 -> 61", "make kernel-baseline")
    # 64 registers: 4 blocks of 8 warps; 65 are given as 72: 28 warps fit, which are 3 blocks.
    report.check("registers that leave fewer warps", changed(registers=65), 1,
                 f"{name}: registers 64 -> 65", "24 warps per SM instead of 32, limited by registers")
    report.check("smem that leaves fewer warps", changed(smem=100 * 1024), 1,
                 "8 warps per SM instead of 32, limited by shared memory")
    report.check("larger blocks, as many warps", changed(threads=512), 0, "threads 256 -> 512")
    report.check("a removed kernel", [base], 0, "gone: sm_80 g<MP_OP_T>")
    report.check("an added kernel", [base, other, injected.Injected(mangled("h"))], 0,
                 "new: sm_80 h<MP_OP_T>")
    report.check("more machine code", changed(instructions={"FFMA": 100}), 0, "machine code of sm_80: ")
    report.check("another architecture", [base, other, injected.Injected(PLAIN, arch="90a")], 0,
                 "sm_90a is not in the baseline")
    report.check("a removed architecture", [injected.Injected(PLAIN, arch="90a")], 0,
                 "sm_80 of the baseline was not built")
    report.check("another compiler: not compared", changed(stack=16), 0,
                 "compiled by 12.4.131, but the baseline by 13.0.88", toolkit="12.4.131")
    report.check("another compiler: no spills", changed(spill=8), 1, "spills", toolkit="12.4.131")
    for size, code in (16_000_000, 0), (16_000_001, 1):
        (report.work / "libmpcore.so").write_bytes(library_of(size))
        report.check(f"a library of {size} bytes", [base, other], code)
        report.check("a library with one architecture more", [base, other, injected.Injected(PLAIN, arch="90a")], 0)
    report.check("no kernels", [], 1, "the ptxas logs contain no kernel")
    twin = dataclasses.replace(base, mangled=mangled("f", "b8cf07f3"))
    report.check("two kernels of one name", [base, twin], 1, "two kernels are named sm_80 f<MP_OP_T>")


def test_tables(report):
    empty = injected.Injected(WMMA, arch="75", registers=4, threads=128, smem=0)
    wmma = dataclasses.replace(empty, arch="90a", registers=200, uses_dynamic_smem=True)
    unknown = injected.Injected(PLAIN, arch="90a", smem=0, uses_dynamic_smem=True)
    kernels = [wmma, empty, unknown]
    injected.build(report.work, kernels)
    empty, without_amount, wmma = json.loads(report.run("--json"))["kernels"]
    assert wmma["name"] == WMMA_NAME, "names can be read"
    assert wmma["dynamic_smem"] == COLUMNS_SMEM, "dynamic smem is that of the launch"
    assert (wmma["threads"], wmma["code_bytes"]) == (128, 256), "threads and code are the cubin's"
    assert wmma["occupancy"] == {"blocks": 2, "warps": 8, "percent": 12.5, "limit": "registers"}, "occupancy"
    assert empty["is_empty"] and not empty["occupancy"], "a kernel that an architecture lacks"
    # The size of dynamic smem is unknown.
    assert not without_amount["is_empty"]
    assert without_amount["dynamic_smem"] is without_amount["occupancy"] is None
    table = [re.split("  +", line) for line in report.run("--arch", "90a").splitlines()]
    assert [WMMA_NAME, "128", "200", "0", "0", "0", str(COLUMNS_SMEM), "2"] in [cells[:8] for cells in table]
    text = report.run("--sass", "^f<")
    assert "f<MP_OP_T>" in text and "gemm_wmma" not in text, "a filter"
    injected.build(report.work, [unknown], has_cubins=False)
    (of_log,) = json.loads(report.run("--json"))["kernels"]
    # The log does not contain the number of threads.
    assert of_log["threads"] is None
    assert of_log["registers"] == 64
    assert of_log["occupancy"] is None
    assert "without the CUDA target" in report.run("--check", build=report.work / "nothing")


def test_dynamic_smem_of_a_row(report):
    """Cross-entropy keeps a row in smem: of 8192 classes in a small block, of as many as fit in
    a large one."""
    def kernel(threads, arch):
        name = mangled("xent_block_per_row").replace("IL5mp_op2E", f"INS0_4halfELi{threads}E")
        return injected.Injected(name, arch=arch, threads=threads, registers=56, uses_dynamic_smem=True)

    injected.build(report.work, [kernel(threads, arch) for threads in (128, 512) for arch in ("75", "90a", "54")])
    found = {kernel["name"] + kernel["arch"]: (kernel["dynamic_smem"], kernel["occupancy"] and kernel["occupancy"]["blocks"])
             for kernel in json.loads(report.run("--json"))["kernels"]}
    small, large = (f"xent_block_per_row<half, {threads}>" for threads in (128, 512))
    assert found[small + "75"] == (16384, 3) and found[small + "90a"] == (16384, 9)
    assert found[large + "75"] == (63 * 1024, 1) and found[large + "90a"] == (226 * 1024, 1)
    assert found[small + "54"] == found[large + "54"] == (None, None), "the capacity is unknown"


def test_architectures_with_equal_facts_share_a_row(report):
    one, two = (injected.Injected(PLAIN, arch=arch) for arch in ("80", "90"))
    report.check("no baseline", [one, two], 0, "no baseline")
    report.run("--write-baseline")
    assert list(json.loads((report.work / "baseline.json").read_text())["kernels"]) == ["sm_80,90 f<MP_OP_T>"]
    report.check("both as in the baseline", [one, two], 0)
    report.check("a change of one", [one, dataclasses.replace(two, stack=16)], 1, "sm_90 f<MP_OP_T>: stack 0 -> 16")


def test_instruction_gates(report):
    base = injected.Injected(WMMA, threads=128, registers=200, smem=0, uses_dynamic_smem=True,
                           instructions={"HMMA": 4, "LDSM": 2, "LDGSTS.128": 2, "LDG.128": 8, "LDG.32": 4})
    changed = lambda **counts: [dataclasses.replace(  # noqa: E731
        base, instructions=base.instructions | counts)]
    report.baseline(base)
    report.check("no tensor cores", changed(HMMA=0), 1, f"sm_80 {WMMA_NAME} has no HMMA", "HMMA 4 -> 0")
    report.run("--write-baseline", code=1)  # a build without MMA is rejected as baseline
    report.check("fewer tensor core instructions", changed(HMMA=2), 0, "HMMA 4 -> 2")
    report.check("removed asynchronous copies", changed(**{"LDGSTS.128": 0, "LDGSTS.32": 8}), 1,
                 "no longer uses LDGSTS.128")
    report.check("128-bit loads that became narrow", changed(**{"LDG.128": 4, "LDG.32": 20}), 1,
                 "4 instead of 8 128-bit loads of global memory, 20 instead of 4 narrower ones")
    report.check("loads that became generic", changed(**{"LDG.128": 4, "LD.128": 4}), 1,
                 "4 instead of 0 generic loads, 8 instead of 12 of global memory")
    report.check("a loop that is unrolled less", changed(**{"LDG.128": 4, "LDG.32": 2}), 0, "LDG.128 8 -> 4")
    report.check("more narrow loads", changed(**{"LDG.32": 20}), 0, "LDG.32 4 -> 20")
    report.check("instructions without a limit", changed(FADD=5), 0)
    report.check("code that cannot be read", [base], 0, has_cubins=False)


def test_loads_in_flight_gates(report):
    base = injected.Injected(PLAIN, loads_in_flight=4)
    changed = lambda loads: [dataclasses.replace(base, loads_in_flight=loads)]  # noqa: E731
    report.baseline(base)
    report.check("fewer loads in flight", changed(2), 1, "loads_in_flight 4 -> 2", "fewer loads in flight")
    report.check("more loads in flight", changed(8), 0, "loads_in_flight 4 -> 8")
    (kernel,) = json.loads(report.run("--json"))["kernels"]
    assert kernel["loads_in_flight"] == 8
    assert re.search(r"\b8 +128\b", report.run()), "8 x 16 bytes x 4 blocks x 256 threads"

    baseline = report.work / "baseline.json"
    older = json.loads(baseline.read_text())
    at = older["columns"].index("loads_in_flight")
    for values in [older["columns"], *older["kernels"].values()]:
        del values[at]
    baseline.write_text(json.dumps(older))
    report.check("a baseline without the column", changed(2), 0, "lacks the columns loads_in_flight")

    streaming = injected.Injected(mangled("copy_list"), loads_in_flight=4)
    report.check("a kernel that streams", [streaming], 0)
    report.check("one load after the other", [dataclasses.replace(streaming, loads_in_flight=1)], 1,
                 "has 1 loads in flight, but a streaming kernel needs 4")


def test_main_loop_gates(report):
    step = ("HMMA", "LDSM", "other", "HMMA")
    base = injected.Injected(PLAIN, main_loop=step)
    changed = lambda *groups: [dataclasses.replace(base, main_loop=groups)]  # noqa: E731
    assert report.baseline(base)["main_loop"] == {"instructions": 5, "products": 2, "fences": 0, "warpgroup": 0}
    assert " 2/5 " in report.run()
    report.check("a fence in the main loop", changed(*step, "HMMA", "MEMBAR"), 1, "has 1 MEMBAR in its main loop")
    wgmma = ["WARPGROUP", *step, *step, "HMMA", "WARPGROUP"]
    report.check("a fence and a wait of wgmma", changed(*wgmma), 0)
    report.check("a wait per product", changed(*wgmma, "WARPGROUP"), 1, "has 3 WARPGROUP in its main loop")
    report.check("a fence outside the main loop", [dataclasses.replace(base, instructions={"MEMBAR": 1})], 0)
    report.check("fewer products in as many instructions", changed("HMMA", "LDSM", "other", "other"), 1,
                 "5.0 instead of 2.5 main-loop instructions per product")
    report.check("a main loop unrolled twice", changed(*step, *step), 0, "main_loop")
    report.check("no products", changed("LDSM", "other"), 1, "no longer uses HMMA")
    both = lambda *groups: [dataclasses.replace(base, other_loop=groups)]  # noqa: E731
    report.check("a second main loop of equal length", both(*step), 0)
    report.check("a second main loop with more instructions per product",
                 both("HMMA", "LDSM", "other", "other"), 1, "5.0 instead of 2.5 main-loop instructions")
    report.check("a fence in the loop with fewer instructions per product",
                 both(*step, "HMMA", "HMMA", "HMMA", "MEMBAR"), 1, "has 1 MEMBAR")


def test_producer_gates(report):
    step = ("SYNCS", "UTMALDG", "UTMALDG", "other")
    base = injected.Injected(PLAIN, arch="90a", main_loop=step)
    assert report.baseline(base)["producer_loop"] == {"instructions": 5, "vote_loops": 0, "device_fences": 0}
    report.check("a longer loop", base.changed(main_loop=(*step, "other")), 1, "6 instead of 5 instructions per stage")
    report.check("a loop over active lanes", base.changed(vote_branches=1), 1, "has loops over active lanes (1 BRA.U.ANY)")
    report.check("a fence of the device", base.changed(device_fences=1), 1, "has 1 MEMBAR.ALL.GPU")
    report.check("a loop of a consumer", base.changed(other_loop=(*step, *step, "STSM")), 0)


def test_store_gates(report):
    name = mangled("gemm_wgmma").replace("IL5mp_op2E", "INS_9WgmmaTileILi128ELi256ELi4ELb0EEE")
    subtile, loads = ("UTMASTG", "STSM", "other", "UTMASTG"), ("LDG.64",) * 16
    base = injected.Injected(name, arch="90a", instructions={"UTMALDG": 1}, main_loop=("HGMMA",) * 4,
                             other_loop=(*loads, "STG.64", *subtile))
    changed = lambda *groups: [dataclasses.replace(base, other_loop=groups)]  # noqa: E731
    assert report.baseline(base)["store"] == {"subtile": 3, "products": 0, "loads_of_c": 16}
    report.check("a multiplication in a subtile", changed(*loads, "STG.64", "UTMASTG", "STSM", "FMUL", "UTMASTG"), 1,
                 "multiplies 1 times in a subtile with alpha = 1")
    report.check("a longer subtile", changed(*loads, "STG.64", "UTMASTG", "STSM", "other", "other", "UTMASTG"), 1,
                 "4 instead of 3 instructions in a plain subtile")
    report.check("loads in two halves", changed(*loads[8:], "STG.64", *loads[8:], "STG.64", *subtile), 1,
                 "has 8 loads of C in flight before a store, not 16")


def test_loads_before_products_gate(report):
    def step(name, loads):
        name = mangled(name).replace("IL5mp_op2E", "INS0_9PlainCellELb1E")
        return [injected.Injected(name, arch="90a", instructions={"UTMALDG": 1, "LDG.128": loads}, main_loop=("HGMMA",) * 4,
                                  other_loop=("LDG.128",) * 8)]  # after the products

    for name, enough in (("rnn_fused_wgmma_forward", 6), ("rnn_fused_forward", 6), ("rnn_fused_wgmma_backward", 4)):
        report.check(f"{name}, enough", step(name, enough), 0)
        report.check(f"{name}, too few", step(name, enough - 1), 1,
                     f"has {enough - 1} loads before its products, but a recurrent step needs {enough}")


def test_early_launch_gate(report):
    def kernel(*groups, name=PLAIN):
        return [injected.Injected(name, instructions=dict.fromkeys(groups, 1))]

    report.check("a kernel that waits before it accesses memory",
                 kernel("SHFL", "LDS.32", "ACQBULK", "LDG.32", "UTMASTG"), 0)
    report.check("a kernel without a wait", kernel("LDG.32"), 0)
    report.check("a load and a store before the wait", kernel("LDG.32", "SHFL", "UTMASTG", "ACQBULK"), 1,
                 "accesses global memory 2 times before its grid-dependency wait")
    report.check("a load by TMA while older kernels may run", kernel("PREEXIT", "UTMALDG", "ACQBULK"), 1,
                 "accesses global memory 1 ")
    report.check("a TMA load of data that the previous kernel does not write",
                 kernel("UTMALDG", "ACQBULK", "PREEXIT"), 0)
    report.check("a normal load in the same place", kernel("UTMALDG", "LDG.32", "ACQBULK", "PREEXIT"), 1,
                 "accesses global memory 1 ")
    report.check("a kernel of CUB", kernel("LDG.32", "ACQBULK", name="_ZN3cub11EmptyKernelIvEEvv"), 0)


def test_peers(report):
    """Compares with the peers of 128x256 that peers.json lists."""
    toolkit, loops = peers.read()
    baselines = [peer for peer in loops if (peer["tile"], peer["schedule"]) == ([128, 256], "cooperative")]
    heaviest = max(baselines, key=peers.per_product)
    most = int(4 * peers.MORE * peers.per_product(heaviest))
    name = mangled("gemm_wgmma").replace("IL5mp_op2E", "INS_9WgmmaTileILi128ELi256ELi4ELb0EEE")
    loop = lambda length: ("HGMMA",) * 4 + ("other",) * (length - 5)  # noqa: E731  and a branch
    base = injected.Injected(name, arch="90a", instructions={"UTMALDG": 1}, main_loop=loop(most))
    report.check("a tenth more", base.changed(), 0, toolkit=toolkit)
    heavier = loop(most + 1)
    report.check("more than a tenth more", base.changed(main_loop=heavier), 1,
                 f"main-loop instructions per HGMMA, {heaviest['library']} has {peers.per_product(heaviest):.1f}",
                 toolkit=toolkit)
    report.check("another compiler's", base.changed(main_loop=heavier), 0, toolkit="12.4.131")
    other = name.replace("Li128ELi256", "Li192ELi256")
    report.check("a tile without a peer", base.changed(mangled=other, main_loop=heavier), 0, toolkit=toolkit)


def test_generic_gate(report):
    generic = {"LD.128": 2, "ST.32": 1}
    report.check("generic accesses", [injected.Injected(PLAIN, instructions=generic)], 1, "has 3 generic accesses")
    clusters = mangled("rnn_fused_wgmma_forward").replace("IL5mp_op2E", "INS0_9PlainCellE")
    of_clusters = {"LDG.128": 6, "HGMMA": 1, "UTMALDG": 1, "LD.128": 2}
    report.check("shared memory of a cluster", [injected.Injected(clusters, arch="90a", instructions=of_clusters)], 0)
    report.check("other accesses baselines it", [injected.Injected(clusters, arch="90a", instructions=of_clusters | generic)], 1,
                 "has 1 generic accesses")
    tile = mangled("gemm_wgmma").replace("IL5mp_op2E", "INS_9WgmmaTileILi128ELi256ELi4ELb0EEE")
    report.check("more than one load per block", [injected.Injected(tile, arch="90a", instructions=of_clusters | {"LD.128": 9})],
                 1, "has 1 generic accesses")
    report.check("accesses to global memory", [injected.Injected(PLAIN, instructions={"LDG.128": 2})], 0)


CUDA_HOME = os.environ.get("CUDA_HOME", "/usr/local/cuda")
PTXAS = shutil.which("ptxas", path=f"{CUDA_HOME}/bin") or shutil.which("ptxas")


@pytest.mark.skipif(not PTXAS, reason="instructions as ptxas assembles them (no ptxas)")
@pytest.mark.parametrize("arch, body, group", assembled.ASSEMBLED)
def test_instructions(run, tmp_path, arch, body, group):
    (tmp_path / "one.ptx").write_text(assembled.PTX.format(arch=arch, body=f"  {body}\n"))
    run(PTXAS, f"-arch=sm_{arch}", tmp_path / "one.ptx", "-o", tmp_path / "one.cubin")
    assert cubin.kernels((tmp_path / "one.cubin").read_bytes())["f"].instructions[group] == 1


@pytest.mark.skipif(not PTXAS, reason="loops as ptxas assembles them (no ptxas)")
@pytest.mark.parametrize("arch", ["75", "80", "90a"])
@pytest.mark.parametrize("body, in_flight", [(assembled.NO_LOOP, 0),
                                             *[(assembled.loop(steps), number) for steps, number in assembled.LOOPS]])
def test_loads_in_flight(run, tmp_path, arch, body, in_flight):
    (tmp_path / "one.ptx").write_text(assembled.PTX.format(arch=arch, body=f"  {body}\n"))
    run(PTXAS, f"-arch=sm_{arch}", tmp_path / "one.ptx", "-o", tmp_path / "one.cubin")
    assert cubin.kernels((tmp_path / "one.cubin").read_bytes())["f"].loads_in_flight == in_flight


ORACLE = """\
#include <cstdio>
#include <cuda_occupancy.h>
int main() {
  int major, minor, warps, smem, per_block, reserved, registers, bytes, threads;
  while (std::scanf("%d%d%d%d%d%d%d%d%d", &major, &minor, &warps, &smem, &per_block, &reserved, &registers,
                    &bytes, &threads) == 9) {
    cudaOccDeviceProp device{};
    device.computeMajor = major, device.computeMinor = minor, device.numSms = 1, device.warpSize = 32;
    device.maxThreadsPerBlock = 1024, device.maxThreadsPerMultiprocessor = warps * 32;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.sharedMemPerBlock = 49152, device.sharedMemPerMultiprocessor = smem;
    device.sharedMemPerBlockOptin = per_block, device.reservedSharedMemPerBlock = reserved;
    cudaOccFuncAttributes kernel{};
    kernel.maxThreadsPerBlock = 1024, kernel.numRegs = registers, kernel.numBlockBarriers = 1;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN, kernel.maxDynamicSharedSizeBytes = bytes;
    cudaOccDeviceState state{};
    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
    cudaOccResult result{};
    const cudaOccError error =
        cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, bytes);
    std::printf("%d\\n", error ? -1 : result.activeBlocksPerMultiprocessor);
  }
}
"""


@pytest.mark.skipif(not pathlib.Path(CUDA_HOME, "include/cuda_occupancy.h").exists(),
                    reason="occupancy as in the toolkit (no cuda_occupancy.h)")
def test_occupancy(run, cxx, tmp_path):
    (tmp_path / "oracle.cpp").write_text(ORACLE)
    run(*cxx, "-w", f"-I{CUDA_HOME}/include", tmp_path / "oracle.cpp", "-o", tmp_path / "oracle")
    cases = [(arch, registers, smem, threads)
             for arch in SMS for registers in (4, 24, 33, 64, 65, 96, 128, 168, 255)
             for smem in (0, 100, 1024, 16384, 49152, 61440, 65536, 101376, 166912, 231424, 232448, 233000)
             for threads in (32, 96, 128, 256, 384, 1024)]
    lines = []
    for arch, *rest in cases:
        sm = SMS[arch]
        lines.append(" ".join(map(str, [arch[:-1], arch[-1], sm.warps, sm.smem, sm.smem_per_block,
                                        sm.smem_reserved, *rest])))
    answers = subprocess.run([tmp_path / "oracle"], input="\n".join(lines), text=True, capture_output=True,
                             check=True).stdout.split()
    known = [pair for pair in zip(cases, answers) if pair[1] != "-1"]  # old toolkits: -1
    wrong = [pair for pair in known if occupancy(*pair[0]).blocks != int(pair[1])]
    assert len(known) >= len(cases) / len(SMS) and not wrong, "occupancies are those of cuda_occupancy.h"
