"""`cuop plan`: every operation over ranks and in tiles, and what no plan can be made of."""

import copy
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from cuop import Error, MemoryError, ShapeError, dist, executor

pytest.importorskip("typer")
from typer.testing import CliRunner  # noqa: E402

from cuop.cli.main import _application  # noqa: E402

FLOAT = "float32"
#: The command's arguments, the operation, and the shapes of its arrays.
CASES = {
    "matmul": (["90x70", "70x50"], executor.matmul(), [(90, 70), (70, 50)]),
    "batch_matmul": (["5x9x7", "7x3"], executor.batch_matmul(), [(5, 9, 7), (7, 3)]),
    "add": (["90x70", "70"], executor.add(), [(90, 70), (70,)]),
    "transpose": (["9x7x5", "--dim1", "2"], executor.transpose(0, 2), [(9, 7, 5)]),
    "fft": (["90x70", "--axis", "0"], executor.fft(dim=0), [(90, 70)]),
    "ifft": (["90x70"], executor.ifft(), [(90, 70)]),
    "rfft": (["90x70"], executor.rfft(), [(90, 70)]),
    "irfft": (["90x70", "--axis", "0"], executor.irfft(dim=0), [(90, 70)]),
    "fft2d": (["4x30x70"], executor.fft2d(), [(4, 30, 70)]),
    "sum": (["90x70", "--axis", "1", "--mode", "exact"], executor.sum(1, mode="exact"), [(90, 70)]),
    "mean": (["90x70"], executor.mean(), [(90, 70)]),
    "max": (["90x70"], executor.max(), [(90, 70)]),
    "min": (["90x70", "--axis", "0"], executor.min(0), [(90, 70)]),
    "conv2d": (
        ["2x3x9x8", "4x3x3x3", "4", "--stride", "2", "--padding", "1"],
        executor.conv((2, 2), (1, 1)),
        [(2, 3, 9, 8), (4, 3, 3, 3), (4,)],
    ),
    "conv3d": (["1x2x5x6x7", "3x2x3x3x3"], executor.conv(1), [(1, 2, 5, 6, 7), (3, 2, 3, 3, 3)]),
    "stencil": (
        ["90x70", "--iterations", "5", "--boundary", "periodic"],
        executor.stencil_pass("periodic", 5),
        [(90, 70), (3, 3)],
    ),
    "jacobi": (
        ["90x70", "90x70", "--iterations", "5"],
        executor.jacobi_pass(1.0, "zero", 5, 1e-6),
        [(90, 70), (90, 70)],
    ),
    "tensordot": (["3x4x5", "4x5x6"], executor.tensordot(2), [(3, 4, 5), (4, 5, 6)]),
    "einsum": (
        ["ij,jk,kl->il", "9x8", "8x7", "7x6"],
        executor.einsum("ij,jk,kl->il"),
        [(9, 8), (8, 7), (7, 6)],
    ),
}


def planned(*arguments, code=0):
    """The command within this process, which saves its start; test_cli.py runs it as a user does."""
    done = CliRunner().invoke(_application(), ["plan", *map(str, arguments)])
    is_refused = isinstance(done.exception, Error)
    if not is_refused and not isinstance(done.exception, (SystemExit, type(None))):
        raise done.exception
    stderr = f"{done.exception}\n" if is_refused else done.stderr
    assert done.exit_code == code, stderr
    return SimpleNamespace(stdout=done.stdout, stderr=stderr)


@pytest.fixture
def machine(tmp_path):
    """Figures of a cluster; of this machine is what they do not name."""
    path = tmp_path / "machine.json"
    figures = {
        "flops": 5e13, "half_speed": 2, "double_speed": 0.5, "memory_bandwidth": 3e12,
        "link_bandwidth": 4e11, "latency": 2e-6, "message_overhead": 1e-6, "memory": 10**11,
        "upload": 5e10, "download": 4e10,
    }  # fmt: skip
    path.write_text(json.dumps(figures))
    return path


