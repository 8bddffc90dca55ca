"""Operator objects of linear algebra against NumPy and SciPy in double precision."""

from functools import partial

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from in_threads import in_threads

import cuop

SETTINGS = settings(max_examples=40, deadline=None)
SIZES = st.sampled_from([1, 2, 3, 5, 17, 64])
KINDS = [("Float", np.float32, 2e-5), ("Double", np.float64, 1e-12)]
kinds = pytest.mark.parametrize("kind, dtype, tolerance", KINDS)
BOOLS = st.booleans()


def make(name, kind, *args, **options):
    return getattr(cuop, name + kind)(*args, **options)


def numbers(rng, dtype, *shape):
    return rng.standard_normal(shape).astype(dtype)


def close(actual, expected, tolerance):
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=0, atol=tolerance * scale)


def transposed_if(flag, array):
    return array.T if flag else array


@kinds
def test_scal_scales_in_place(kind, dtype, tolerance):
    x = cuop.tensor(np.arange(6, dtype=dtype).reshape(2, 3))
    assert make("Scal", kind, 2.5).forward(x) is x
    close(x, 2.5 * np.arange(6).reshape(2, 3), tolerance)
    assert np.asarray(make("Scal", kind).forward(x)).tolist() == x.tolist()


@kinds
def test_axpy_adds_to_y(kind, dtype, tolerance):
    y = cuop.tensor(np.ones(4, dtype))
    assert make("Axpy", kind, 3).forward([1, 2, 3, 4], y) is y
    close(y, [4, 7, 10, 13], tolerance)
    y = cuop.tensor(np.ones(2, dtype))
    make("Axpy", kind).forward(y, y)  # y <- y + y
    close(y, [2, 2], tolerance)


@kinds
def test_copy_copies_views_and_overlapping_windows(kind, dtype, tolerance):
    y = cuop.zeros((3, 2), dtype)
    assert make("Copy", kind).forward(np.arange(6, dtype=dtype).reshape(2, 3).T, y) is y
    assert y.tolist() == [[0, 3], [1, 4], [2, 5]]
    x = cuop.tensor(np.arange(5, dtype=dtype))
    make("Copy", kind).forward(x.view(0, (4,)), x.view(1, (4,)))
    assert x.tolist() == [0, 0, 1, 2, 3]


@kinds
def test_dot_is_a_python_float(kind, dtype, tolerance):
    result = make("Dot", kind).forward([1, 2, 3], np.array([4, 5, 6], dtype))
    assert type(result) is float and result == 32
    assert make("Dot", kind).forward([], []) == 0


@kinds
@SETTINGS
@given(m=SIZES, n=SIZES, k=SIZES, trans_a=BOOLS, trans_b=BOOLS, seed=st.integers(0, 99))
def test_gemm(kind, dtype, tolerance, m, n, k, trans_a, trans_b, seed):
    rng = np.random.default_rng(seed)
    a = numbers(rng, dtype, *((k, m) if trans_a else (m, k)))
    b = numbers(rng, dtype, *((n, k) if trans_b else (k, n)))
    c = numbers(rng, dtype, m, n)
    gemm = make("Gemm", kind, trans_a, trans_b, 1.5, -0.5)
    gemm.set_weight(b)
    expected = 1.5 * (transposed_if(trans_a, a).astype(float) @ transposed_if(trans_b, b)) - 0.5 * c
    out = cuop.tensor(c)
    assert gemm.forward(a, out) is out
    close(out, expected, tolerance)
    assert gemm.cost(a, out)[0] == 2 * m * n * k


@kinds
def test_gemm_with_beta_0_does_not_read_c(kind, dtype, tolerance):
    gemm = make("Gemm", kind)
    gemm.set_weight(np.eye(2, dtype=dtype))
    c = cuop.full((2, 2), float("nan"), dtype)
    assert gemm.forward([[1, 2], [3, 4]], c).tolist() == [[1, 2], [3, 4]]


