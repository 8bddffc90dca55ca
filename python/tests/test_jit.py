"""JIT wrappers: every kernel gives the operator's result; choices are cached and counted truly."""

import os
import pathlib

import numpy as np
import pytest
from fresh_process import output_of
from in_threads import in_threads
from wrappers import case, kinds, names

import cuop


@pytest.fixture(autouse=True)
def empty_memory(own_cache):
    """Each test has its own cache directory and an empty memory."""
    cuop.clear_kernel_cache()


@pytest.mark.cpu
@names
@kinds
@pytest.mark.parametrize("kernel_type", ["auto", "simple", "tiled", "off"])
def test_every_kernel_gives_the_operators_result(name, kind, dtype, kernel_type):
    op, inputs, shape = case(name, "", kind)
    jit, _, _ = case(name, "JIT", kind)
    if kernel_type == "off":
        jit.enable_jit(False)
    else:
        jit.set_jit_config(cuop.JITConfig(kernel_type=kernel_type))
    expected = op.forward(*inputs, cuop.ones(shape, dtype))
    y = cuop.ones(shape, dtype)
    assert jit.forward(*inputs, y) is y
    tolerance = 2e-5 if kind == "Float" else 1e-13
    np.testing.assert_allclose(np.asarray(y), np.asarray(expected), rtol=0, atol=50 * tolerance)
    assert jit.name == f"JIT{name}{kind}"


@pytest.mark.cpu
@names
def test_the_kernel_that_was_asked_for_runs(name):
    jit, inputs, shape = case(name, "JIT", "Float")
    results = {}
    for kernel_type in ("simple", "tiled"):
        jit.set_jit_config(cuop.JITConfig(kernel_type=kernel_type))
        jit.forward(*inputs, cuop.ones(shape))
        results[kernel_type] = jit.get_performance_profile().kernel_type
    assert results == {"simple": "simple", "tiled": "tiled"}


@pytest.mark.cpu
@names
def test_choices_are_remembered_and_counted(name):
    jit, inputs, shape = case(name, "JIT", "Float")
    for _ in range(3):
        jit.forward(*inputs, cuop.ones(shape))
    statistics = jit.get_statistics()
    assert (statistics.compilations, statistics.cache_misses, statistics.cache_hits) == (1, 1, 2)
    assert statistics.compilation_time_ms > 0
    assert statistics.time_saved_ms == pytest.approx(2 * statistics.compilation_time_ms, rel=0.5)
    assert dict(statistics)["persistent_cache_hits"] == 0


def test_the_profile_is_filled_in():
    jit, inputs, shape = case("Gemm", "JIT", "Float")
    assert jit.get_performance_profile().kernel_type == ""
    jit.forward(*inputs, cuop.ones(shape))
    profile = jit.get_performance_profile()
    assert profile.execution_time >= profile.kernel_time_ms > 0
    assert profile.execution_time == pytest.approx(
        profile.kernel_time_ms + profile.launch_overhead_ms
    )
    flops = 2 * 17 * 21 * 33
    assert profile.gflops == pytest.approx(flops / profile.kernel_time_ms / 1e6)
    moved = 4 * (17 * 33 + 33 * 21 + 2 * 17 * 21)
    assert profile.bandwidth_gb_s == pytest.approx(moved / profile.kernel_time_ms / 1e6)
    assert profile.compilation_time_ms > 0
    assert profile.no_effect == []
    cuop.measured_roof("float32")
    assert jit.get_performance_profile().percent_of_roof > 0
    assert profile.used_tensor_core is False
    assert profile["gflops"] == profile.gflops and set(dict(profile)) == set(profile.keys())
    with pytest.raises(KeyError):
        profile["speed"]


@pytest.mark.cpu
def test_warmup_chooses_and_leaves_the_output_alone():
    jit, inputs, shape = case("Softmax", "JIT", "Float")
    jit.warmup()
    assert jit.get_statistics().compilations == 0
    y = cuop.full(shape, 7.0)
    jit.warmup(*inputs, y)
    assert np.all(np.asarray(y) == 7)
    assert jit.get_statistics().compilations == 1
    jit.forward(*inputs, y)
    assert jit.get_statistics().cache_hits == 1


