"""Tests of tools/check/check_layers: each rule is reported for a file that breaks it."""
import pytest

TOOL = "tools/check/check_layers"
# File, its text, the beginning of the rule that it violates.
BREAKS = [
    ("include/mpcore.h", "#include <stdio.h>", "mpcore.h needs only stddef.h"),
    ("include/mpcore/gemm.h", '#include "base/device_info.h"', "mpcore.h needs only stddef.h"),
    ("include/mpcore.hpp", "#include <sys/mman.h>", "mpcore.hpp needs only mpcore.h"),
    ("base/device_info.h", '#include "kernels/gemm/problem.h"', "base may include"),
    ("kernels/simt/half.h", "#include <cuda_fp16.h>", "headers that all kernels include must compile fast"),
    ("kernels/gemm/problem.h", "#include <string>", "headers that all kernels include must compile fast"),
    ("host/engine.h", "#include <atomic>", "simulator headers that all kernels include must compile fast"),
    ("kernels/simt/simt.h", '#include "kernels/backend.h"', "kernels/simt"),
    ("host/a.cpp", '#include "kernels/tensors/norm.h"', "host"),
    ("kernels/tensors/statistics.cu", '#include "kernels/step/clip.h"', "kernels/tensors"),
    ("kernels/tensors/statistics.cu", "#include <cuda_runtime.h>", "kernels/tensors"),
    ("kernels/gemm/wmma_loop.h", '#include "kernels/conv/conv_args.h"', "kernels/gemm"),
    ("kernels/gemm/wmma_loop.h", "#include <mma.h>", "kernels/gemm"),
    ("kernels/step/a.cu", '#include "kernels/gemm/epilogue.h"', "kernels/step"),
    ("kernels/layers/a.cu", '#include "kernels/step/loss_scale.h"', "kernels/layers"),
    ("kernels/attention/a.cu", '#include "kernels/gemm/epilogue.h"', "kernels/attention"),
    ("kernels/rnn/a.cu", '#include "kernels/conv/conv_args.h"', "kernels/rnn"),
    ("graph/rewrite/a.cpp", '#include "kernels/gemm/problem.h"', "graph/rewrite"),
    ("graph/executor/a.cpp", '#include "kernels/backend.h"', "graph may include only"),
    ("graph/executor/a.cpp", '#include "capi/objects.h"', "graph may include only"),
    ("capi/a.cpp", '#include "graph/executor/executor.h"', "capi may include only"),
    ("kernels/conv/a.cu", '#include "kernels/layers/batch_norm.h"', "kernels/conv"),
    ("kernels/conv/a.cu", '#include "kernels/backend.h"', "kernels/conv"),
    ("kernels/backends.cpp", '#include "capi/check.h"', "backend files"),
    ("kernels/step/step_args.h", '#include "kernels/simt/simt.h"', "kernel headers that capi includes"),
    ("capi/a.cpp", '#include "kernels/gemm/wmma_loop.h"', "capi"),
    ("capi/a.cpp", "#include <cuda_runtime.h>", "capi"),
    ("examples/c/a.c", '#include "support/text.h"', "bindings and examples"),
    ("bindings/a/a.c", '#include "capi/check.h"', "bindings and examples"),
    ("support/json.h", '#include "bench/common.h"', "support"),
    ("base/escape.h", '#include "support/text.h"', "files shared by library and programs"),
    ("tools/mpinfo/a.cpp", '#include "kernels/backend.h"', "tools"),
    ("tools/mpinfo/a.cpp", '#include "bench/common.h"', "tools"),
    ("bench/suites/a.cpp", '#include "kernels/gemm/select.h"', "bench"),
    ("bench/suites/a.cpp", '#include "bench/tune/fit.h"', "bench"),
    ("bench/tune/a.cpp", '#include "kernels/simt/simt.h"', "mptune"),
    ("tests/gemm/a.cpp", '#include "kernels/gemm/select.h"', "tests may not include kernels or capi"),
    ("tests/select/a.cpp", '#include "capi/check.h"', "tests of internals"),
    ("tests/support/a.h", '#include "tests/step/ranks.h"', "tests/support"),
    ("softgpu/runtime/a.cpp", '#include "capi/check.h"', "software device: runtime and tests"),
    ("softgpu/ptx/a.h", '#include "softgpu/program/program.h"', "software device: ptx"),
    ("softgpu/options.cpp", '#include "softgpu/ptx/syntax.h"', "software device: options"),
    ("softgpu/program/a.h", '#include "softgpu/machine/warp.h"', "software device: program"),
    ("softgpu/machine/a.h", '#include "softgpu/isa/half.h"', "software device: machine"),
    ("softgpu/machine/a.h", '#include "include/mpcore/core.h"', "software device: machine"),
    ("softgpu/counts.h", "#include <stddef.h>", "software device: counts.h"),
    ("softgpu/calibration/a.cu", '#include "softgpu/options.h"', "software device: calibration"),
    ("softgpu/isa/a.cpp", '#include "softgpu/runtime/streams.h"', "software device: isa"),
    ("kernels/gemm/a.cu", "  if (threadIdx.x == 0) return;", "asm, launches, CUDA keywords"),
    ("kernels/step/a.cu", "#if MP_TARGET_CUDA", "asm, launches, CUDA keywords"),
    ("kernels/gemm/select.cpp", "  launch(grid);", "selection, update rules and loss scale must be pure"),
    ("kernels/step/update_rules.h", "  return lr * pow(rate, progress);", "step and tensors"),
    ("kernels/conv/conv_problem.cpp", "  const MP_TARGET::Axis axis;", "a .cpp file is compiled once"),
    ("capi/long.cpp", "// a line\n" * 501, "a file must have at most 500 lines"),
    ("bindings/python/mpcore/long.py", "# a line\n" * 501, "a file must have at most 500 lines"),
]