def figures_of(path):
    rank = dist.Machine.of_device()
    given = json.loads(path.read_text())
    host = {name: given.pop(name) for name in ("upload", "download")}
    for name, value in given.items():
        setattr(rank, name, value)
    return rank, host


@pytest.mark.parametrize("name", CASES)
def test_every_operation_over_ranks_and_in_tiles(machine, name):
    arguments, operation, shapes = CASES[name]
    rank, host = figures_of(machine)
    common = [name, *arguments, "--ranks", "3", "--machine", machine, "--json"]
    made = json.loads(planned(*common).stdout)
    expected = executor.plan_ranks(operation, shapes, [FLOAT] * len(shapes), ranks=3, machine=rank)
    assert made == json.loads(expected.to_json())
    assert made["ranks"] == 3 and made["seconds"] > 0
    assert 0 < made["floor"] <= made["seconds"] and made["floor_memory_bytes"] > 0
    assert re.search(r"\n  floor +at least .* flop and ", planned(*common[:-1]).stdout)
    assert len(made["candidates"]) == len(expected.candidates) >= 1

    tiled = json.loads(planned(*common, "--memory-limit", "100K").stdout)
    assert tiled["op"] == name and tiled["feasible"]
    if name in ("stencil", "jacobi"):  # the grid is 25 kB: more than a sixth of the limit
        expected = [each["plan"] for each in tiled["passes"]]
        assert sum(each["times"] * int(each["text"].split()[0]) for each in tiled["passes"]) == 5
    else:
        cluster = executor.TileMachine.of(3, memory=100 << 10, device=rank, **host)
        plan = executor.plan_tiles(operation, shapes, [FLOAT] * len(shapes), cluster)
        expected = [json.loads(plan.to_json())]
        assert tiled["seconds"] == pytest.approx(plan.seconds)
    assert [each["plan"] for each in tiled["passes"]] == expected
    for plan in expected:
        assert plan["memory"] <= plan["limit"] == 100 << 10
        assert plan["smallest"] <= plan["memory"] and plan["floor"] <= plan["seconds"]
        assert plan["strategy"] in [each["strategy"] for each in plan["candidates"]]


def test_what_is_planned_is_what_is_done():
    """Plans on paper are those that calls of as many ranks follow."""
    random = np.random.default_rng(0)
    a, b = random.normal(size=(90, 70)), random.normal(size=(70, 50))
    calls = [
        (executor.matmul(), [a, b], dist.matmul_from_root),
        (executor.add(), [a, a], dist.add_from_root),
        (executor.fft(), [a], dist.fft_from_root),
        (executor.sum(), [a], dist.sum_from_root),
        (executor.stencil_pass("zero", 1), [a, np.ones((3, 3))], dist.stencil_2d_from_root),
    ]

    def done(comm, function, arrays):
        function(comm, *(arrays if comm.rank == 0 else [None] * len(arrays)))
        return dist.last_report().plan.to_json()

    for operation, arrays, function in calls:
        shapes, dtypes = [x.shape for x in arrays], [str(x.dtype) for x in arrays]
        machine = dist.Machine.of_device()
        plan = executor.plan_ranks(operation, shapes, dtypes, ranks=3, machine=machine)
        ran = json.loads(dist.run_ranks(lambda comm, f=function, x=arrays: done(comm, f, x), 3)[0])
        paper = json.loads(plan.to_json())
        for key in ("op", "inputs", "outputs"):
            assert ran[key] == paper[key] or ran["strategy"] != paper["strategy"]
        assert [each["strategy"] for each in ran["candidates"]] == [
            each["strategy"] for each in paper["candidates"]
        ]
        tiles = executor.plan(dist.world(), operation, shapes, dtypes, memory_limit=20_000)
        cluster = executor.TileMachine.of(memory=20_000)
        on_paper = executor.plan_tiles(operation, shapes, dtypes, cluster)
        assert (tiles.smallest, tiles.feasible) == (on_paper.smallest, on_paper.feasible)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft"])