def test_measuring_leaves_inputs_and_running_statistics_alone():
    jit = cuop.JITGemmFloat(beta=1.0)
    jit.set_weight(np.eye(4))
    c = cuop.ones((4, 4))
    jit.forward(np.ones((4, 4)), c)
    assert c.tolist() == [[2.0] * 4] * 4  # accumulated once, however often it was measured
    norm = cuop.JITBatchNormFloat(momentum=0.5)
    norm.train(True)
    x = cuop.tensor([[1.0], [3.0]])
    norm.forward(x, cuop.zeros((2, 1)))
    assert norm.get_running_mean().tolist() == [1.0]
    relu = cuop.JITReluFloat()
    t = cuop.tensor([-1.0, 2.0])
    assert relu.forward(t, t).tolist() == [0.0, 2.0]


@pytest.mark.cpu
@pytest.mark.parametrize("kernel_type", ["tiled", "auto"])
@pytest.mark.parametrize("tile", [1, 7, 32, 200])
@pytest.mark.parametrize("name", ["Gemm", "Gemv", "MatMul"])
def test_products_take_any_tile(name, tile, kernel_type):
    op, inputs, shape = case(name, "", "Double")
    jit, _, _ = case(name, "JIT", "Double")
    jit.set_jit_config(cuop.JITConfig(kernel_type=kernel_type, tile_size=tile))
    y = jit.forward(*inputs, cuop.ones(shape, "float64"))
    expected = op.forward(*inputs, cuop.ones(shape, "float64"))
    np.testing.assert_allclose(np.asarray(y), np.asarray(expected), atol=1e-12)
    assert jit.get_performance_profile().kernel_type == f"tiled/{tile}"


@pytest.mark.cpu
@pytest.mark.parametrize("level, kernel", [("O0", "simple"), ("O1", "tiled"), ("fast", "tiled")])
def test_levels_that_do_not_measure(level, kernel, tmp_path):
    jit, inputs, shape = case("Gemm", "JIT", "Float")
    jit.enable_persistent_cache(True)
    jit.set_persistent_cache_directory(str(tmp_path / "levels"))
    jit.set_jit_config(cuop.JITConfig(optimization_level=level))
    jit.forward(*inputs, cuop.ones(shape))
    assert jit.get_performance_profile().kernel_type == kernel
    assert os.listdir(tmp_path / "levels") == []  # nothing was measured or is worth keeping


def test_auto_tuning_may_be_switched_off_but_best_measures_all_the_same(tmp_path):
    config = cuop.get_global_jit_config()
    config.enable_auto_tuning = False
    cuop.set_global_jit_config(config)
    for level, is_kept in [("auto", False), ("best", True)]:
        jit, inputs, shape = case("Gemm", "JIT", "Float")
        jit.enable_persistent_cache(True)
        jit.set_persistent_cache_directory(str(tmp_path / level))
        jit.set_jit_config(cuop.JITConfig(optimization_level=level))
        jit.forward(*inputs, cuop.ones(shape))
        assert bool(os.listdir(tmp_path / level)) == is_kept


@pytest.mark.cpu
def test_caching_and_jit_may_be_switched_off_for_all():
    config = cuop.get_global_jit_config()
    config.enable_caching = False
    cuop.set_global_jit_config(config)
    jit, inputs, shape = case("Relu", "JIT", "Float")
    jit.forward(*inputs, cuop.ones(shape))
    jit.forward(*inputs, cuop.ones(shape))
    assert (jit.get_statistics().compilations, jit.get_statistics().cache_hits) == (2, 0)
    config.enable_jit = False
    cuop.set_global_jit_config(config)
    jit.forward(*inputs, cuop.ones(shape))
    assert jit.get_statistics().compilations == 2