@kinds
@SETTINGS
@given(m=SIZES, n=SIZES, trans=BOOLS, seed=st.integers(0, 99))
def test_gemv(kind, dtype, tolerance, m, n, trans, seed):
    rng = np.random.default_rng(seed)
    a = numbers(rng, dtype, m, n)
    x = numbers(rng, dtype, m if trans else n)
    y = numbers(rng, dtype, n if trans else m)
    gemv = make("Gemv", kind, trans, 2.0, 3.0)
    gemv.set_weight(a)
    out = cuop.tensor(y)
    assert gemv.forward(x, out) is out
    close(out, 2.0 * (transposed_if(trans, a).astype(float) @ x) + 3.0 * y, tolerance)


@kinds
@SETTINGS
@given(m=SIZES, n=SIZES, right=BOOLS, upper=BOOLS, seed=st.integers(0, 99))
def test_symm_reads_one_triangle(kind, dtype, tolerance, m, n, right, upper, seed):
    rng = np.random.default_rng(seed)
    full = numbers(rng, dtype, *([n, n] if right else [m, m]))
    full = full + full.T
    b, c = numbers(rng, dtype, m, n), numbers(rng, dtype, m, n)
    stored = np.triu(full) if upper else np.tril(full)
    symm = make("Symm", kind, int(right), int(upper), 0.5, 2.0)
    symm.set_weight(stored)
    out = cuop.tensor(c)
    product = b.astype(float) @ full if right else full.astype(float) @ b
    assert symm.forward(b, out) is out
    close(out, 0.5 * product + 2.0 * c, tolerance)


def test_the_documented_symm_example_is_left_upper():
    # SymmFloat(0, 1): A on the left, its upper triangle is read.
    a = np.array([[1, 2], [99, 3]], np.float32)
    symm = cuop.SymmFloat(0, 1)
    symm.set_weight(a)
    c = cuop.TensorFloat((2, 2))
    assert symm.forward(np.eye(2, dtype=np.float32), c).tolist() == [[1, 2], [2, 3]]


def test_the_documented_trsm_example_is_left_lower():
    # TrsmFloat(0, 1, 0, 0, 1.0): A on the left, lower, not transposed, its diagonal is read.
    a = np.array([[2, 99], [1, 4]], np.float32)
    trsm = cuop.TrsmFloat(0, 1, 0, 0, 1.0)
    trsm.set_matrix_a(a)
    x = cuop.TensorFloat((2, 1))
    assert trsm.forward([[2], [9]], x).tolist() == [[1], [2]]


@pytest.mark.parametrize("lower", [1, "lower", "L", cuop.Uplo.LOWER])
@pytest.mark.parametrize("left", [0, "left", cuop.Side.LEFT])
def test_choices_are_integers_names_or_enums(lower, left):
    trsm = cuop.TrsmDouble(left, lower, "none", cuop.Diag.NON_UNIT, 2.0)
    trsm.set_matrix_a([[2.0, 7.0], [1.0, 4.0]])
    x = cuop.TensorDouble((2, 1))
    assert trsm.forward([[1.0], [4.5]], x).tolist() == [[1], [2]]
    symm = cuop.SymmDouble(left, "lower" if lower == 1 else lower)
    symm.set_weight([[1.0, 9.0], [2.0, 3.0]])
    assert symm.forward(np.eye(2), cuop.TensorDouble((2, 2))).tolist() == [[1, 2], [2, 3]]


@kinds
@SETTINGS
@given(
    m=SIZES, n=SIZES, right=BOOLS, upper=BOOLS, trans=BOOLS, unit=BOOLS, in_place=BOOLS,
    seed=st.integers(0, 99),
)  # fmt: skip
def test_trsm(kind, dtype, tolerance, m, n, right, upper, trans, unit, in_place, seed):
    rng = np.random.default_rng(seed)
    size = n if right else m
    a = numbers(rng, dtype, size, size) / (2 * size) + 2 * np.eye(size, dtype=dtype)
    b = numbers(rng, dtype, m, n)
    trsm = make("Trsm", kind, int(right), 0 if upper else 1, int(trans), int(unit), 1.5)
    trsm.set_matrix_a(a)
    source = cuop.tensor(b)
    x = source if in_place else cuop.zeros((m, n), dtype)
    assert trsm.forward(source, x) is x
    # X op(A) = B is op(A)^T X^T = B^T.
    expected = scipy.linalg.solve_triangular(
        a.astype(float), 1.5 * (b.T if right else b).astype(float), lower=not upper,
        trans=int(trans) ^ int(right), unit_diagonal=unit,
    )  # fmt: skip
    close(x, expected.T if right else expected, tolerance)


