"""Nonsense in every argument of every public function: each error is worded, and by us."""

import copy
import enum
import inspect
import io
import pickle
from contextlib import redirect_stdout

import pytest

import cuop
import cuop.fft
import distributed_gpu
import genesis
from distributed_gpu import MPIError, MPIManager, TensorDistributor, cost_model
from distributed_gpu.algorithms import convolution, einsum, fft, matrix_ops, reduction, stencil
from signatures import signatures as signatures_of_extension

NONSENSE = [None, "a", 2.5, object()]
MODULES = [
    cuop, cuop.dist, cuop.fft, genesis, genesis.cuda, distributed_gpu, cost_model,
    convolution, einsum, fft, matrix_ops, reduction, stencil,
]  # fmt: skip
MANAGER = MPIManager()
GOOD = {
    "mpi": MANAGER,
    "comm": MANAGER.comm,
    "distributor": TensorDistributor(MANAGER),
    "function": lambda *arguments: 1,
    "work": lambda comm: 1,
    "op": lambda *arguments: 1,
    "names": ["r"],
}
GOOD_KINDS = {
    "int": 1, "ShapeLike": (2,), "AxesLike": (0,), "OffsetLike": 0, "DTypeLike": "float32", "DeviceLike": "cpu",
    "str": "cpu", "float": 1.0, "Number": 1.0, "bool": True,
}  # fmt: skip


def public_callables():
    seen = set()
    for module in MODULES:
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            is_plain = isinstance(value, type) and issubclass(value, (BaseException, enum.Enum))
            if name.startswith("_") or not callable(value) or is_plain or id(value) in seen:
                continue
            seen.add(id(value))
            if signatures(value):
                yield pytest.param(value, id=f"{module.__name__}.{name}")


def signatures(function):
    owner = function.__init__ if isinstance(function, type) else function
    owner = getattr(owner, "__wrapped__", owner)
    if hasattr(owner, "__nb_signature__"):
        return signatures_of_extension(owner)
    if isinstance(function, type) and function.__module__.startswith("cuop._core"):
        return []  # a class that only cuop makes objects of
    return [inspect.signature(function)]


def good(parameter, directory):
    if parameter.name == "path":
        return str(directory / "x.npy")
    for kind, value in GOOD_KINDS.items():
        if parameter.name not in GOOD and str(parameter.annotation).startswith(kind):
            return value
    return GOOD.get(parameter.name, cuop.ones((2, 2)))


def is_ours(error):
    return isinstance(error, (cuop.Error, MPIError)) and "incompatible" not in str(error)


PUBLIC = list(public_callables())


@pytest.fixture(autouse=True)
def _memory_as_before():
    """Some calls that fit after all change how the whole process uses memory."""
    yield
    cuop.enable_memory_debugging(False, device="cpu")
    cuop.set_memory_callback(None, device="cpu")
    cuop.set_memory_limit(None, "cpu")
    cuop.set_cache_size("1GB", "cpu")


@pytest.mark.parametrize("function", PUBLIC)
def test_nonsense_is_refused_in_words(function, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # "a" is a name of a file too
    for signature in signatures(function):
        parameters = [
            p for p in signature.parameters.values()
            if p.name != "self" and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]  # fmt: skip
        required = {p.name: good(p, tmp_path) for p in parameters if p.default is p.empty}
        for parameter in parameters:
            for value in NONSENSE:
                try:
                    with redirect_stdout(io.StringIO()):
                        function(**required | {parameter.name: value})
                except Exception as error:
                    if not is_ours(error):
                        raise AssertionError(f"{parameter.name}={value!r}: {error!r}") from error


@pytest.mark.parametrize("function", PUBLIC)
def test_a_call_that_does_not_fit_names_the_function_and_the_argument(function):
    first = signatures(function)[0].parameters.values()
    if any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in first):
        return
    with pytest.raises(TypeError, match="no_such|missing") as caught:
        function(no_such=1)
    assert "incompatible" not in str(caught.value)
    assert "(" in str(caught.value) or ":" in str(caught.value)


def test_functions_and_methods_are_pickled_by_name():
    functions = [
        value
        for module in (cuop, cuop.dist, cuop.fft)
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_")
    ]
    assert len(functions) > 300
    for function in functions:
        assert pickle.loads(pickle.dumps(function)) is function is copy.deepcopy(function)
    assert pickle.loads(pickle.dumps(cuop.Tensor.exp)) is cuop.Tensor.exp
    assert pickle.loads(pickle.dumps(cuop.full(3, 5.0).tolist))() == [5.0] * 3
