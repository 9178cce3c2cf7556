"""Tests of softgpu/run without the device."""
import os
import pathlib
import subprocess
import sys
import textwrap
import time

RUN = pathlib.Path(__file__).resolve().parents[1] / "run"


def run(*arguments, **options):
    return subprocess.run([str(a) for a in arguments], capture_output=True, text=True, check=False, **options)


def program(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text))
    return [sys.executable, path]


def settings(build, *lines):
    (build / "softgpu").mkdir(parents=True)
    (build / "softgpu/environment").write_text("\n".join(lines) + "\n")


def test_run_sets_the_device_variables(tmp_path):
    command = program(tmp_path, """\
        import os
        for name in ("ARCH", "SEED", "SMS", "PTX", "EDIT"):
            print(name, os.environ.get("SOFTGPU_" + name))
        print(os.environ["MP_TEST_DEVICE"], os.environ["LD_LIBRARY_PATH"].split(":")[0])
        """)
    build = tmp_path / "b"
    settings(build, "MP_TEST_DEVICE=cuda", "SOFTGPU_PTX={build}/cuda:{build}/more")
    done = run(RUN, "--arch", 75, "--seed", 3, "--sms", 5, "--build", build, "--edit", "drop bar", "--", *command)
    assert done.stdout.splitlines() == ["ARCH 75", "SEED 3", "SMS 5", f"PTX {build}/cuda:{build}/more",
                                        "EDIT drop bar", f"cuda {build}/softgpu"]
    assert done.returncode == 0 and done.stderr == ""


def test_run_adds_source_lines_to_diagnostics(tmp_path):
    command = program(tmp_path, f"""\
        import sys
        sys.stderr.write("softgpu: FAULT: out of bounds\\n    kernel f, block 0, thread 1, {tmp_path}/f.ptx:5: add\\n")
        sys.exit(99)
        """)
    settings(tmp_path / "build", "MP_TEST_DEVICE=cuda", "SOFTGPU_SOURCE_LINE=/bin/echo")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MP_", "SOFTGPU_"))}
    done = run(RUN, "--arch", 80, *command, cwd=tmp_path, env=env | {"MP_REPRO": "m=1 n=2"})
    assert done.returncode == 99
    assert "f.ptx:5" in done.stderr.splitlines()
    assert done.stderr.splitlines()[-1] == f"repro: MP_REPRO='m=1 n=2' softgpu/run --arch 80 {command[0]} {command[1]}"


def test_a_missing_source_tool_keeps_the_exit_code(tmp_path):
    command = program(tmp_path, f"""\
        import sys
        sys.stderr.write("softgpu: FAULT: out of bounds\\n    kernel f, {tmp_path}/f.ptx:5: add\\n")
        sys.exit(99)
        """)
    settings(tmp_path / "build", "SOFTGPU_SOURCE_LINE=/no/such/tool")
    done = run(RUN, *command, cwd=tmp_path)
    assert done.returncode == 99 and "SOFTGPU_SOURCE_LINE: " in done.stderr and "repro: " in done.stderr


def test_run_kills_a_hanging_program(tmp_path):
    done = run(RUN, "--limit", 0.2, *program(tmp_path, "import time; time.sleep(60)"))
    assert done.returncode == 124 and "killed after 0.2 s" in done.stderr


def test_run_kills_child_processes(tmp_path):
    command = program(tmp_path, "import subprocess; subprocess.run(['sleep', '60'])")
    begin = time.monotonic()
    done = run(RUN, "--limit", 0.5, *command)
    assert done.returncode == 124 and time.monotonic() - begin < 30


def test_wrong_options_are_named():
    assert "--colour: unknown" in run(RUN, "--colour", "red", "x").stderr
    assert "PROGRAM is missing" in run(RUN, "--arch", "90").stderr
    assert "softgpu/run [OPTION]" in run(RUN, "--help").stdout
