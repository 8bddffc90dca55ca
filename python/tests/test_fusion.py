"""Fused scopes: the same values as without, and an account of what was fused."""

import asyncio
import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_threads import in_threads

import cuop

UNARY = ["exp", "tanh", "negative", "square", "abs", "relu", "sigmoid", "floor", "sign"]
BINARY = ["add", "subtract", "multiply", "maximum", "less", "logical_or", "copysign", "divide"]
DTYPES = ["float16", "bfloat16", "float32", "float64", "int32"]
SHAPES = [(5, 7), (7,), (5, 1), (1, 1), ()]


@st.composite
def programs(draw):
    """Steps of (operation, indices of earlier values)."""
    steps = []
    for i in range(draw(st.integers(1, 25))):
        earlier = st.integers(0, 3 + i)
        if draw(st.booleans()):
            steps.append((draw(st.sampled_from(UNARY)), [draw(earlier)]))
        else:
            steps.append((draw(st.sampled_from(BINARY)), [draw(earlier), draw(earlier)]))
    return steps


def evaluate(steps, inputs):
    values = list(inputs)
    for name, arguments in steps:
        operands = [values[i] for i in arguments]
        if name in ("negative", "sign", "subtract", "floor", "relu"):
            operands = [x * 1.5 for x in operands]  # bool has none of them
        values.append(getattr(cuop, name)(*operands))
    return values


@settings(max_examples=60, deadline=None)
@given(steps=programs(), seed=st.integers(0, 2**32), data=st.data())
def test_fused_equals_eager(steps, seed, data):
    rng = np.random.default_rng(seed)
    inputs = []
    for _ in range(4):
        shape, dtype = data.draw(st.sampled_from(SHAPES)), data.draw(st.sampled_from(DTYPES))
        inputs.append(cuop.tensor(rng.standard_normal(shape) * 3).to(dtype))
    eager = evaluate(steps, inputs)
    kept = data.draw(st.sets(st.integers(4, len(eager) - 1)))
    with cuop.fused():
        values = evaluate(steps, inputs)
        values = {i: values[i] for i in kept | {len(eager) - 1}}
    for i, value in values.items():
        assert value.dtype == eager[i].dtype and value.shape == eager[i].shape
        left, right = value.to("float64").to_numpy(), eager[i].to("float64").to_numpy()
        np.testing.assert_array_equal(left, right)


def test_decorator_keeps_the_function_and_fuses_it():
    @cuop.fuse
    def double_and_add(x, y=1):
        """Doubles."""
        return x * 2 + y

    assert double_and_add.__name__ == "double_and_add" and double_and_add.__doc__ == "Doubles."
    x = cuop.tensor(np.arange(5.0))
    np.testing.assert_array_equal(double_and_add(x, y=3).to_numpy(), np.arange(5.0) * 2 + 3)


def test_explain_tells_groups_bytes_and_reasons():
    x = cuop.ones((1000,), dtype="float32")
    found = cuop.explain(lambda v: cuop.exp(v * 2 + 1) - v, x)
    (group,) = found.groups
    assert group.ops == ["multiply", "add", "exp", "subtract"]
    assert group.shape == (1000,)
    assert (group.inputs, group.outputs) == (1, 1)
    assert (found.unfused_bytes, found.fused_bytes) == (9 * 4000, 2 * 4000)
    assert found.saved_bytes == 7 * 4000
    assert "the fused scope ended" in str(found)


def test_explain_says_why_a_group_was_cut():
    x = cuop.ones((4, 5))

    def cut(v):
        needed = (v + 1).to_numpy()
        column = (cuop.ones((4, 1)) + 1) * v
        return column + float(needed[0, 0])

    reasons = [group.reason for group in cuop.explain(cut, x).groups]
    assert reasons[0] == "a value was needed outside of elementwise work"
    assert reasons[1] == "its value of shape (4, 1) is broadcast to (4, 5)"
    assert reasons[2] == "the fused scope ended"