@kinds
def test_matmul_takes_b_with_the_call_or_as_weight(kind, dtype, tolerance):
    rng = np.random.default_rng(1)
    a, b = numbers(rng, dtype, 5, 3, 4), numbers(rng, dtype, 7, 4)
    out = cuop.zeros((5, 3, 7), dtype)
    matmul = make("MatMul", kind, False, True)
    assert matmul.forward(a, b, out) is out
    close(out, a.astype(float) @ b.T, tolerance)
    matmul.set_weight(2 * b)
    assert matmul.forward(a, out) is out
    close(out, 2 * (a.astype(float) @ b.T), tolerance)
    batch = make("BatchMatMul", kind)
    b = numbers(rng, dtype, 5, 4, 2)
    close(batch.forward(a, b, cuop.zeros((5, 3, 2), dtype)), a.astype(float) @ b, tolerance)
    batch.set_weight(b)
    close(batch.forward(a, cuop.zeros((5, 3, 2), dtype)), a.astype(float) @ b, tolerance)
    with pytest.raises(cuop.ShapeError, match=f"BatchMatMul{kind}: .*equal leading axes"):
        batch.forward(a, b[:4], out)


@pytest.mark.parametrize(
    "plain, transposed",
    [
        (False, True),
        (0, 1),
        ("none", "trans"),
        ("N", "conj_trans"),
        (cuop.Trans.NONE, cuop.Trans.TRANS),
        (cuop.Trans.NONE, cuop.Trans.CONJ_TRANS),
    ],
)
@pytest.mark.parametrize("prefix", ["", "JIT"])
def test_transposes_are_bools_names_or_members(prefix, plain, transposed):
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(4, 3)
    gemm = make(prefix + "Gemm", "Double", transB=transposed, transA=plain)
    gemm.set_weight(b)
    assert gemm.forward(a, cuop.TensorDouble((2, 4))).tolist() == (a @ b.T).tolist()
    gemv = make(prefix + "Gemv", "Double", transposed)
    gemv.set_weight(b)
    assert gemv.forward(np.ones(4), cuop.TensorDouble(3)).tolist() == b.sum(0).tolist()
    matmul = make(prefix + "MatMul", "Double", plain, transposed)
    assert matmul.forward(a, b, cuop.TensorDouble((2, 4))).tolist() == (a @ b.T).tolist()
    if prefix == "":
        batch = cuop.BatchMatMulDouble(plain, transposed)
        result = batch.forward(a[None], b[None], cuop.TensorDouble((1, 2, 4)))
        assert result.tolist() == [(a @ b.T).tolist()]


@kinds
def test_batch_matmul_takes_a_matrix_for_the_whole_batch(kind, dtype, tolerance):
    rng = np.random.default_rng(3)
    a, b = numbers(rng, dtype, 2, 5, 3, 4), numbers(rng, dtype, 7, 4)
    batch = make("BatchMatMul", kind, False, True)
    batch.set_weight(b)
    out = cuop.zeros((2, 5, 3, 7), dtype)
    assert batch.forward(a, out) is out
    close(out, a.astype(float) @ b.T, tolerance)
    for wrong in (a[0, 0], b[0]):
        with pytest.raises(
            cuop.ShapeError, match="equal leading axes, or a matrix b, which serves"
        ):
            batch.forward(a if wrong.ndim == 1 else wrong, wrong, out)