def persistent(tmp_path):
    jit, inputs, shape = case("Gemm", "JIT", "Float")
    jit.enable_persistent_cache(True)
    jit.set_persistent_cache_directory(str(tmp_path))
    jit.forward(*inputs, cuop.ones(shape))
    return jit.get_statistics()


@pytest.mark.cpu
def test_choices_are_kept_on_disk(tmp_path):
    directory = tmp_path / "kept"
    assert persistent(directory).compilations == 1
    assert [name.endswith(".choice.json") for name in os.listdir(directory)] == [True]
    assert os.stat(directory).st_mode & 0o077 == 0
    cuop.clear_kernel_cache()  # what the process remembers; the files are elsewhere
    statistics = persistent(directory)
    assert (statistics.compilations, statistics.persistent_cache_hits) == (0, 1)
    assert statistics.time_saved_ms > 0


@pytest.mark.cpu
def test_a_choice_made_in_memory_is_kept_when_a_wrapper_asks(tmp_path):
    jit, inputs, shape = case("Gemm", "JIT", "Float")
    jit.forward(*inputs, cuop.ones(shape))
    assert persistent(tmp_path / "later").cache_hits == 1
    assert len(os.listdir(tmp_path / "later")) == 1


@pytest.mark.cpu
@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other"])
def test_damaged_files_are_ignored_counted_and_replaced(tmp_path, damage):
    directory = tmp_path / "damaged"
    persistent(directory)
    (path,) = directory.iterdir()
    text = path.read_text()
    changed = {
        "cut": text[: len(text) // 2],
        "flip": text.replace("tiled", "tiles", 1),
        "empty": "",
        "other": text.replace("GemmFloat", "GemvFloat"),
    }
    path.write_text(changed[damage])
    cuop.clear_kernel_cache()
    statistics = persistent(directory)
    assert (statistics.compilations, statistics.damaged_entries) == (1, 1)
    assert path.read_text().startswith('{"schema":2,"key":"JITGemmFloat')
    cuop.clear_kernel_cache()
    assert persistent(directory).persistent_cache_hits == 1


@pytest.mark.cpu
def test_a_directory_that_others_can_write_to_is_not_used(tmp_path, capfd):
    directory = tmp_path / "open"
    directory.mkdir()
    directory.chmod(0o777)
    for calls in (0, 1):
        statistics = persistent(directory)
        assert (statistics.cache_misses, statistics.cache_hits) == (1 - calls, calls)
    assert os.listdir(directory) == []
    warnings = [line for line in capfd.readouterr().err.splitlines() if str(directory) in line]
    assert len(warnings) == 1 and "can be written by other users" in warnings[0]


def test_a_directory_that_cannot_be_is_an_error(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    jit = cuop.JITGemmFloat()
    jit.enable_persistent_cache(True)
    for path in (file, file / "below", "/proc/cuop/cache"):
        off = cuop.JITGemmFloat()
        off.set_persistent_cache_directory(path)  # nothing is made while the cache is off
        with pytest.raises(cuop.ExecutionError, match=f"JITGemmFloat: .*{path} ") as error:
            off.enable_persistent_cache(True)
        assert off.get_last_error() == str(error.value)
        with pytest.raises(cuop.ExecutionError, match=f"JITGemmFloat: .*{path} ") as error:
            jit.set_persistent_cache_directory(path)
        assert jit.get_last_error() == str(error.value)
        config = cuop.GlobalJITConfig(cache_dir=str(path))
        with pytest.raises(cuop.CompilationError, match=f"cache_dir {path} "):
            cuop.set_global_jit_config(config)
    with pytest.raises(cuop.ExecutionError, match="empty path"):
        jit.set_persistent_cache_directory("")
    with pytest.raises(cuop.ExecutionError, match="has a zero byte in its path"):
        jit.set_persistent_cache_directory("a\0b")
    with pytest.raises(cuop.DTypeError, match="JITGemmFloat: path must be a str or an os.PathLike"):
        jit.set_persistent_cache_directory(7)


@pytest.mark.cpu
@names
def test_with_the_cache_off_nothing_is_written(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jit, inputs, shape = case(name, "JIT", "Float")
    jit.set_persistent_cache_directory("own")
    jit.warmup(*inputs, cuop.ones(shape))
    jit.forward(*inputs, cuop.ones(shape))
    jit.get_performance_profile()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert not (tmp_path / "own").exists()
    jit.enable_persistent_cache(True)
    monkeypatch.chdir("/")  # the directory was named where the program stood
    jit.forward(*inputs, cuop.ones(shape))
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [(path.parent, path.suffix) for path in kept] == [(tmp_path / "own", ".json")]


@pytest.mark.cpu
def test_the_report_tells_what_was_measured_and_why_the_rest_was_not():
    jit, inputs, shape = case("Softmax", "JIT", "Float")
    jit.forward(*inputs, cuop.ones(shape))
    report = jit.get_tuning_report()
    assert report.source == "measured" and report.measured["tiled"] > 0
    assert set(report.measured) | set(report.not_measured) == {"tiled", "simple"}
    jit.forward(*inputs, cuop.ones(shape))
    again = jit.get_tuning_report()
    assert (again.source, again.measured, again.text) == ("memory", report.measured, report.text)
    jit.set_jit_config(cuop.JITConfig(optimization_level="O1"))
    jit.forward(*inputs, cuop.ones(shape))
    ruled = jit.get_tuning_report()
    assert ruled.measured == {}
    assert ruled.not_measured["simple"] == "not measured: the choice is by rule"
    large = cuop.JITGemmFloat()
    large.set_weight(np.ones((300, 300)))
    large.forward(np.ones((300, 300)), cuop.ones((300, 300)))
    assert "too many operations" in large.get_tuning_report().not_measured["simple"]


@pytest.mark.cpu
def test_the_cache_keeps_to_its_size(tmp_path):
    directory = tmp_path / "small"
    config = cuop.get_global_jit_config()
    config.max_cache_size = 700  # two or three entries
    cuop.set_global_jit_config(config)
    relu = cuop.JITReluFloat()
    relu.enable_persistent_cache(True)
    relu.set_persistent_cache_directory(str(directory))
    for size in range(2, 12):
        relu.forward(np.ones(size), cuop.zeros(size))
    sizes = [path.stat().st_size for path in directory.iterdir()]
    assert 0 < sum(sizes) <= 700


def test_the_next_process_finds_the_choice(tmp_path):
    directory = str(tmp_path / "shared")
    script = (
        "import sys, numpy as np, cuop; cuop.set_device('cpu')\n"
        "relu = cuop.JITReluFloat(); relu.enable_persistent_cache(True)\n"
        "relu.set_persistent_cache_directory(sys.argv[1])\n"
        "relu.forward(np.ones(1000), cuop.zeros(1000))\n"
        "print(relu.get_statistics().persistent_cache_hits)\n"
    )
    assert [output_of(script, directory) for _ in range(2)] == ["0\n", "1\n"]


def debugging(**fields):
    config = cuop.get_global_jit_config()
    config.enable_debug = True
    for name, value in fields.items():
        setattr(config, name, value)
    cuop.set_global_jit_config(config)
    return pathlib.Path(config.cache_dir)


def log_of(directory):
    (log,) = [path for path in directory.iterdir() if path.suffix == ".log"]
    return log.read_text()


@pytest.mark.cpu
def test_debug_mode_keeps_a_log_beside_the_choice(tmp_path):
    debugging()
    persistent(tmp_path / "debug")
    text = log_of(tmp_path / "debug")
    assert "JITGemmFloat" in text and "simple: " in text and "chosen: " in text
    assert len(os.listdir(tmp_path / "debug")) == 2


@pytest.mark.cpu
@names
def test_debug_mode_keeps_a_log_of_every_wrapper_and_accepts_every_right_result(name):
    cache = debugging()
    op, inputs, shape = case(name, "", "Double")
    jit, _, _ = case(name, "JIT", "Double")
    for _ in range(2):
        y = jit.forward(*inputs, cuop.ones(shape, "float64"))
    expected = op.forward(*inputs, cuop.ones(shape, "float64"))
    np.testing.assert_allclose(np.asarray(y), np.asarray(expected), atol=1e-12)
    assert f"JIT{name}Double" in log_of(cache)
    assert [path.suffix for path in cache.iterdir()] == [".log"]  # the choice is not to be kept
    assert cuop.clear_kernel_cache() == 1 and os.listdir(cache) == []


def test_debug_mode_checks_training_and_trains_once():
    debugging()
    norm = cuop.JITBatchNormFloat(momentum=0.5)
    norm.train(True)
    norm.forward([[1.0], [3.0]], cuop.zeros((2, 1)))
    assert norm.get_running_mean().tolist() == [1.0]
    norm.warmup([[1.0], [3.0]], cuop.zeros((2, 1)))
    assert norm.get_running_mean().tolist() == [1.0]


@pytest.mark.cpu
def test_no_time_to_choose_means_the_default_and_nothing_on_disk(tmp_path):
    debugging(compilation_timeout=1e-9)
    assert persistent(tmp_path / "late").compilations == 1
    text = log_of(tmp_path / "late")
    assert "out of time" in text and text.endswith("chosen: tiled\n")
    assert len(os.listdir(tmp_path / "late")) == 1


@names
@kinds
def test_a_wrapper_may_be_put_around_an_operator(name, kind, dtype):
    op, inputs, shape = case(name, "", kind)
    jit = getattr(cuop, f"JIT{name}{kind}")(op)
    assert jit.name == f"JIT{name}{kind}"
    expected = op.forward(*inputs, cuop.ones(shape, dtype))
    y = jit.forward(*inputs, cuop.ones(shape, dtype))
    np.testing.assert_allclose(np.asarray(y), np.asarray(expected), rtol=0, atol=1e-3)
    again = getattr(cuop, f"JIT{name}{kind}")(jit)
    assert again.name == jit.name and again.get_statistics().cache_misses == 0
    with pytest.raises(cuop.DTypeError, match=f"JIT{name}{kind}: wraps a {name}{kind}, given a Do"):
        getattr(cuop, f"JIT{name}{kind}")(cuop.DotFloat())


def test_a_wrapper_shares_the_weights_of_its_operator():
    op = cuop.GemmDouble(alpha=2.0)
    jit = cuop.JITGemmDouble(op)
    x, y = [[1.0, 2.0]], cuop.TensorDouble((1, 1))
    with pytest.raises(cuop.ExecutionError, match="JITGemmDouble: .*call set_weight first"):
        jit.forward(x, y)
    assert op.get_last_error() == ""
    op.set_weight([[3.0], [4.0]])
    assert jit.forward(x, y).tolist() == [[22.0]]
    jit.set_weight([[1.0], [0.0]])
    assert op.forward(x, y).tolist() == [[2.0]]
    norm = cuop.BatchNormFloat(momentum=1.0)
    wrapper = cuop.JITBatchNormFloat(norm)
    wrapper.train(True)
    wrapper.forward([[1.0], [3.0]], cuop.zeros((2, 1)))
    assert norm.get_running_mean().tolist() == [2.0]


def test_a_wrapper_may_be_used_by_several_threads_at_once():
    jit, inputs, shape = case("Gemm", "JIT", "Float")
    op, _, _ = case("Gemm", "", "Float")
    expected = np.asarray(op.forward(*inputs, cuop.ones(shape)))

    def work():
        for _ in range(20):
            y = np.asarray(jit.forward(*inputs, cuop.ones(shape)))
            np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-3)

    in_threads(*[work] * 4)
    statistics = jit.get_statistics()
    assert statistics.cache_hits + statistics.cache_misses == 80
