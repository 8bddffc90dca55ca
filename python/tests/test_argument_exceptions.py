"""What an argument's own code raises reaches whoever made the call: as it is, or as the cause of an
error of cuOP that says more. KeyboardInterrupt and SystemExit are never anything but themselves.
"""

import pytest

import cuop
import genesis
from cuop import dist
from distributed_gpu import MPIManager, TensorDistributor
from distributed_gpu.algorithms.matrix_ops import distributed_matmul
from distributed_gpu.algorithms.reduction import distributed_sum
from distributed_gpu.auto_executor import auto_compute
from distributed_gpu.cost_model import ClusterConfig
from distributed_gpu.gpu_manager import GPUManager
from distributed_gpu.utils.profiler import Profiler


class OwnError(Exception):
    """An exception that cuOP does not know."""


ERRORS = [
    ValueError("mine"),
    TypeError("mine"),
    KeyError("mine"),
    OverflowError("mine"),
    OSError("mine"),
    OwnError("mine"),
    MemoryError("mine"),
    KeyboardInterrupt(),
    SystemExit(3),
]
#: What says that an object is of another kind, of which cuOP's error tells the argument.
REWORDED = (TypeError, ValueError, OverflowError)


def raising(error, *names, **others):
    """An object whose special methods of these names raise the error, and whose others answer."""

    def fail(self, *arguments, **options):
        raise error

    members = {f"__{name}__": fail for name in names}
    members |= {
        f"__{name}__": lambda self, *a, _answer=answer, **k: _answer
        for name, answer in others.items()
    }
    return type("Raising", (), members)()


def with_property(error, name, **others):
    """An object one of whose properties raises the error."""

    def fail(self):
        raise error

    kind = type(raising(error, **others))
    return type("Raising", (kind,), {name: property(fail)})()


def t():
    return cuop.ones((2, 3), device="cpu")


def world():
    return dist.world()


def jit():
    return cuop.JITReluFloat()