@pytest.mark.parametrize("name, text, rule", BREAKS, ids=[f"{name}: {text[:30].strip()}" for name, text, _ in BREAKS])
def test_breaks(tool, name, text, rule):
    broken = tool.broken_rules({name: text.splitlines()})
    assert len(broken) == 1
    assert broken[0][0].startswith(rule) and broken[0][1].startswith(name)


def test_every_rule_is_broken_once(tool):
    rules = {rule for rule, *_ in tool.INCLUDES + tool.WORDS} | {tool.LENGTH}
    assert {next(one for one in rules if one.startswith(rule)) for _, _, rule in BREAKS} == rules


def test_cycle(tool):
    cycle = {"tests/step/a.h": '#include "tests/conv/b.h"', "tests/conv/b.h": '#include "tests/gemm/c.h"',
              "tests/gemm/c.h": '#include "tests/step/a.h"', "tests/layers/d.h": '#include "tests/step/a.h"'}
    broken = tool.broken_rules({name: [text] for name, text in cycle.items()})
    assert {rule for rule, *_ in broken} == {tool.CYCLE}
    assert {where for _, where, _ in broken} == {"tests/step/a.h:1", "tests/conv/b.h:1", "tests/gemm/c.h:1"}


def test_cycle_within_bench(tool):
    """The folders of bench are separate layers, and so is bench/common.h."""
    files = {"bench/rows/a.h": ['#include "bench/common.h"', '#include "bench/timing/b.h"'],
             "bench/timing/b.h": [], "bench/common.h": [], "bench/main.cpp": ['#include "bench/rows/a.h"']}
    assert not tool.broken_rules(files)
    files["bench/timing/b.h"] = ['#include "bench/rows/a.h"']
    assert {rule for rule, *_ in tool.broken_rules(files)} == {tool.CYCLE}


ALLOWED = """
include/mpcore.h <stddef.h>
include/mpcore.hpp <vector> mpcore.h
base/device_info.h mpcore.h
kernels/simt/simt.h <cuda.h> base/device_info.h base/cache.h
kernels/tensors/lists.h mpcore.h
kernels/gemm/problem.h base/device_info.h
kernels/gemm/wmma_loop.h problem.h kernels/simt/simt.h
kernels/step/step_args.h kernels/tensors/lists.h kernels/simt/compiler.h
kernels/step/optimizer.cu kernels/step/step_args.h kernels/simt/simt.h
kernels/conv/conv_problem.h kernels/gemm/problem.h
kernels/conv/conv.cu kernels/gemm/wmma_loop.h
kernels/backend.h kernels/conv/conv_problem.h
graph/executor/a.cpp graph/rewrite/policy.h capi/context.h base/lifetime.h mpcore.h
host/engine.h kernels/simt/tensor_map.h base/lifetime.h
capi/conv.cpp kernels/backend.h kernels/step/step_args.h mpcore.h
support/text.h <string>
bench/main.cpp support/text.h
bench/tune/main.cpp kernels/gemm/cost.h bench/suites/suite.h
tests/internals/simt.cpp kernels/simt/simt.h
softgpu/isa/half.h softgpu/machine/warp.h softgpu/options.h
softgpu/tests/test_ptx.cpp softgpu/ptx/syntax.h tests/support/tally.h
"""


def test_allows(tool):
    files = {}
    for name, *used in map(str.split, ALLOWED.strip().splitlines()):
        files[name] = [f"#include {one}" if one[0] == "<" else f'#include "{one}"' for one in used]
    assert not tool.broken_rules(files)


def test_prints_file_and_line(root, run, tmp_path):
    (tmp_path / "capi").mkdir()
    (tmp_path / "capi/a.cpp").write_text("// one\n#include <cuda.h>\n")
    printed = run(root / "tools/check/check_layers", "--root", tmp_path, code=1)
    assert printed.splitlines()[1] == "  capi/a.cpp:2: #include <cuda.h>"
    (tmp_path / "capi/a.cpp").unlink()
    assert run(root / "tools/check/check_layers", "--root", tmp_path) == "layers: ok\n"
