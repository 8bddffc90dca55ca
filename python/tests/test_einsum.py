"""einsum against NumPy: random equations and shapes, dtypes, forms of arguments, errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raised_errors import each_raises
from raised_errors import zeros as z
from random_arrays import INTEGERS, random_array

import cuop

LETTERS = "abcdefgABC"
SEARCHES = ["auto", "optimal", "greedy", "random-greedy", "in-order"]
ERRORS = {"float32": 1e-5, "float64": 1e-13, "complex64": 1e-5, "complex128": 1e-13}


def random_equation(rng):
    """An equation and shapes that mostly fit: repeated letters, "...", sizes 0 and 1, stretching."""
    sizes = {
        letter: int(rng.choice([2, 3, 4] if rng.random() < 0.8 else [0, 1])) for letter in LETTERS
    }
    dots = [int(rng.integers(1, 4)) for _ in range(rng.integers(0, 3))]
    terms, shapes = [], []
    for _ in range(rng.integers(1, 6)):
        term = list(rng.choice(list(LETTERS), rng.integers(0, 5)))
        here = {letter: 1 if rng.random() < 0.08 else sizes[letter] for letter in term}
        shape = [here[letter] for letter in term]
        if rng.random() < 0.4:
            at = int(rng.integers(0, len(term) + 1))
            count = int(rng.integers(0, len(dots) + 1))
            shape[at:at] = [1 if rng.random() < 0.3 else n for n in dots[len(dots) - count :]]
            term[at:at] = ["..."]
        terms.append("".join(term))
        shapes.append(tuple(shape))
    equation = ",".join(terms)
    if rng.random() < 0.7:
        used = sorted(set(equation) - set(",."))
        output = list(rng.permutation(used)[: rng.integers(0, 5)])
        if "." in equation:
            output.insert(int(rng.integers(0, len(output) + 1)), "...")
        equation += "->" + "".join(output)
    if rng.random() < 0.3:
        equation = equation.replace(",", " , ").replace("->", " ->  ")
    return equation, shapes


def widened(arrays):
    """The same values, of float16 as float64."""
    return [each.astype("float64") if each.dtype == "float16" else each for each in arrays]


def random_call(rng, dtype="float64"):
    """An equation that NumPy takes, its operands and its result, of float16 in float64."""
    while True:
        equation, shapes = random_equation(rng)
        arrays = [random_array(rng, shape, dtype) for shape in shapes]
        try:
            return equation, arrays, np.einsum(equation, *widened(arrays))
        except ValueError:
            pass


def laid_out(rng, array):
    """The same values under other strides."""
    kind = rng.integers(0, 4) if array.ndim else 0
    if kind == 1:
        return np.asfortranarray(array)
    if kind == 2:
        return array[::-1].copy()[::-1]
    if kind == 3:
        wide = np.zeros(tuple(2 * n for n in array.shape), array.dtype)
        view = wide[(slice(None, None, 2),) * array.ndim]
        view[...] = array
        return view
    return array


@settings(max_examples=400, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(["float64", "longdouble", "bool", *INTEGERS, *ERRORS]),
    search=st.sampled_from(SEARCHES),
)
def test_random_equations(seed, dtype, search):
    rng = np.random.default_rng(seed)
    equation, shapes = random_equation(rng)
    given_dtype = "float64" if dtype == "longdouble" else dtype
    arrays = [laid_out(rng, random_array(rng, shape, given_dtype)) for shape in shapes]
    try:
        wide = [array.astype(dtype) for array in arrays]
        expected = np.einsum(equation, *wide)
    except ValueError:
        with pytest.raises((cuop.ShapeError, cuop.ExecutionError), match="^einsum: "):
            cuop.einsum(equation, *arrays, optimize=search)
        return
    result = np.asarray(cuop.einsum(equation, *arrays, optimize=search))
    assert result.shape == expected.shape and result.dtype == given_dtype
    if dtype == "bool" or dtype in INTEGERS:
        np.testing.assert_array_equal(result, expected)
        return
    scale = np.einsum(equation, *[abs(array) for array in wide])
    assert np.all(abs(result - expected) <= ERRORS[given_dtype] * (scale + 1e-30))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_round_after_each_pair(dtype):
    rng = np.random.default_rng(1)
    arrays = [random_array(rng, shape, dtype) for shape in ((5, 30), (30, 7), (7, 4))]
    tensors = [cuop.tensor(array, dtype) for array in arrays]
    result = cuop.einsum("ij,jk,kl->il", *tensors)
    assert str(result.dtype).endswith(dtype)
    exact = np.einsum("ij,jk,kl->il", *[array.astype("float64") for array in arrays])
    scale = np.einsum("ij,jk,kl->il", *[abs(array).astype("float64") for array in arrays])
    assert np.all(
        abs(result.to("float64").numpy() - exact)
        <= (2e-3 if dtype == "float16" else 1.6e-2) * scale
    )


def test_dtypes_promote():
    i8, f32, c64 = np.ones(3, "int8"), np.ones(3, "float32"), np.ones(3, "complex64")
    for arrays in ((i8, f32), (i8, c64), (f32, c64), (i8, i8, f32), (i8, np.ones(3, "int32"))):
        equation = ",".join("i" * len(arrays)) + "->i"
        assert (
            np.asarray(cuop.einsum(equation, *arrays)).dtype == np.einsum(equation, *arrays).dtype
        )


@pytest.mark.parametrize(
    "search", [True, False, *SEARCHES, "auto-hq", "dp", "branch-all", "random-greedy-128"]
)
def test_every_search_gives_the_product(search):
    rng = np.random.default_rng(2)
    arrays = [rng.random(shape) for shape in ((3, 4), (4, 5), (5, 6), (6, 2), (2, 3))]
    equation = "ab,bc,cd,de,ea->ac"
    np.testing.assert_allclose(
        cuop.einsum(equation, *arrays, optimize=search).numpy(),
        np.einsum(equation, *arrays),
        rtol=1e-12,
    )


@pytest.mark.parametrize(
    "optimize",
    [
        ["einsum_path", (0, 1), (0, 1)],
        [(0, 1), (0, 1)],
        [(0, 1, 2)],
        [(1,), (0, 2), (-1, 0)],
        ("greedy", 1000),
        ("optimal", 1e3),
        np.einsum_path("ij,jk,kl->il", *[np.ones((4, 4))] * 3)[0],
    ],
)
def test_paths_and_limits_as_numpy_gives_them(optimize):
    rng = np.random.default_rng(3)
    arrays = [rng.random((4, 4)) for _ in range(3)]
    np.testing.assert_allclose(
        cuop.einsum("ij,jk,kl->il", *arrays, optimize=optimize).numpy(),
        np.linalg.multi_dot(arrays),
        rtol=1e-13,
    )


def test_indices_as_numbers():
    rng = np.random.default_rng(4)
    a, b = rng.random((2, 3, 4)), rng.random((4, 5))
    for arguments in (
        (a, [0, 1, 2], b, [2, 3], [3, 0]),
        (a, [0, 1, 2], b, [2, 3]),
        (a, [30, 1, 27], b, [27, 5]),
        (a, [..., 7], b, [7, 9], [9, ...]),
        (a, [0, 1, 2]),
        (b, [0, 1], []),
        (b, (1, 0)),
    ):
        np.testing.assert_allclose(
            cuop.einsum(*arguments).numpy(), np.einsum(*arguments), rtol=1e-13
        )
        plain = [
            np.asarray(each).tolist() if isinstance(each, np.ndarray) else each
            for each in arguments
        ]
        assert cuop.einsum(*plain).shape == np.einsum(*arguments).shape
    # Beyond NumPy's 52, in the order of the numbers.
    np.testing.assert_allclose(
        cuop.einsum(a, [300, 51, 52], b, [52, 511]).numpy(), np.einsum("BAi,iC->ABC", a, b)
    )


def test_letters_beyond_ascii():
    a, b = np.ones((2, 3)), np.ones((3, 4))
    assert cuop.einsum("αβ,βγ->γα", a, b).shape == (4, 2)


@pytest.mark.cpu  # where arrays of NumPy are not copied
def test_views_share_memory():
    x = np.arange(9.0).reshape(3, 3)
    cuop.einsum("ii->i", x)[...] = -1.0
    assert np.diagonal(x).tolist() == [-1.0] * 3
    cuop.einsum("ij->ji", x)[0, 1] = 7.0
    assert x[1, 0] == 7.0


def test_out_of_any_strides():
    rng = np.random.default_rng(5)
    a, b = rng.random((3, 4, 5)), rng.random((5, 6))
    out = cuop.transpose(cuop.zeros((6, 4, 3), "float64"))
    assert cuop.einsum("abi,ic->abc", a, b, out=out) is out
    np.testing.assert_allclose(out.numpy(), np.einsum("abi,ic->abc", a, b), rtol=1e-13)


def test_many_operands():
    rng = np.random.default_rng(6)
    arrays = [rng.random((2, 2)) for _ in range(60)]
    pairs = [each for i, array in enumerate(arrays) for each in (array, [i, i + 1])]
    expected = np.linalg.multi_dot(arrays)
    np.testing.assert_allclose(cuop.einsum(*pairs, [0, 60]).numpy(), expected, rtol=1e-10)


class Endless:
    """A sequence that never ends."""

    def __init__(self, item):
        self.item = item

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return self.item


test_errors = each_raises(
    (lambda: cuop.einsum("ij,jk", z(2, 3), z(4, 2)), cuop.ShapeError, "index j of .* size 3 in operand 0"),
    (lambda: cuop.einsum("ij", z(2)), cuop.ShapeError, "operand 0 has 1 dimensions"),
    (lambda: cuop.einsum("ij"), cuop.ExecutionError, "no operand was given"),
    (lambda: cuop.einsum("i,j", z(2)), cuop.ExecutionError, "2 terms, 1 operand was given"),
    (lambda: cuop.einsum("i?", z(2)), cuop.ExecutionError, "einsum: the character"),
    (lambda: cuop.einsum(z(2)), cuop.ExecutionError, "an equation and operands, or operands"),
    (lambda: cuop.einsum(z(2), [0], 5), cuop.ExecutionError, "5 stands where the indices"),
    (lambda: cuop.einsum(z(2), "i"), cuop.ExecutionError, "an equation comes first"),
    (lambda: cuop.einsum(z(2), [512]), cuop.ExecutionError, "index 512; numbers of indices are 0 to 511"),
    (lambda: cuop.einsum(z(2), [-1]), cuop.ExecutionError, "index -1"),
    (lambda: cuop.einsum(z(2), Endless(0)), cuop.ExecutionError, "more than 33 indices of one operand"),
    (lambda: cuop.einsum("i,i", z(2), z(2), optimize=Endless((0,))), cuop.ExecutionError, "more than 512 entries"),
    (lambda: cuop.einsum(z(2), ["i"]), cuop.DTypeError, "einsum: operands"),
    (lambda: cuop.einsum("i", "x"), cuop.DTypeError, "einsum: operands"),
    (lambda: cuop.einsum("i,i", z(2), z(2), optimize="best"), cuop.ExecutionError, 'search "best" is unknown'),
    (lambda: cuop.einsum("i,i", z(2), z(2), optimize=3), cuop.ExecutionError, "optimize is 3"),
    (lambda: cuop.einsum("i,i", z(2), z(2), optimize=None), (cuop.ExecutionError, cuop.DTypeError), "optimize"),
    (lambda: cuop.einsum("i,i", z(2), z(2), optimize=[3]), cuop.ExecutionError, "optimize is"),
    (lambda: cuop.einsum("i,i", z(2), z(2), optimize=[(0, 2)]), cuop.ExecutionError, "position 2 of entry"),
    (lambda: cuop.einsum("i,i", z(2), z(2), optimize=[(0, 1), "x"]), cuop.ExecutionError, "optimize is"),
    (lambda: cuop.einsum("i,i", z(2), z(2), memory_limit=-1), cuop.ExecutionError, "memory_limit is -1"),
    (lambda: cuop.einsum("i,i", z(2), z(2), memory_limit=1e6), cuop.ExecutionError, "memory_limit is 1000000.0; allowed are None"),
    (lambda: cuop.einsum("i,i", z(2), z(2), memory_limit=[5]), cuop.ExecutionError, "memory_limit is"),
    (lambda: cuop.einsum("i,i", z(2), z(2), memory_limit=2**70), cuop.errors.Error, "memory_limit"),
    (lambda: cuop.einsum("i,i", z(2), z(2), memory_limit="max_input"), cuop.ExecutionError, "memory_limit"),
    (lambda: cuop.einsum("i,i", z(2), z(2), optimize=("auto", -1)), cuop.ExecutionError, "limits intermediate results to -1"),
    (lambda: cuop.einsum("i,i", z(2), z(2), optimize=("auto", "all")), cuop.ExecutionError, 'to "all"'),
    (lambda: cuop.einsum("i,j,k->ijk", *[z(9)] * 3, optimize=("auto", "max_input")), cuop.MemoryError, "at most 9 "),
    (lambda: cuop.einsum("i->i", z(2), out=cuop.zeros(3)), cuop.ShapeError, "einsum"),
    (lambda: cuop.einsum_path("i", (-1,), shapes=True), cuop.ShapeError, "-1"),
    are_patterns=True,
)  # fmt: skip