#: By the names of what raises the calls that come upon it.
CALLS = {
    ("index",): {
        "eye": lambda x: cuop.eye(x),
        "zeros": lambda x: cuop.zeros(x),
        "zeros of a tuple": lambda x: cuop.zeros((2, x)),
        "axis": lambda x: t().sum(x),
        "axes": lambda x: t().sum((0, x)),
        "expand_dims": lambda x: cuop.expand_dims(t(), x),
        "reshape": lambda x: t().reshape(x, 3),
        "view": lambda x: t().view(x),
        "slice": lambda x: t()[x:],
        "randint": lambda x: cuop.randint(x, 5, 2),
        "randint's shape": lambda x: cuop.randint(0, 5, (x,)),
        "manual_seed": lambda x: cuop.manual_seed(x),
        "Generator": lambda x: cuop.Generator(x),
        "counter": lambda x: setattr(cuop.Generator(1), "counter", x),
        "full": lambda x: cuop.full((2,), x),
        "arange": lambda x: cuop.arange(x),
        "tensordot": lambda x: cuop.tensordot(t(), t(), x),
        "roll": lambda x: cuop.roll(t(), x, 0),
        "Mesh.line": lambda x: dist.Mesh.line(x),
        "send": lambda x: world().send(1, 0, x),
        "recv": lambda x: world().recv(x),
        "broadcast": lambda x: world().broadcast(1, x),
        "Stream": lambda x: cuop.Stream("cpu", x),
        "external_stream": lambda x: cuop.external_stream(x),
        "set_device": lambda x: cuop.set_device(x),
        "benchmark": lambda x: cuop.benchmark(len, num_runs=x),
        "set_cache_size": lambda x: cuop.set_cache_size(x),
        "deallocate": lambda x: cuop.MemoryPool("cpu").deallocate(x),
        "pad": lambda x: cuop.pad(t(), x),
        "einsum's indices": lambda x: cuop.einsum(t(), [0, x]),
        "einsum's path": lambda x: cuop.einsum("ij,jk", t(), t().T, optimize=[(0, x)]),
        "einsum's limit": lambda x: cuop.einsum("ij", t(), memory_limit=x),
        "side": lambda x: cuop.symm(t(), t(), side=x),
        "__dlpack__": lambda x: t().__dlpack__(max_version=(x, 0)),
        "several forms": lambda x: cuop.round(t(), x),
        "softmax": lambda x: cuop.SoftmaxFloat().forward(t(), t(), axis=x),
        "JITConfig": lambda x: cuop.JITConfig(tile_size=x),
        "GPUManager": lambda x: GPUManager(x),
        "gather_2d": lambda x: TensorDistributor(MPIManager()).gather_2d(t(), 1, x, 2, 3),
        "split sizes": lambda x: TensorDistributor(MPIManager()).calculate_split_sizes(x),
        "shape of numbers": lambda x: genesis.zeros((x,)),
    },
    ("float",): {
        "norm": lambda x: cuop.norm(t(), x),
        "linspace": lambda x: cuop.linspace(0, x, 3),
        "uniform": lambda x: cuop.uniform(2, low=x),
        "full": lambda x: cuop.full((2,), x),
        "fill": lambda x: t().fill(x),
        "clip": lambda x: cuop.arange(0.0, x),
        "timeout": lambda x: setattr(world(), "timeout", x),
        "can_fit": lambda x: GPUManager(-1).can_fit((2, 2), safety_margin=x),
        "ClusterConfig": lambda x: ClusterConfig(2, gpu_memory_gb=x),
        "BatchNorm": lambda x: cuop.BatchNormFloat(eps=x),
    },
    ("array",): {
        "sin": lambda x: cuop.sin(x),
        "add": lambda x: cuop.add(t(), x),
        "+": lambda x: t() + x,
        "reflected": lambda x: x + t(),
        "+=": lambda x: t().__iadd__(x),
        "==": lambda x: t() == x,
        "in": lambda x: x in t(),
        "tensor": lambda x: cuop.tensor(x),
        "asarray": lambda x: cuop.asarray(x),
        "a list": lambda x: cuop.tensor([x, x]),
        "stack": lambda x: cuop.stack([t(), x]),
        "where": lambda x: cuop.where(x, t(), t()),
        "copy_from": lambda x: t().copy_from(x),
        "index": lambda x: t()[x],
        "assigned": lambda x: t().__setitem__(0, x),
        "take": lambda x: cuop.take(t(), x),
        "save": lambda x: cuop.save("never.npy", x),
        "genesis": lambda x: genesis.tensor(x),
        "warm_up": lambda x: jit().warmup(x, t()),
        "forward": lambda x: cuop.ReluFloat().forward(x, t()),
        "all_reduce": lambda x: dist.all_reduce(world(), x),
        "result_type": lambda x: cuop.result_type(x, "float32"),
        "distributed_sum": lambda x: distributed_sum(x, MPIManager(), None),
        "scatter_tensor": lambda x: MPIManager().scatter_tensor(x),
        "to_device": lambda x: GPUManager(-1).to_device(x),
    },
    ("dlpack",): {
        "from_dlpack": lambda x: cuop.from_dlpack(x),
        "sin": lambda x: cuop.sin(x),
        "+": lambda x: t() + x,
        "stack": lambda x: cuop.stack([x]),
        "beside a list": lambda x: cuop.add([1.0], x),
    },
    ("len", "getitem"): {
        "zeros": lambda x: cuop.zeros(x),
        "axis": lambda x: t().sum(x),
        "stack": lambda x: cuop.stack(x),
        "tensor": lambda x: cuop.tensor(x),
        "sin": lambda x: cuop.sin(x),
        "pad": lambda x: cuop.pad(t(), x),
        "tensordot": lambda x: cuop.tensordot(t(), t(), x),
        "einsum": lambda x: cuop.einsum("ij", t(), optimize=x),
        "P": lambda x: dist.P(x),
        "names": lambda x: dist.Mesh((1,), x),
        "scatter": lambda x: world().scatter(x),
        "__dlpack__": lambda x: t().__dlpack__(max_version=x),
        "set_memory_callback": lambda x: cuop.set_memory_callback(print, list(x)),
    },
    ("fspath",): {
        "load": lambda x: cuop.load(x),
        "save": lambda x: cuop.save(x, t()),
        "snapshot": lambda x: cuop.memory_snapshot(x),
        "profile": lambda x: cuop.profile(x).__enter__(),
        "cache": lambda x: jit().set_persistent_cache_directory(x),
        "safetensors": lambda x: cuop.safetensors.open(x),
    },
    ("str",): {
        "dtype": lambda x: cuop.zeros(2, x),
        "device": lambda x: cuop.zeros(2, device=x),
        "to": lambda x: t().to(x),
        "genesis.cuda": lambda x: genesis.cuda.set_device(x),
        "cuop.dtype": lambda x: cuop.dtype(x),
    },
    ("hash",): {
        "Profiler": lambda x: Profiler().start(x),
    },
    ("eq",): {
        "==": lambda x: t() == x,
        "in": lambda x: x in t(),
        "auto_compute": lambda x: auto_compute(x, t()),
    },
    ("call",): {
        "run_ranks": lambda x: dist.run_ranks(x, 2),
        "benchmark": lambda x: cuop.benchmark(x),
        "fuse": lambda x: cuop.fuse(lambda: x())(),
        "explain": lambda x: cuop.explain(x),
        "on_progress": lambda x: cuop.save("never.npy", t(), x),
        "reduce": lambda x: dist.run_ranks(lambda c: MPIManager().reduce(1, x), 2),
        "place": lambda x: MPIManager().place_tensor(t(), x),
    },
}
TABLE = [
    pytest.param(names, call, id=f"{'-'.join(names)}: {what}")
    for names, calls in CALLS.items()
    for what, call in calls.items()
]
PROPERTIES = {
    "__array__": lambda x: cuop.sin(x),
    "__array_interface__": lambda x: t() + x,
    "__array_struct__": lambda x: cuop.tensor(x),
    "__dlpack__": lambda x: cuop.add(t(), x),
    "__dlpack_device__": lambda x: cuop.from_dlpack(x),
    "__cuda_array_interface__": lambda x: cuop.sin(x),
    "__cuda_stream__": lambda x: cuop.external_stream(x),
    "__class__": lambda x: cuop.sin(x),
    "dtype": lambda x: cuop.full((2,), x),
    "name": lambda x: cuop.zeros(2, x),
    "ptr": lambda x: cuop.external_stream(x),
    "forward": lambda x: cuop.benchmark(x),
    "tocsr": lambda x: cuop.to_sparse(x),
    "comm": lambda x: distributed_sum(t(), x, None),
    "shape": lambda x: distributed_matmul(x, x, MPIManager(), None, cost_model=1),
}