def test_a_line_that_fits_nowhere_goes_in_four_steps(machine, name):
    common = ["--memory-limit", "100K", "--machine", machine, "--dtype", "float64"]
    text = planned(name, "60000", *common).stdout
    assert f"{name}: columns, 1 times" in text and f"{name}: rows, 1 times" in text
    made = json.loads(planned(name, "60000", *common, "--json").stdout)
    assert made["feasible"] and made["way"] == "four steps"
    columns, rows = (each["plan"] for each in made["passes"])
    assert columns["shape"] == [240 if name != "rfft" else 121, 250]
    assert rows["shape"] == columns["shape"]
    assert max(columns["smallest"], rows["smallest"]) == made["smallest"] < 100 << 10
    assert json.loads(planned(name, "600", *common, "--json").stdout)["way"] == "at once"
    long = ["4000000", "--memory-limit", "1M", "--ranks", "1", "--json"]
    half = json.loads(planned("rfft", *long).stdout)
    whole = json.loads(planned("fft", *long, "--dtype", "complex64").stdout)
    moved = [
        sum(each["plan"]["uploaded"] + each["plan"]["downloaded"] for each in plan["passes"])
        for plan in (half, whole)
    ]
    assert moved[0] == pytest.approx(moved[1] / 2, rel=0.03)


def test_a_line_that_becomes_real_goes_in_four_steps(machine):
    common = ["--memory-limit", "100K", "--machine", machine, "--dtype", "complex128"]
    made = json.loads(planned("irfft", "30001", *common, "--json").stdout)
    assert made["feasible"] and made["way"] == "four steps"
    assert [each["text"] for each in made["passes"]] == ["rows", "columns"]
    assert [each["plan"]["shape"] for each in made["passes"]] == [[121, 250], [240, 250]]


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_a_line_of_prime_length_goes_by_a_chirp(machine, name):
    common = ["--machine", machine, "--dtype", "float64"]
    length = "60013" if name != "irfft" else "30007"  # of 60012 = 12 x 3 x 1667
    text = planned(name, length, *common, "--memory-limit", "100K").stdout
    passes = ["filter", "columns", "products", "result"]
    assert all(f"{name}: {each}, 1 times" in text for each in passes)
    assert "on the host beside arrays and result" in text and "with --resume" in text
    made = json.loads(planned(name, length, *common, "--memory-limit", "100K", "--json").stdout)
    assert made["feasible"] and made["way"] == "chirp"
    assert [each["text"] for each in made["passes"]] == passes
    assert max(each["plan"]["smallest"] for each in made["passes"]) == made["smallest"]
    outputs = 30007 if name == "rfft" else 60013 - (name == "irfft")
    inputs = 30007 if name == "irfft" else 60013
    assert 1 <= made["scratch"] / (2 * 16 * (inputs + outputs - 1)) < 1.05
    assert made["kept_scratch"] * 2 == made["scratch"] * 3
    assert made["seconds"] == pytest.approx(sum(each["plan"]["seconds"] for each in made["passes"]))
    smallest = made["smallest"]
    planned(name, length, *common, "--memory-limit", smallest)
    done = planned(name, length, *common, "--memory-limit", smallest - 1, code=1)
    assert f"need {smallest} bytes" in done.stderr


def test_plans_are_explained(machine):
    text = planned("matmul", "500", "300", "400", "--machine", machine).stdout
    assert "on 4 ranks" in text and "considered" in text and "block_2d" in text
    arguments = ["--machine", machine, "--memory-limit", "100K", "--dtype", "float64"]
    text = planned("matmul", "500x300", "300x400", *arguments).stdout
    for part in (
        "tiles of",
        "steps",
        "100 KiB may be used",
        "with less than",
        "predicted",
        "floor",
    ):
        assert part in text
    assert "considered\n    one: " in text and "upload 50 GB/s" in text
    text = planned("fft2d", "500x300", *arguments).stdout
    assert "fft2d: rows" in text and "fft2d: columns" in text
    text = planned("fft2d", "50x30", *arguments).stdout
    assert "fft2d: at once" in text
    text = planned("stencil", "500x300", "--iterations", "7", *arguments).stdout
    assert "stencil: " in text and "sweeps, " in text
    text = planned("jacobi", "50x30", "50x30", *arguments).stdout
    assert "the grid fits and is swept whole" in text
    whole = json.loads(planned("stencil", "50x30", *arguments, "--json").stdout)
    assert whole["passes"] == [] and whole["over_ranks"]["op"] == "stencil_2d"


