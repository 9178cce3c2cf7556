"""Tests of tools/compile_commands: one entry for each file that make would compile."""
import json
import subprocess

MAKE_SAYS = """\
mkdir -p build/obj/capi
ccache g++ -std=c++20 -ffile-prefix-map=/here=. -Iinclude -MMD -MP -c capi/core.cpp -o build/obj/capi/core.o
\tg++ -O2 -x c++ -c kernels/gemm/gemv.cu -o build/host/kernels/gemm/gemv.o
g++ -O1 -c capi/core.cpp -o build/again/core.o
g++ -shared build/obj/capi/core.o -o build/libmpcore.so
"""


def test_entries(root, tmp_path):
    done = subprocess.run([root / "tools/compile_commands"], input=MAKE_SAYS, text=True, capture_output=True, check=True,
                          cwd=tmp_path)
    assert json.loads(done.stdout) == [
        {"directory": str(tmp_path), "file": "capi/core.cpp",
         "command": "g++ -std=c++20 -Iinclude -MMD -MP -c capi/core.cpp -o build/obj/capi/core.o"},
        {"directory": str(tmp_path), "file": "kernels/gemm/gemv.cu",
         "command": "g++ -O2 -x c++ -c kernels/gemm/gemv.cu -o build/host/kernels/gemm/gemv.o"}]
