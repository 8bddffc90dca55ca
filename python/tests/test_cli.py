"""The `cuop` command as a shell user meets it: results, exit codes, words on stderr."""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from fresh_process import run_cuop, run_with

pytest.importorskip("typer")

RANDOM = np.random.default_rng(5)


def cuop(*arguments, ranks=None, **options):
    """Run the command; `ranks` starts that many processes under mpirun."""
    command = [sys.executable, "-m", "cuop.cli.main", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "200"}
    if ranks:
        command = ["mpirun", "--oversubscribe", "-np", str(ranks), *command]
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=environment, **options
    )


def write(path, array):
    np.save(path, array)
    return path


@pytest.fixture
def grid(tmp_path):
    return write(tmp_path / "grid.npy", RANDOM.normal(size=(23, 31)))


def test_help_is_complete():
    done = cuop("--help")
    assert done.returncode == 0
    for command in ("info", "demo", "run", "bench", "plan"):
        assert command in done.stdout
        page = cuop(command, "--help")
        assert page.returncode == 0 and "--help" in page.stdout
    run = cuop("run", "--help").stdout
    for operation in "matmul fft fft2d sum mean conv2d stencil jacobi transpose".split():
        assert operation in run
    assert re.fullmatch(r"cuop \d+\.\d+\.\d+\n", cuop("--version").stdout)


def test_the_package_is_the_command_too():
    done = subprocess.run(
        [sys.executable, "-m", "cuop", "info"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout.startswith("cuOP ")
    done = subprocess.run(
        [sys.executable, "-m", "cuop", "nothing"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "nothing" in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "row"),
    [
        ("CUOP_THREADS", "abc", "threads"),
        ("CUOP_THREADS", "99999999999", "threads"),
        ("CUOP_COMM_TIMEOUT", "-1", "default device"),
        ("CUOP_DEVICE", "foo", "default device"),
        ("CUOP_DEVICE", "cuda:99", "current device"),
        ("CUOP_CPU_ISA", "avx", "CPU"),
    ],
)
def test_info_says_which_value_of_the_environment_is_wrong(name, value, row):
    done = run_cuop("info", "--env", **{name: value})
    assert done.returncode == 0, done.stderr
    (said,) = re.findall(rf"^{row} +absent +(.*)", done.stdout, re.MULTILINE)
    assert value in said
    assert re.search(rf"^{name} .*{value}", done.stdout, re.MULTILINE)  # of the variables
    imported = run_with({name: value}, "import cuop")
    assert (imported.returncode, imported.stderr) == (0, "")


def test_info_says_what_is_there_and_why_not():
    done = cuop("info", "--env")
    assert done.returncode == 0, done.stderr
    for part in ("CPU", "BLAS", "FFTW", "oneDNN", "MPI", "CUDA driver", "CUOP_COMM_TIMEOUT"):
        assert part in done.stdout
    assert "\x1b[" not in done.stdout  # plain when not a terminal


@pytest.mark.parametrize("ranks", [1, 3])
def test_every_operation(tmp_path, grid, ranks):
    a = write(tmp_path / "a.npy", RANDOM.normal(size=(13, 31)))
    b = write(tmp_path / "b.npy", RANDOM.normal(size=(31, 7)))
    images = write(tmp_path / "i.npy", RANDOM.normal(size=(5, 2, 9, 8)))
    weight = write(tmp_path / "w.npy", RANDOM.normal(size=(3, 2, 3, 3)))
    rhs = write(tmp_path / "r.npy", RANDOM.normal(size=(23, 31)))
    x, y, g, f = (np.load(p) for p in (a, b, grid, rhs))

    def shifted(u):
        p = np.pad(u, 1)
        return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]

    cases = [
        (["matmul", a, b], x @ y),
        (["fft", a], np.fft.fft(x)),
        (["fft", a, "--axis", 0, "--norm", "ortho"], np.fft.fft(x, axis=0, norm="ortho")),
        (["fft2d", grid], np.fft.fft2(g)),
        (["sum", a], x.sum()),
        (["sum", a, "--axis", 1, "--mode", "exact"], x.sum(axis=1)),
        (["mean", a, "--axis", 0], x.mean(axis=0)),
        (["transpose", a], x.T),
        (["stencil", grid, "--iterations", 2], shifted(shifted(g) - 4 * g) - 4 * (shifted(g) - 4 * g)),
        (["jacobi", grid, rhs, "--dx", 0.5], (shifted(g) - 0.25 * f) / 4),
        (["conv2d", images, weight, "--padding", 1], conv2d(np.load(images), np.load(weight), 1)),
    ]  # fmt: skip
    for arguments, expected in cases:
        done = cuop("run", *arguments, "-o", tmp_path / "out.npy", "--ranks", ranks)
        assert done.returncode == 0, (arguments, done.stderr)
        result = np.load(tmp_path / "out.npy")
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9, err_msg=str(arguments))
        assert str(result.shape) in done.stdout