def test_parts_stay_where_they_are_made(machine):
    text = planned("add", "90x70", "90x70", "--sharded", "--machine", machine).stdout
    assert "0 B moved" in text and "root" not in text
    made = json.loads(
        planned("sum", "90x70", "--strategy", "split_kept", "--axis", "0", "--json").stdout
    )
    assert made["strategy"] == "split_kept"
    assert json.loads(planned("sum", "", "--sharded", "--json").stdout)["op"] == "sum"


@pytest.mark.parametrize("shape", ["0x5", "1x1", "7x0", "13x1"])
def test_empty_and_narrow_arrays(shape):
    for name in ("transpose", "sum", "rfft" if not shape.endswith("0") else "sum"):
        planned(name, shape, "--ranks", "7")
        planned(name, shape, "--ranks", "7", "--memory-limit", "1K")


@pytest.mark.parametrize("name", ["matmul", "fft2d", "stencil", "rfft"])
def test_limits_in_which_nothing_fits(machine, name):
    shapes = {
        "matmul": ["90x70", "70x50"],
        "fft2d": ["400x300"],
        "stencil": ["90x70"],
        "rfft": ["60000"],
    }[name]
    arguments = [name, *shapes, "--memory-limit", "10", "--machine", machine]
    done = planned(*arguments, code=1)
    assert "not feasible, needed are" in done.stdout
    needed = int(done.stderr.split("need ")[1].split(" bytes")[0])
    assert f"{needed} bytes on a device, 10 may be used" in done.stderr
    assert done.stderr.count("\n") == 1
    assert json.loads(planned(*arguments, "--json", code=1).stdout)["feasible"] is False
    arguments[arguments.index("10")] = str(needed)
    planned(*arguments)
    arguments[arguments.index(str(needed))] = str(needed - 1)
    planned(*arguments, code=1)


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["matmul", "10x20", "30x40"], "shapes (10, 20) and (30, 40) do not fit", 1),
        (["matmul", "10x20"], "matmul takes 2 shapes, or the three sizes M K N, not 1", 2),
        (["matmul", "10", "20x3", "30"], "or the three sizes M K N, not 3", 2),
        (["conv2d", "1x2x3x3", "1x2x3x3", "1", "1"], "conv2d takes 2 or 3 shapes, not 4", 2),
        (["sum", "10x"], "'10x' is no shape; sizes of up to 18 digits", 2),
        (["sum", "1e9"], "'1e9' is no shape", 2),
        (["sum", "٣x3"], "is no shape", 2),
        (["sum", "9" * 19], "is no shape", 2),
        (["sum", "4000000000x4000000000"], "does not fit in 64 bits", 1),
        (["sum", "9" * 18], "is more than any memory", 1),
        (["matmul", "500000000x1", "1x1000000000"], "is more than any memory", 1),
        (["fft", "10", "--axis", "3"], "axis 3 is out of range", 1),
        (["sum", "10", "--dtype", "real"], "'real' is unknown; known are bool", 2),
        (["sum", "10", "--mode", "real"], "real", 2),
        (["sum", "10", "--strategy", "x"], 'no strategy "x"; possible here are', 1),
        (["sum", "10", "--memory-limit", "lots"], "--memory-limit", 2),
        (["sum", "10", "--memory-limit", "0"], "a limit of 0 bytes", 2),
        (["sum", "10", "--memory-limit", "1K", "--sharded"], "are not of plans with", 2),
        (["sum", "10", "--ranks", "0"], "'--ranks'", 2),
        (["einsum", "ij,jk->ik", "3x4"], "einsum", 1),
        (["einsum", "ij->ij", "3x4", "3x4"], "2 shapes were given", 1),
        (["einsum", "ij->"], "0 shapes were given", 1),
        (["einsum", "i(j->", "3x4"], "einsum", 1),
        (["stencil", "9x9", "2x2"], "odd size", 1),
        (["stencil", "9x9", "--boundary", "round"], "round", 2),
        (["jacobi", "9x9", "9x8"], "jacobi", 1),
        (["fft2d", "10"], "fft2d", 1),
        (["solve", "10"], "solve", 2),
    ],
)
def test_what_cannot_be_planned(arguments, words, code):
    done = planned(*arguments, code=code)
    assert words in " ".join(done.stderr.split())


