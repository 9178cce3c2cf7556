"""tools/check/check_layers: one file that breaks a rule breaks that rule, and a tree without it none."""
import runpy
import types

import pytest

# Where, what stands there, which rule it breaks.
BREAKS = [
    ("include/mpcore.h", "#include <stdio.h>", "mpcore.h needs only stddef.h"),
    ("include/mpcore/gemm.h", '#include "kernels/device.h"', "mpcore.h needs only stddef.h"),
    ("include/mpcore.hpp", "#include <sys/mman.h>", "mpcore.hpp needs only mpcore.h"),
    ("kernels/device.h", '#include "kernels/gemm/problem.h"', "device.h and what stands beside it"),
    ("kernels/simt/half.h", "#include <cuda_fp16.h>", "what all kernels include is short to compile"),
    ("kernels/gemm/problem.h", "#include <string>", "what all kernels include is short to compile"),
    ("kernels/simt/sim/threads.h", "#include <atomic>", "the part of the simulator that all kernels include"),
    ("kernels/simt/simt.h", '#include "kernels/backend.h"', "simt/ stands on device.h"),
    ("kernels/simt/sim/a.cpp", '#include "kernels/tensors/clip.h"', "simt/ stands on device.h"),
    ("kernels/tensors/statistics.cu", '#include "kernels/step/clip.h"', "tensors/ stands on simt/"),
    ("kernels/tensors/statistics.cu", "#include <cuda_runtime.h>", "tensors/ stands on simt/"),
    ("kernels/gemm/gemv.h", '#include "kernels/conv/conv.h"', "gemm/ stands on tensors/"),
    ("kernels/gemm/gemv.h", "#include <mma.h>", "gemm/ stands on tensors/"),
    ("kernels/step/a.cu", '#include "kernels/gemm/operand.h"', "step/ stands on tensors/"),
    ("kernels/layers/a.cu", '#include "kernels/step/outcome.h"', "layers/ stands on tensors/"),
    ("kernels/rnn/a.cu", '#include "kernels/conv/conv.h"', "rnn/ stands on gemm/"),
    ("kernels/autocast/a.cpp", '#include "kernels/gemm/problem.h"', "autocast/ has no kernels and stands on nothing"),
    ("kernels/conv/a.cu", '#include "kernels/layers/batch_norm.h"', "conv/ stands on gemm/"),
    ("kernels/conv/a.cu", '#include "kernels/backend.h"', "conv/ stands on gemm/"),
    ("kernels/backends.cpp", '#include "capi/check.h"', "backend.h stands on all kernels"),
    ("kernels/step/args.h", '#include "kernels/simt/simt.h"', "what capi/ sees of the kernels is plain data"),
    ("capi/a.cpp", '#include "kernels/gemm/gemv.h"', "capi/ sees of the kernels backend.h and arguments alone"),
    ("capi/a.cpp", "#include <cuda_runtime.h>", "capi/ sees of the kernels backend.h and arguments alone"),
    ("examples/c/a.c", '#include "support/text.h"', "bindings and examples see the public headers alone"),
    ("bindings/a/a.c", '#include "capi/check.h"', "bindings and examples see the public headers alone"),
    ("support/json.h", '#include "bench/common.h"', "support/ uses nothing that uses it"),
    ("support/escape.h", '#include "support/text.h"', "what the library shares with its programs needs the standard library"),
    ("tools/mpinfo/a.cpp", '#include "kernels/backend.h"', "tools use the public header"),
    ("tools/mpinfo/a.cpp", '#include "bench/common.h"', "tools use the public header"),
    ("bench/suites/a.cpp", '#include "kernels/gemm/select.h"', "bench uses the public header"),
    ("bench/suites/a.cpp", '#include "bench/tune/fit.h"', "bench uses the public header"),
    ("bench/tune/a.cpp", '#include "kernels/simt/simt.h"', "mptune uses bench and the selection"),
    ("tests/gemm/a.cpp", '#include "kernels/gemm/select.h"', "tests use the public header"),
    ("tests/select/a.cpp", '#include "capi/check.h"', "tests of internals use no capi"),
    ("tests/support/a.h", '#include "tests/step/ranks.h"', "tests/support/ uses no other tests"),
    ("tools/softgpu/runtime/a.cpp", '#include "capi/check.h"', "the software device: runtime/"),
    ("tools/softgpu/ptx/a.h", '#include "tools/softgpu/program/program.h"', "the software device: ptx/"),
    ("tools/softgpu/environment.cpp", '#include "tools/softgpu/ptx/syntax.h"', "the software device: options"),
    ("tools/softgpu/program/a.h", '#include "tools/softgpu/machine/warp.h"', "the software device: program/"),
    ("tools/softgpu/machine/a.h", '#include "tools/softgpu/isa/half.h"', "the software device: machine/"),
    ("tools/softgpu/isa/a.cpp", '#include "tools/softgpu/runtime/streams.h"', "the software device: isa/"),
    ("kernels/gemm/a.cu", "  if (threadIdx.x == 0) return;", "asm, launches, CUDA words"),
    ("kernels/step/a.cu", "#if MP_TARGET_CUDA", "asm, launches, CUDA words"),
    ("kernels/gemm/select.cpp", "  launch(grid);", "selection, update rules and the loss scale are pure"),
    ("kernels/step/schedule.h", "  return lr * pow(rate, progress);", "state, branches and the learning rate"),
    ("kernels/conv/im2col.cpp", "  const MP_TARGET::Axis axis;", "a .cpp is compiled once"),
    ("capi/long.cpp", "// a line\n" * 501, "a file shows one idea"),
    ("bindings/python/mpcore/long.py", "# a line\n" * 501, "a file shows one idea"),
]