def conv2d(images, weight, padding):
    from scipy.signal import correlate

    padded = np.pad(images, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    return np.array([[correlate(x, w, "valid")[0] for w in weight] for x in padded])


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="mpirun is not installed")
def test_under_mpirun(tmp_path, grid):
    done = cuop("run", "fft2d", grid, "-o", tmp_path / "out.npy", ranks=3)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), np.fft.fft2(np.load(grid)), atol=1e-9)
    assert done.stdout.count("out.npy") == 1  # one rank speaks
    failed = cuop("run", "fft2d", tmp_path / "absent.npy", "-o", tmp_path / "x.npy", ranks=3)
    assert failed.returncode != 0 and "absent.npy cannot be read" in failed.stderr
    assert "Traceback" not in failed.stderr
    wrong = cuop("run", "sum", grid, "-o", tmp_path / "x.npy", "--ranks", 2, ranks=3)
    assert wrong.returncode != 0 and "3 ranks" in wrong.stderr


def test_usage_errors_exit_with_2(tmp_path, grid):
    out = tmp_path / "o.npy"
    for arguments, words in [
        (["run", "matmul", grid, "-o", out], "takes 2 input files, not 1"),
        (["run", "sum", grid, grid, "-o", out], "takes 1 input files, not 2"),
        (["run", "nonsense", grid, "-o", out], "nonsense"),
        (["run", "sum", grid], "output"),
        (["run", "sum", grid, "-o", out, "--ranks", "0"], "--ranks"),
        (["nonsense"], "nonsense"),
        (["run", "sum", grid, "-o", out, "--ranks", "two"], "'two' was given; needed is a whole"),
        (
            ["run", "sum", grid, "-o", out, "--mode", "magic"],
            "'magic' was given; allowed are plain",
        ),
        (["run", "fft", grid, "-o", out, "--norm", "foo"], "'foo' was given; allowed are backward"),
        (["run", "stencil", grid, "-o", out, "--boundary", "foo"], "allowed are zero, periodic"),
        (["run", "stencil", grid, "-o", out, "--iterations", "-1"], "whole number of at least 0"),
        (
            ["run", "jacobi", grid, grid, "-o", out, "--dx", "0"],
            "'0' was given; needed is a number",
        ),
        (
            ["run", "sum", grid, "-o", out, "--memory-limit", "foo"],
            "'foo' is not a size; give bytes",
        ),
        (["run", "sum", grid, "-o", out, "--memory-limit", "0"], "a limit of 0 bytes"),
        (["demo", "--device", "foo"], "'foo' was given; allowed are cpu, cuda"),
        (["bench", "--suite", "foo"], "'foo' was given; allowed are cpu, gpu"),
        (["tune", "ops", "gemm", "--device", "foo"], "'foo' is not a device; allowed are"),
        (["cache", "warm", "--dtype", "foo"], "'foo' is unknown; known are bool"),
    ]:
        done = cuop(*arguments)
        assert done.returncode == 2, arguments
        assert words in done.stderr and "Traceback" not in done.stderr
        assert "Value error" not in done.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "fft2d", "x.npy", "-o", "o.npy", "--axis", "0"],
         "fft2d has no option --axis; it takes --norm"),
        (["run", "matmul", "x.npy", "x.npy", "-o", "o.npy", "--stride", "1"],
         "matmul has no option --stride; it takes none of its own"),
        (["run", "sum", "x.npy", "-o", "o.npy", "--memory-limit", "1M", "--dx", "2"],
         "sum has no option --dx; it takes --axis, --mode"),
        (["plan", "max", "3x4", "--mode", "exact"], "max has no option --mode; it takes --axis"),
        (["plan", "einsum", "ij->", "3x4", "--dims", "1"], "einsum has no option --dims"),
    ],
)  # fmt: skip
def test_options_of_other_operations_are_refused(tmp_path, arguments, words):
    done = cuop(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_no_case_of_that_name(monkeypatch):
    pytest.importorskip("numexpr")  # which the suite compares with
    typer = pytest.importorskip("typer")
    from cuop.bench import measure, processes
    from cuop.cli import bench

    monkeypatch.setattr(bench, "_use_numpys_blas", lambda: None)
    monkeypatch.setattr(measure, "measure_roofs", lambda: None)
    monkeypatch.setattr(bench, "_about_cpu", lambda roofs: {})
    monkeypatch.setattr(processes, "conv_rows", lambda roofs: [])
    with pytest.raises(
        typer.BadParameter, match="has 'nosuch' in its name; there are .*import"
    ) as raised:
        bench.bench("cpu", "nosuch", None)
    assert raised.value.exit_code == 2


def test_a_cache_that_cannot_be_made_is_said():
    for command in (["tune", "info"], ["cache", "info"]):
        done = in_cache("/proc/x", *command)
        assert done.returncode == 0 and "/proc/x cannot be made" in done.stdout
        assert "usable" not in done.stdout
    done = in_cache("/proc/x", "tune", "ops", "relu", "--size", "8x8", "--dtype", "float32")
    assert "not stored: /proc/x cannot be made" in done.stdout
    assert done.stdout.count("/proc/x") == 1


def in_cache(folder, *arguments):
    command = [sys.executable, "-m", "cuop.cli.main", *arguments]
    environment = {**os.environ, "CUOP_CACHE_DIR": folder}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


def test_a_cache_that_can_be_used_is_said(tmp_path):
    for command in (["tune", "info"], ["cache", "info"]):
        assert "usable" in in_cache(str(tmp_path / "new"), *command).stdout


def test_imported_kernels_must_be_there(tmp_path):
    done = cuop("cache", "import", tmp_path / "none.bin")
    assert done.returncode == 1 and "none.bin cannot be read: No such file" in done.stderr


def test_failures_exit_with_1_and_one_line(tmp_path, grid):
    out = tmp_path / "o.npy"
    fortran = write(tmp_path / "f.npy", np.asfortranarray(np.ones((3, 4))))
    line = write(tmp_path / "line.npy", np.ones(5))
    for arguments, words in [
        (["sum", tmp_path / "absent.npy", "-o", out], "cannot be read"),
        (["sum", fortran, "-o", out], "Fortran-ordered"),
        (["sum", grid, "-o", tmp_path / "no" / "o.npy"], "cannot be written"),
        (["fft2d", line, "-o", out], "fft2d: a grid of 2 dimensions is needed, given (5,)"),
        (["matmul", grid, grid, "-o", out], "matmul"),
        (["sum", grid, "-o", out, "--axis", "7"], "axis 7 is out of range"),
    ]:
        for ranks in (1, 3):
            done = cuop("run", *arguments, "--ranks", ranks)
            assert done.returncode == 1, (arguments, done.stderr)
            assert words in done.stderr, done.stderr
            assert done.stderr.startswith("cuop: error: ") and done.stderr.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.npy", "grid.npy", "line.npy"]


def test_a_full_standard_output_is_one_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "cuop.cli.main", "info"], stdout=full, stderr=subprocess.PIPE, text=True
        )  # fmt: skip
    assert done.returncode == 1 and "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_leaves_nothing(tmp_path):
    big = write(tmp_path / "big.npy", np.ones((512, 512)))
    script = f"ulimit -f 1024; trap '' XFSZ; exec {sys.executable} -m cuop.cli.main run transpose {big} -o {tmp_path}/o.npy"  # noqa: E501
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert (
        done.returncode == 1
        and f"no room for {tmp_path}/o.npy: it needs {512 * 512 * 8 + 128} bytes" in done.stderr
    )
    assert [p.name for p in tmp_path.iterdir()] == ["big.npy"]