def test_devices_that_are_linked_bring_what_several_read_once():
    shapes, dtypes = [(4096, 4096), (4096, 4096)], [FLOAT] * 2
    link = {"upload": 5e9, "download": 5e9, "duplex": 0.5, "device": dist.Machine()}
    link["device"].flops, link["device"].memory_bandwidth = 5e13, 4e12

    def plan_for(between):
        machine = executor.TileMachine.of(2, memory=1 << 30, between=between, **link)
        assert machine.between == between
        return executor.plan_tiles(executor.matmul(), shapes, dtypes, machine)

    alone, linked = plan_for(0.0), plan_for(3e11)
    assert alone.shared == 0 and linked.shared > 0
    assert alone.uploaded == pytest.approx(linked.uploaded + linked.shared, rel=0.02)
    assert linked.uploaded == pytest.approx(64 << 20, rel=0.02)  # half of all
    assert linked.seconds < alone.seconds
    assert "to it from other devices" in linked.explain()


def test_rows_that_lie_apart_take_the_time_that_the_machine_says(tmp_path):
    link = {"upload": 1e12, "download": 1e12, "duplex": 1.0, "device": dist.Machine()}

    def seconds(stretch):
        machine = executor.TileMachine.of(memory=1 << 20, stretch=stretch, **link)
        assert machine.stretch == stretch
        return executor.plan_tiles(
            executor.transpose(0, 1), [(4096, 4096)], [FLOAT], machine
        ).seconds

    rows = 4096 * 4096 * 4 / (1 << 20) * 512  # at least: of tiles of 512 x 512 and less
    assert seconds(1e-6) > seconds(0.0) + 1e-6 * rows / 2
    assert executor.TileMachine.of(memory=1 << 20, **link).stretch > 0
    path = tmp_path / "machine.json"
    planned_seconds = []
    for stretch in (0, 1e-6):
        path.write_text(json.dumps({"upload": 1e12, "download": 1e12, "stretch": stretch}))
        words = "transpose 4096x4096 --memory-limit 1M --json --machine".split()
        plan = json.loads(planned(*words, path).stdout)["passes"][0]["plan"]
        planned_seconds.append(plan["seconds"])
    assert planned_seconds[1] > planned_seconds[0] + 1e-6 * rows / 2


def test_a_machine_file_tells_how_devices_are_linked(tmp_path):
    figures = {"flops": 5e13, "memory_bandwidth": 4e12, "upload": 5e9, "download": 5e9}
    shared = []
    for between in (0, 3e11):
        path = tmp_path / "machine.json"
        path.write_text(json.dumps(figures | {"between": between}))
        words = "matmul 4096 4096 4096 --ranks 2 --memory-limit 1G --json --machine".split()
        shared.append(json.loads(planned(*words, path).stdout)["passes"][0]["plan"]["shared"])
    assert shared[0] == 0 < shared[1]