def causes(error):
    while error is not None:
        yield error
        error = error.__cause__


def check_reaches(call, given, error):
    """That the exception comes out of call(given)."""
    with pytest.raises(BaseException) as caught:  # noqa: B017, PT011
        call(given)
    raised = caught.value
    assert any(each is error for each in causes(raised)), f"lost: {raised!r}"
    if raised is error:
        return
    assert isinstance(error, Exception)
    assert isinstance(raised, cuop.Error)
    # A rank tells the others of any exception, and raises MPIError with it as the cause.
    assert isinstance(error, REWORDED) or isinstance(raised, cuop.Error) and hasattr(raised, "rank")


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(("names", "call"), TABLE)
def test_what_a_special_method_raises_reaches_the_caller(names, call, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    others = {"dlpack": {"dlpack_device": (1, 0)}}.get(names[0], {})
    check_reaches(call, raising(error, *names, **others), error)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("name", PROPERTIES)
def test_what_a_property_raises_reaches_the_caller(name, error):
    answers = {"dtype": {"float": 1.0}, "__dlpack_device__": {"dlpack": None}}.get(name, {})
    check_reaches(PROPERTIES[name], with_property(error, name, **answers), error)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_what_the_second_of_two_methods_raises_reaches_the_caller(error):
    """Of a sequence its items, of an object that first says that it is no integer its float."""
    items = raising(error, "getitem", len=2)
    for call in (cuop.zeros, cuop.stack, cuop.tensor, cuop.sin, lambda x: t().sum(x), dist.P):
        if isinstance(error, KeyError) and call in (cuop.tensor, cuop.sin):
            continue  # NumPy takes such a sequence for a dict, and so for no array
        check_reaches(call, items, error)

    class Number:
        def __index__(self):
            raise TypeError("no integer")

        def __float__(self):
            raise error

    check_reaches(lambda x: cuop.full((2,), x), Number(), error)


def test_an_interrupt_comes_before_what_is_wrong_with_other_arguments():
    for call in (
        lambda x: cuop.linspace("a", x, 3),
        lambda x: cuop.random((2,), mean=x, std="a"),
        lambda x: cuop.linspace("a", 1, x),
    ):
        error = KeyboardInterrupt()
        check_reaches(call, raising(error, "float", "index"), error)


def test_a_call_asks_an_argument_once():
    """So that what is raised once, as Ctrl-C is, is not lost."""

    class Once:
        def __init__(self):
            self.error = KeyboardInterrupt()

        def __index__(self):
            if self.error is None:
                return 2
            error, self.error = self.error, None
            raise error

        __float__ = __index__

    for call in (cuop.eye, cuop.zeros, cuop.manual_seed, lambda x: cuop.uniform(2, low=x)):
        with pytest.raises(KeyboardInterrupt):
            call(Once())


def test_the_cause_of_a_refusal_is_what_the_object_said():
    with pytest.raises(cuop.DTypeError, match="eye: n: needed is an integer, given Raising") as one:
        cuop.eye(raising(TypeError("mine"), "index"))
    assert str(one.value.__cause__) == "mine"
    with pytest.raises(cuop.DTypeError, match="zeros: shape: an integer or a sequence") as two:
        cuop.zeros(raising(TypeError("mine"), "index"))
    assert str(two.value.__cause__) == "mine"
    with pytest.raises(cuop.DTypeError, match="eye: n") as none:
        cuop.eye("a")
    assert none.value.__cause__ is None


def test_an_object_that_cannot_be_printed_is_named_by_its_class():
    for device in (raising(TypeError("mine"), "str"), endless()):
        with pytest.raises(cuop.DeviceError, match="zeros: device: .* cannot be printed"):
            cuop.zeros(2, device=device)


def endless():
    made = []
    for _ in range(100_000):
        made = [made]
    return made


def test_a_class_of_classes_that_raises_is_no_reason_to_end():
    """The name of a class is asked for in words of errors, and where nothing may be thrown."""

    class Meta(type):
        @property
        def __name__(cls):
            raise KeyboardInterrupt

        @property
        def __module__(cls):
            raise KeyboardInterrupt

    class bool_(metaclass=Meta):  # noqa: N801
        pass

    for call in (
        lambda x: t().sum(keepdims=x),
        lambda x: cuop.eye(x),
        lambda x: cuop.zeros(2, device=x),
        lambda x: cuop.sin(type(x)),
    ):
        with pytest.raises((cuop.DTypeError, cuop.DeviceError), match="bool_"):
            call(bool_())


def test_membership_asks_for_the_truth_of_an_answer():
    class Answer:
        def __bool__(self):
            raise OwnError("mine")

    with pytest.raises(OwnError, match="mine"):
        raising(None, eq=Answer()) in t()  # noqa: B015
    assert raising(None, eq=[1]) in t()
    assert raising(None, eq=[]) not in t()


def test_what_an_exceptions_own_text_raises_ends_the_call():
    """On ranks the text goes to others: what asking for it raises does not take its place."""

    class Silent(Exception):
        def __str__(self):
            raise ValueError("no text")

    error = Silent()
    check_reaches(lambda x: dist.run_ranks(x, 2), raising(error, "call"), error)
    check_reaches(lambda x: distributed_sum(x, MPIManager(), None), raising(error, "array"), error)


def test_callers_own_errors_of_files_are_not_the_files(tmp_path):
    class NoRoom(OSError):
        pass

    def stop(fraction):
        raise NoRoom(28, "mine")

    before = tmp_path / "a.npy"
    cuop.save(before, [1.0])
    with pytest.raises(NoRoom, match="mine"):
        cuop.save(before, [2.0], stop)
    assert cuop.load(before).tolist() == [1.0]
    assert [file.name for file in tmp_path.iterdir()] == ["a.npy"]


def test_numpys_own_words_are_the_cause_of_ours():
    with pytest.raises(cuop.ShapeError, match="no regular shape") as caught:
        cuop.tensor([[1, 2], [3]])
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(cuop.OverflowError) as caught:
        cuop.tensor([1.5, 10**400])
    assert type(caught.value.__cause__) is OverflowError