@pytest.fixture(scope="module")
def tool(root):
    return types.SimpleNamespace(**runpy.run_path(str(root / "tools/check/check_layers")))


@pytest.mark.parametrize("name, text, rule", BREAKS, ids=[f"{name}: {text[:30].strip()}" for name, text, _ in BREAKS])
def test_breaks(tool, name, text, rule):
    broken = tool.broken_rules({name: text.splitlines()})
    assert len(broken) == 1
    assert broken[0][0].startswith(rule) and broken[0][1].startswith(name)


def test_every_rule_is_broken_once(tool):
    rules = {rule for rule, *_ in tool.INCLUDES + tool.WORDS} | {tool.LENGTH}
    assert {next(one for one in rules if one.startswith(rule)) for _, _, rule in BREAKS} == rules


def test_circle(tool):
    circle = {"tests/step/a.h": '#include "tests/conv/b.h"', "tests/conv/b.h": '#include "tests/gemm/c.h"',
              "tests/gemm/c.h": '#include "tests/step/a.h"', "tests/layers/d.h": '#include "tests/step/a.h"'}
    broken = tool.broken_rules({name: [text] for name, text in circle.items()})
    assert {rule for rule, *_ in broken} == {tool.CIRCLE}
    assert {where for _, where, _ in broken} == {"tests/step/a.h:1", "tests/conv/b.h:1", "tests/gemm/c.h:1"}


def test_circle_within_bench(tool):
    """Its folders count one by one, and common.h apart from what else lies beside it."""
    files = {"bench/rows/a.h": ['#include "bench/common.h"', '#include "bench/timing/b.h"'],
             "bench/timing/b.h": [], "bench/common.h": [], "bench/main.cpp": ['#include "bench/rows/a.h"']}
    assert not tool.broken_rules(files)
    files["bench/timing/b.h"] = ['#include "bench/rows/a.h"']
    assert {rule for rule, *_ in tool.broken_rules(files)} == {tool.CIRCLE}


ALLOWED = """
include/mpcore.h <stddef.h>
include/mpcore.hpp <vector> mpcore.h
kernels/device.h mpcore.h
kernels/simt/simt.h <cuda.h> kernels/device.h kernels/cache.h
kernels/tensors/lists.h mpcore.h
kernels/gemm/problem.h kernels/device.h
kernels/gemm/gemv.h problem.h kernels/simt/simt.h
kernels/step/args.h kernels/tensors/lists.h kernels/simt/compiler.h
kernels/step/optimizer.cu kernels/step/args.h kernels/simt/simt.h
kernels/conv/problem.h kernels/gemm/problem.h
kernels/conv/conv.cu kernels/gemm/gemv.h
kernels/backend.h kernels/conv/problem.h
capi/conv.cpp kernels/backend.h kernels/step/args.h mpcore.h
support/text.h <string>
bench/main.cpp support/text.h
bench/tune/main.cpp kernels/gemm/predict.h bench/suites/suites.h
tests/simulator/simt.cpp kernels/simt/simt.h
tools/softgpu/isa/half.h tools/softgpu/machine/warp.h tools/softgpu/options.h
tests/softgpu/test_ptx.cpp tools/softgpu/ptx/syntax.h tests/support/tally.h
"""


def test_allows(tool):
    files = {}
    for name, *used in map(str.split, ALLOWED.strip().splitlines()):
        files[name] = [f"#include {one}" if one[0] == "<" else f'#include "{one}"' for one in used]
    assert not tool.broken_rules(files)


def test_says_where(root, run, tmp_path):
    (tmp_path / "capi").mkdir()
    (tmp_path / "capi/a.cpp").write_text("// one\n#include <cuda.h>\n")
    said = run(root / "tools/check/check_layers", "--root", tmp_path, code=1)
    assert said.splitlines()[1] == "  capi/a.cpp:2: #include <cuda.h>"
    (tmp_path / "capi/a.cpp").unlink()
    assert run(root / "tools/check/check_layers", "--root", tmp_path) == "layers: ok\n"