@pytest.mark.parametrize("ranks", ["threads", "mpirun"])
def test_demo(tmp_path, ranks):
    if ranks == "mpirun" and shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed")
    report = tmp_path / "report.html"
    choice = ["--ranks", 3] if ranks == "threads" else []
    done = cuop("demo", "-o", report, *choice)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("holds") == 6 and "FAILED" not in done.stdout
    page = report.read_text()
    assert page.count("data:image/png;base64,") >= 12
    assert page.count(">rank ") == (3 if choice else 4)
    assert page.count('class="bar ') > 50
    for link in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert link.startswith("data:")  # self-contained


def test_demo_fails_when_a_check_does(tmp_path):
    code = (
        "import sys; import cuop\n"
        "import numpy; real = numpy.fft.ifft2; numpy.fft.ifft2 = lambda a: real(a) + 1\n"
        "from cuop.cli.main import main\n"
        f"sys.argv = ['cuop', 'demo', '--ranks', '2', '-o', {str(tmp_path / 'r.html')!r}]; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stdout.count("FAILED") == 1 and "FAILED" in (tmp_path / "r.html").read_text()


def test_demo_on_a_gpu_says_that_there_is_none(tmp_path):
    from cuop import device_count

    if device_count("cuda") > 0:
        pytest.skip("there is a GPU")
    done = cuop("demo", "--device", "cuda", "--ranks", 2, "-o", tmp_path / "r.html")
    assert done.returncode == 1
    assert done.stderr.startswith("cuop: error: ") and "cuda" in done.stderr


def test_demo_says_at_once_that_the_report_cannot_be_written(tmp_path):
    done = cuop("demo", "--ranks", 2, "-o", tmp_path / "no" / "r.html")
    assert done.returncode == 1 and "cannot be written" in done.stderr


def run_without_a_reader(arguments, **streams):
    """The exit code and stderr of the command when the reader of its output has gone before."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cuop.cli.main", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            timeout=120,
            text=True,
            **({"stdout": writer, "stderr": subprocess.PIPE} | dict.fromkeys(streams, writer)),
        )
    finally:
        os.close(writer)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["info"],
        ["info", "--env"],
        ["--version"],
        ["--help"],
        ["run", "--help"],
        ["cache", "ls"],
        ["cache", "info"],
        ["cache", "clear"],
        ["tune", "ls"],
        ["tune", "info"],
        ["tune", "clear"],
        ["tune", "ops", "relu", "--size", "8x8", "--dtype", "float32"],
        ["plan", "matmul", "4", "4", "4"],
    ],
    ids=" ".join,
)
def test_a_reader_that_goes_is_no_error(tmp_path, monkeypatch, arguments):
    monkeypatch.setenv("CUOP_CACHE_DIR", str(tmp_path / "cache"))
    code, words = run_without_a_reader(arguments)
    assert code == 0 and "rror" not in words


def test_a_reader_that_goes_leaves_files_complete(tmp_path, grid, monkeypatch):
    monkeypatch.setenv("CUOP_CACHE_DIR", str(tmp_path / "cache"))
    for ranks in (1, 3):
        result = tmp_path / f"sum{ranks}.npy"
        arguments = ["run", "sum", grid, "-o", result, "--ranks", ranks]
        assert run_without_a_reader(arguments) == (0, "")
        assert np.isclose(np.load(result), np.load(grid).sum())
    assert run_without_a_reader(["cache", "export", tmp_path / "kernels"]) == (0, "")
    assert (tmp_path / "kernels").read_bytes() == b"cuop kernels 1\n"


def test_an_error_stays_one_without_a_reader(tmp_path):
    arguments = ["run", "sum", tmp_path / "absent.npy", "-o", tmp_path / "x.npy"]
    code, words = run_without_a_reader(arguments)
    assert code == 1 and "absent.npy" in words
    assert run_without_a_reader(arguments, stderr=True)[0] == 1
    assert run_without_a_reader(["no-such-command"], stderr=True)[0] == 2


def test_closed_standard_output():
    command = [sys.executable, "-m", "cuop.cli.main", "info"]
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], timeout=120)
    assert done.returncode == 0


def test_plans_of_machines_one_does_not_have(tmp_path):
    figures = tmp_path / "gpus.json"
    figures.write_text(json.dumps({"flops": 5e13, "link_bandwidth": 4e11, "memory": 141 * 10**9}))
    done = cuop("plan", "matmul", "50000", "10000", "50000", "--machine", str(figures))
    assert done.returncode == 0, done.stderr
    assert "on 4 ranks" in done.stdout
    assert "considered" in done.stdout
    assert "floor" in done.stdout
    done = cuop(
        "plan", "matmul", "4096", "4096", "4096", "--ranks", "64", "--strategy", "block_2d",
        "--sharded", "--dtype", "bfloat16", "--machine", str(figures), "--json",
    )  # fmt: skip
    plan = json.loads(done.stdout)
    assert (plan["op"], plan["strategy"], plan["ranks"]) == ("matmul", "block_2d", 64)
    assert 0 < plan["floor"] <= plan["seconds"]


def plan_of(ranks, machine):
    """The plan of a product of parts, as JSON, and in words."""
    command = ["plan", "matmul", "16384", "16384", "16384", "--sharded", "--ranks", str(ranks)]
    command += ["--machine", str(machine)]
    in_words = cuop(*command)
    assert in_words.returncode == 0, in_words.stderr
    return json.loads(cuop(*command, "--json").stdout), in_words.stdout


def test_plans_of_several_hosts(tmp_path):
    one, several = tmp_path / "one.json", tmp_path / "several.json"
    figures = {"flops": 5e13, "link_bandwidth": 4e11, "latency": 5e-6, "memory": 141 * 10**9}
    network = {"network_bandwidth": 2.5e10, "network_latency": 2e-5, "ranks_per_host": 8}
    one.write_text(json.dumps(figures))
    several.write_text(json.dumps({"version": 2, **figures, **network}))
    assert plan_of(8, one) == (plan_of(8, several)[0], plan_of(8, one)[1])
    for ranks in (64, 512):
        near, _ = plan_of(ranks, one)
        far, words = plan_of(ranks, several)
        assert far["ranks"] == ranks and far["seconds"] > near["seconds"]
        assert any(step["network_bytes"] > 0 for step in far["steps"])
        assert not any(step["network_bytes"] for step in near["steps"])
        assert "between hosts" in words and "hosts of 8 ranks, network 25 GB/s" in words


def test_a_machine_is_written_as_it_is_read(tmp_path):
    from cuop import dist

    machine = dist.Machine()
    machine.flops, machine.network_latency, machine.ranks_per_host = 1e13 / 3, 1e-5 / 3, 8
    path = tmp_path / "machine.json"
    path.write_text(machine.to_json())
    _, words = plan_of(64, path)
    assert words.endswith(f"reckoned with {machine!r}\n")
    alone = dist.Machine()
    assert "ranks_per_host" not in alone.to_json()
    path.write_text(alone.to_json())
    assert plan_of(2, path)[1].endswith(f"reckoned with {alone!r}\n")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('{"version": 10}', "version is 10; known are 1, 2, 3, 4, 5, 6, 7, 8 and 9"),
        ('{"overlap": 1.5}', "overlap is 1.5; it must be a number from 0 to 1"),
        ('{"version": "2"}', "version is '2'"),
        ('{"version": true}', "version is True"),
        ('{"ranks_per_host": 0}', "ranks_per_host is 0; it must be a whole number above 0"),
        ('{"ranks_per_host": 2.5}', "ranks_per_host is 2.5; it must be a whole number"),
        ("{", "cannot be read as JSON"),
        ("[" * 100000, "cannot be read as JSON"),
        ("[1]", "holds no object of figures"),
        ('{"speed": 1}', "'speed' is no figure; these are: flops"),
        ('{"latency": -1}', "latency is -1; it must be a number of seconds, 0 or more"),
        ('{"flops": 0}', "flops is 0; it must be a number above 0"),
        ('{"memory": NaN}', "memory is nan"),
        ('{"memory": 1000}', "no plan fits the memory limit"),
    ],
)
def test_figures_that_no_machine_has(tmp_path, content, text):
    figures = tmp_path / "machine.json"
    figures.write_text(content)
    done = cuop("plan", "matmul", "100", "100", "100", "--machine", str(figures))
    assert done.returncode == 1
    assert text in done.stderr
    assert done.stderr.count("\n") == 1
    missing = cuop("plan", "matmul", "1", "1", "1", "--machine", str(tmp_path / "none.json"))
    assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)
    assert "none.json cannot be read: No such file" in missing.stderr


def test_figures_may_be_nothing_where_nothing_is_taken(tmp_path):
    figures = tmp_path / "machine.json"
    names = "latency message_overhead call_overhead sharded_call_overhead network_latency network_overhead".split()
    names += ["overlap", "duplex", "between", "stretch"]
    figures.write_text(json.dumps(dict.fromkeys(names, 0)))
    for more in ([], ["--memory-limit", "1M"]):
        done = cuop("plan", "matmul", "100", "100", "100", "--machine", str(figures), *more)
        assert done.returncode == 0, done.stderr