@kinds
def test_weights_are_copied(kind, dtype, tolerance):
    b = cuop.tensor(np.eye(2, dtype=dtype))
    gemm = make("Gemm", kind)
    gemm.set_weight(b)
    b.fill(7)
    assert gemm.forward([[1, 2], [3, 4]], cuop.zeros((2, 2), dtype)).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "name, setter, arguments",
    [
        ("Gemm", "set_weight", [[[1.0]], (1, 1)]),
        ("Gemv", "set_weight", [[1.0], (1,)]),
        ("Symm", "set_weight", [[[1.0]], (1, 1)]),
        ("Trsm", "set_matrix_a", [[[1.0]], (1, 1)]),
        ("MatMul", "set_weight", [[[1.0]], (1, 1)]),
        ("BatchMatMul", "set_weight", [[[[1.0]]], (1, 1, 1)]),
    ],
)
@kinds
def test_a_missing_weight_names_its_setter(kind, dtype, tolerance, name, setter, arguments):
    op = make(name, kind)
    assert op.get_last_error() == ""
    with pytest.raises(cuop.ExecutionError, match=f"{name}{kind}: .*call {setter} first") as error:
        op.forward(arguments[0], cuop.zeros(arguments[1], dtype))
    assert op.get_last_error() == str(error.value)
    assert make(name, kind).get_last_error() == ""


def test_errors_name_operator_argument_and_what_is_allowed():
    gemm = cuop.GemmFloat()
    with pytest.raises(cuop.DTypeError, match="GemmFloat: weight B has dtype float64.*float32"):
        gemm.set_weight(cuop.zeros((2, 2), "float64"))
    with pytest.raises(cuop.ShapeError, match=r"GemmFloat: weight B has shape \(2,\).*2 dim"):
        gemm.set_weight([1.0, 2.0])
    gemm.set_weight(np.zeros((2, 3)))
    c = cuop.zeros((4, 3))
    with pytest.raises(cuop.DTypeError, match="GemmFloat: A has dtype float64"):
        gemm.forward(cuop.zeros((4, 2), "float64"), c)
    with pytest.raises(cuop.DTypeError, match="GemmFloat: C has dtype int32"):
        gemm.forward(np.zeros((4, 2)), cuop.zeros((4, 3), "int32"))
    with pytest.raises(cuop.DTypeError, match="C is written to and must be a cuop tensor.*ndarray"):
        gemm.forward(np.zeros((4, 2)), np.zeros((4, 3), np.float32))
    with pytest.raises(cuop.ShapeError, match=r"GemmFloat: .*\(4, 5\)"):
        gemm.forward(np.zeros((4, 5)), c)
    with pytest.raises(cuop.ShapeError, match=r"GemmFloat: .*\(4, 4\), needed is \(4, 3\)"):
        gemm.forward(np.zeros((4, 2)), cuop.zeros((4, 4)))
    with pytest.raises(cuop.DTypeError, match="it has dtype complex"):
        gemm.forward(np.zeros((4, 2), complex), c)
    with pytest.raises(cuop.ShapeError, match="SymmFloat: weight A .*square"):
        cuop.SymmFloat().set_weight(np.zeros((2, 3)))
    with pytest.raises(
        cuop.ExecutionError, match="TrsmFloat: uplo: 2 is out of range; 0 to 1 are known"
    ):
        cuop.TrsmFloat(0, 2)
    with pytest.raises(cuop.ExecutionError, match="side: 'top' is unknown; known are 'left'"):
        cuop.SymmFloat("top")
    with pytest.raises(
        cuop.ExecutionError, match="GemmFloat: transA: 3 is out of range; 0 to 2 are known, or"
    ):
        cuop.GemmFloat(3)
    with pytest.raises(
        cuop.ExecutionError, match="MatMulFloat: transB: 'no' is unknown; known are 'none', 't"
    ):
        cuop.MatMulFloat(False, "no")
    with pytest.raises(cuop.DTypeError, match="transA: .* is neither a name nor an integer"):
        cuop.GemvFloat([True])
    assert cuop.GemmFloat(1, 0).name == "GemmFloat"