def test_reductions_join_the_pass_that_makes_their_argument():
    x = cuop.tensor(np.random.default_rng(1).standard_normal((40, 300)).astype("float32"))
    array = x.to_numpy().astype("float64")

    def work(v):
        squares = v * v
        return cuop.sum(squares, axis=1), cuop.max(squares), cuop.mean(squares, axis=0)

    found = cuop.explain(work, x)
    assert found.groups[0].ops == ["multiply", "sum"]
    with cuop.fused():
        sums, largest, means = work(x)
    np.testing.assert_allclose(sums.to_numpy(), (array**2).sum(1), rtol=1e-6)
    np.testing.assert_allclose(largest.item(), (array**2).max(), rtol=1e-6)
    np.testing.assert_allclose(means.to_numpy(), (array**2).mean(0), rtol=1e-6)


def test_switching_fusion_off_changes_no_value():
    x = cuop.tensor(np.linspace(-2, 2, 777).astype("float32"))
    function = cuop.fuse(lambda v: cuop.tanh(v) * 3 + v)
    fused = function(x).to_numpy()
    assert cuop.kernel_fusion()
    cuop.set_kernel_fusion(False)
    try:
        np.testing.assert_array_equal(function(x).to_numpy(), fused)
        assert cuop.explain(function, x).groups == []
    finally:
        cuop.set_kernel_fusion(True)


def test_in_place_work_comes_after_what_reads_it():
    x = cuop.ones((100,))
    with cuop.fused():
        y = x + 1
        x += 5
        z = x + 1
        x[:50] = 0
        w = x * 2
    assert set(y.to_numpy()) == {2.0}
    assert set(z.to_numpy()) == {7.0}
    assert w.to_numpy().tolist() == [0.0] * 50 + [12.0] * 50


def test_errors_come_where_they_are_made_and_the_scope_goes_on():
    x = cuop.ones((3,))
    with cuop.fused():
        y = x + 1
        with pytest.raises(cuop.ShapeError, match="multiply: shapes"):
            y * cuop.ones((4,))
        z = y * 2
    assert z.to_numpy().tolist() == [4.0] * 3
    with pytest.raises(RuntimeError, match="inside"):
        with cuop.fused():
            kept = x * 7
            raise RuntimeError("inside")
    assert kept.to_numpy().tolist() == [7.0] * 3


def test_each_step_of_a_generator_is_fused_and_its_callers_work_is_not():
    reports = []

    @cuop.fuse
    def steps(x):
        y = x + 1
        got = yield y * 2
        try:
            yield y + got
        except KeyError:
            yield y * 3
        return 7

    def drive():
        taken = steps(cuop.ones(3))
        values = [next(taken)]
        reports.append(cuop.explain(lambda: values[0] + 1).groups)  # it is read, not joined
        values.append(taken.send(cuop.full(3, 5.0)))
        values.append(taken.throw(KeyError("given")))
        with pytest.raises(StopIteration) as end:
            next(taken)
        assert end.value.value == 7
        return [value.tolist()[0] for value in values]

    assert drive() == [4.0, 7.0, 6.0]
    assert [group.ops for group in reports[0]] == [["add"]]
    assert inspect.isgeneratorfunction(steps)


def test_the_steps_of_a_coroutine_are_fused_each_by_itself():
    pending = []

    @cuop.fuse
    async def wait(k):
        x = cuop.full(4, k)
        y = x + 1
        pending.append(k)
        await asyncio.sleep(0)
        return (y * 2).tolist()[0]

    async def gather():
        return await asyncio.gather(*[wait(k) for k in range(3)])

    assert asyncio.run(gather()) == [2.0, 4.0, 6.0]
    assert pending == [0, 1, 2]
    with pytest.raises(cuop.DTypeError, match="no async generator, given function"):

        @cuop.fuse
        async def endless():
            yield 1


def test_a_block_that_another_thread_leaves_fuses_no_more():
    def block():
        with cuop.fused():
            yield cuop.ones(3) + 1
            yield None

    suspended = block()
    value = next(suspended)
    with pytest.raises(cuop.ExecutionError, match="another thread has entered this block"):
        in_threads(lambda: list(suspended))
    assert value.tolist() == [2.0] * 3
    assert len(cuop.explain(lambda: cuop.ones(3) + 1).groups) == 1  # ends with its own block


def test_another_threads_writes_come_after_what_was_recorded():
    x = cuop.zeros(64)
    with cuop.fused():
        y = x + 1
        in_threads(lambda: x.fill(5))
        z = x + 1
    assert (y.tolist()[0], z.tolist()[0]) == (1.0, 6.0)