def test_calls_that_cannot_be():
    sum_ = executor.sum()
    for arguments, words in [
        ({"memory": 0}, "0 bytes a device"),
        ({"memory": 1, "devices": 0}, "0 devices"),
        ({"memory": 1, "devices": 1 << 16}, "65536 devices"),
        ({"memory": 1, "upload": 0.0}, "upload is 0"),
        ({"memory": 1, "download": float("nan")}, "download is nan"),
        ({"memory": 1, "duplex": 1.5}, "duplex is 1.5; it must be from 0 to 1"),
        (
            {"memory": 1, "between": -1.0},
            "between is -1 bytes a second; it must be a number from 0",
        ),
        ({"memory": 1, "between": float("inf")}, "between is inf"),
        ({"memory": 1, "stretch": -1e-9}, "stretch is -1e-09 seconds; it must be a number from 0"),
        ({"memory": 1, "stretch": float("nan")}, "stretch is nan"),
    ]:
        with pytest.raises(Error, match=words):
            executor.TileMachine.of(**arguments)
    with pytest.raises(Error, match="2 shapes and 1 dtypes"):
        executor.plan_ranks(sum_, [(3,), (3,)], [FLOAT])
    with pytest.raises(Error, match="2 shapes and 1 dtypes"):
        executor.plan(dist.world(), executor.add(), [(3,), (3,)], [FLOAT])
    with pytest.raises(Error, match="0 ranks were given"):
        executor.plan_ranks(sum_, [(3,)], [FLOAT], ranks=0)
    with pytest.raises(MemoryError, match="no plan fits the memory limit"):
        small = dist.Machine()
        small.memory = 10
        executor.plan_ranks(sum_, [(300,)], [FLOAT], machine=small)
    with pytest.raises(Error, match="0 sweeps were given"):
        machine = executor.TileMachine.of(memory=1000)
        executor.plan_stencil_2d([(9, 9), (3, 3)], [FLOAT] * 2, "zero", 0, machine)
    with pytest.raises(ShapeError, match="2 dimensions is needed"):
        executor.plan_fft2d_grid((9,), FLOAT, machine)
    with pytest.raises(Error, match="machine: needed is a TileMachine or RankDevices, given int"):
        executor.plan_fft_line((9,), FLOAT, machine=3)
    with pytest.raises(
        Error, match='kind is "dct"; possible are "fft", "ifft", "rfft" and "irfft"'
    ):
        executor.plan_fft_line((9,), FLOAT, kind="dct", machine=machine)
    assert executor.result_of(sum_, [(3, 4)], ["int8"]) == ((), "int64")
    assert executor.whole_grid_bytes((10, 10), "float64") == 4800


@pytest.mark.parametrize("name", CASES)
def test_no_way_is_considered_twice(machine, name):
    arguments = [name, *CASES[name][0], "--machine", machine, "--ranks", "8", "--json"]
    over_ranks = json.loads(planned(*arguments).stdout)
    in_tiles = json.loads(planned(*arguments, "--memory-limit", "100K").stdout)
    for plan in (over_ranks, *(each["plan"] for each in in_tiles["passes"])):
        ways = [(each["strategy"], each["detail"]) for each in plan["candidates"]]
        assert len(set(ways)) == len(ways)
        assert (plan["strategy"], plan["detail"]) in ways


def test_grids_of_tiles_are_told_apart():
    devices = executor.TileMachine.of(8, memory=1 << 20)
    plan = executor.plan_tiles(executor.matmul(), [(2048, 2048)] * 2, [FLOAT] * 2, devices)
    details = [each.detail for each in plan.candidates if each.strategy == "grid"]
    assert details == ["(dim 0 in 2, dim 1 in 4)", "(dim 0 in 4, dim 1 in 2)"]
    assert plan.explain().count("* ") == 1 and f"grid {details[0]}: " in plan.explain()


def test_all_figures_of_a_machine_have_names():
    machine = dist.Machine()
    written = json.loads(machine.to_json())
    assert set(written) == {*dist.Machine.figures(), "version", "memory"}
    assert all(written[name] == getattr(machine, name) for name in dist.Machine.figures())
    other = copy.copy(machine)
    other.flops = 3.0
    assert other.flops == 3.0 != machine.flops