def test_an_output_that_shares_memory_with_an_input_is_refused():
    gemm = cuop.GemmFloat()
    gemm.set_weight(np.eye(2))
    a = cuop.ones((2, 2))
    with pytest.raises(cuop.ExecutionError, match="GemmFloat: .*shares memory"):
        gemm.forward(a, a)
    with pytest.raises(cuop.ExecutionError, match="MatMulFloat: .*shares memory"):
        cuop.MatMulFloat().forward(np.eye(2, dtype=np.float32), a, a)
    symm = cuop.SymmFloat()
    symm.set_weight(np.eye(2))
    with pytest.raises(cuop.ExecutionError, match="SymmFloat: .*shares memory"):
        symm.forward(a, a)


def test_the_operator_has_the_defaults_of_the_documentation():
    for name, arguments in {
        "Gemm": "transA=False, transB=False, alpha=1.0, beta=0.0",
        "Gemv": "transA=False, alpha=1.0, beta=0.0",
        "Symm": "side=0, uplo=1, alpha=1.0, beta=0.0",
        "Trsm": "side=0, uplo=1, trans=0, diag=0, alpha=1.0",
        "MatMul": "transA=False, transB=False",
        "BatchMatMul": "transA=False, transB=False",
    }.items():
        options = dict(pair.split("=") for pair in arguments.split(", "))
        make(name, "Float", **{key: eval(value) for key, value in options.items()})
        make(name, "Double", *[eval(value) for value in options.values()])
        make(name, "Float")


def test_operators_may_be_used_by_several_threads_at_once():
    rng = np.random.default_rng(0)
    b = rng.standard_normal((48, 48)).astype(np.float32)
    gemm = cuop.GemmFloat()
    gemm.set_weight(b)

    def work(seed):
        a = np.random.default_rng(seed).standard_normal((32, 48)).astype(np.float32)
        expected = a.astype(float) @ b
        c = cuop.zeros((32, 48))
        for _ in range(50):
            gemm.forward(a, c)
            np.testing.assert_allclose(np.asarray(c), expected, rtol=1e-5, atol=1e-3)
            own = cuop.GemmFloat(alpha=2.0)
            own.set_weight(b)
            np.testing.assert_allclose(
                np.asarray(own.forward(a, c)), 2 * expected, rtol=1e-5, atol=1e-3
            )

    in_threads(*(partial(work, seed) for seed in range(6)))


@pytest.mark.parametrize("other", ["ReluDouble", "SoftmaxFloat", "JITReluFloat", "GemmFloat"])
@pytest.mark.parametrize("name", ["forward", "cost"])
def test_a_method_takes_objects_of_its_own_class_alone(name, other):
    x = np.ones((2, 3), "float32")
    message = f"{other}: this method of ReluFloat was given {other}"
    with pytest.raises(cuop.DTypeError, match=message):
        getattr(cuop.ReluFloat, name)(getattr(cuop, other)(), x, cuop.zeros((2, 3)))


def test_setters_and_warmup_take_objects_of_their_own_class_alone():
    weight = np.ones((3, 3), "float32")
    gemm, relu = cuop.GemmFloat(), cuop.ReluFloat()
    with pytest.raises(cuop.DTypeError, match="this method of GemvFloat was given GemmFloat"):
        cuop.GemvFloat.set_weight(gemm, weight)
    with pytest.raises(cuop.DTypeError, match="this method of JITReluFloat was given ReluFloat"):
        cuop.JITReluFloat.warmup(relu, weight, cuop.zeros((3, 3)))
    with pytest.raises(cuop.DTypeError, match="set_weight: this method of GemvFloat was given 1"):
        cuop.GemvFloat.set_weight(1, weight)


def test_an_operator_that_was_derived_from_in_python_is_of_its_class():
    class Clamp(cuop.ReluFloat):
        pass

    out = cuop.zeros((2,))
    assert Clamp().forward(np.array([-1, 2], "float32"), out) is out
    np.testing.assert_array_equal(out.numpy(), [0, 2])
