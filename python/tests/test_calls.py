"""Arguments of the wrong kind: each error says who, which argument, what was given and is needed."""

import numpy as np
import pytest

import cuop
import genesis
from distributed_gpu import MPIError, MPIManager, TensorDistributor
from distributed_gpu.algorithms.convolution import distributed_conv2d
from distributed_gpu.algorithms.reduction import distributed_sum
from distributed_gpu.algorithms.stencil import distributed_jacobi_2d


class NoArray:
    """An object that promises an array."""

    def __array__(self, *arguments, **options):
        return 1


class NoPath:
    """An object that promises a path."""

    def __fspath__(self):
        return 1


class BadInterface:
    """An object that promises an array's interface."""

    __array_interface__ = 1


class Endless:
    """A sequence without an end."""

    def __getitem__(self, index):
        return 1


REFUSALS = [
    # an integer is Python's, NumPy's or anything with __index__, never a float or a bool
    (lambda: cuop.eye(2.5), cuop.DTypeError, "eye: n: needed is an integer, given 2.5"),
    (lambda: cuop.eye(True), cuop.DTypeError, "eye: n: needed is an integer, given True"),
    (lambda: cuop.logspace(0, 1, 2.0), cuop.DTypeError, "logspace: num: .*given 2.0"),
    (lambda: cuop.repeat([1.0], [2.5]), cuop.DTypeError, "repeat: repeats: .*given float32"),
    (lambda: cuop.softmax([1.0], axis=None), cuop.DTypeError, "softmax: axis: .*given None"),
    (
        lambda: cuop.eye(2**70),
        cuop.ExecutionError,
        r"eye: n is 1180\d*, which does not fit in 64 bits",
    ),
    (lambda: cuop.manual_seed(-1), cuop.ExecutionError, "manual_seed: seed is -1; .* negative"),
    (lambda: cuop.manual_seed(2**64), cuop.ExecutionError, r"manual_seed: seed is 1844\d*, out of"),
    (
        lambda: cuop.dist.Mesh.line(2**40),
        cuop.ShapeError,
        r"Mesh: shape \(1099511627776,\).* 32768 ranks",
    ),
    # numbers, flags and names
    (lambda: cuop.norm([1.0], ord="a"), cuop.DTypeError, "norm: ord: needed is a real number, giv"),
    (lambda: cuop.linspace(0, 1j, 3), cuop.DTypeError, "linspace: stop: .*given complex"),
    (lambda: cuop.sum([1.0], keepdims=3), cuop.DTypeError, "sum: keepdims: needed is True or Fal"),
    (lambda: cuop.sum([1.0], mode=None), cuop.DTypeError, "sum: mode: needed is a string, given N"),
    # the kinds that cuop converts itself name function and argument too
    (lambda: cuop.zeros(None), cuop.DTypeError, "zeros: shape: needed is an integer or a sequence"),
    (lambda: cuop.zeros("a"), cuop.DTypeError, "zeros: shape: an integer or a sequence of .*str"),
    (lambda: cuop.sum(None), cuop.DTypeError, "sum: x: needed is an array or a number, given None"),
    (lambda: cuop.add(1, object()), cuop.DTypeError, "add: x2: .* dtype object cannot become"),
    (lambda: cuop.zeros(2, "float7"), cuop.DTypeError, "zeros: dtype: 'float7' is unknown; known"),
    (lambda: cuop.zeros(2, 3), cuop.DTypeError, "zeros: dtype: 3 is an integer, .* as one tuple"),
    (
        lambda: cuop.TensorFloat(2, 3),
        cuop.DeviceError,
        "TensorFloat: device: 3 is an integer, .*tuple",
    ),
    # of several forms the one that takes the most kinds speaks
    (lambda: cuop.exp(None), cuop.DTypeError, "exp: x: needed is an array or a number, given None"),
    (
        lambda: cuop.add([1], None),
        cuop.DTypeError,
        "add: x2: needed is an array or a number, given N",
    ),
    (lambda: cuop.where(None, 1, 2), cuop.DTypeError, "where: condition: needed is an array or a"),
    (
        lambda: cuop.clip(None),
        cuop.DTypeError,
        "clip: x: needed is an array or a number, given None",
    ),
    (lambda: cuop.zeros(2)[1.0], cuop.DTypeError, "getitem: key|index"),
    (lambda: cuop.zeros(2)["a"], cuop.DTypeError, "getitem: key|index"),
    (lambda: cuop.zeros(2, device="x"), cuop.DeviceError, "zeros: device: 'x' is not a device"),
    (lambda: cuop.zeros(2).sum(axis="a"), cuop.DTypeError, "sum: axis: an integer or a sequence"),
    (lambda: cuop.pad([1.0], "a"), cuop.DTypeError, "pad: pad_width: an integer or a sequence"),
    (lambda: cuop.meshgrid([1], "a"), cuop.DTypeError, "meshgrid: xi: .* cannot become a tensor"),
    (lambda: cuop.zeros(2).to("float7"), cuop.DTypeError, "to: args: 'float7' is unknown"),
    (lambda: cuop.zeros(2).reshape("a"), cuop.DTypeError, "reshape: sizes: an integer or a seq"),
    (lambda: cuop.tensordot([1], [1], ("a", 0)), cuop.DTypeError, "tensordot: axes: an integer"),
    (lambda: cuop.stack([[1.0], object()]), cuop.DTypeError, "stack: tensors: .* cannot become"),
    # objects of classes
    (lambda: cuop.add(1, 2, out=np.zeros(1)), cuop.DTypeError, "add: out: .*a tensor, which"),
    (lambda: cuop.stack(3), cuop.DTypeError, "stack: tensors: needed is a sequence, given 3"),
    (lambda: cuop.Tensor.fill(3, 4), cuop.DTypeError, "fill: this method of Tensor was given 3"),
    (lambda: cuop.dist.run_ranks(print, "a"), cuop.DTypeError, "run_ranks: ranks: .*given 'a'"),
    (lambda: setattr(cuop.Generator(0), "counter", "a"), cuop.DTypeError, "Generator.counter: nee"),
    # calls that do not fit are Python's TypeError, and say what would
    (lambda: cuop.eye(), TypeError, "eye: missing a required argument: 'n'; the arguments are"),
    (lambda: cuop.eye(2, foo=3), TypeError, r"eye: got an .* keyword argument 'foo'; .*\(n, dtype"),
    (lambda: cuop.eye(1, 2, 3), TypeError, r"eye: too many positional arguments; .*\(n, dtype, m"),
    (lambda: cuop.eye(1, n=2), TypeError, "eye: multiple values for argument 'n'"),
]


REFUSALS += [
    # functions that are written in Python
    (lambda: cuop.set_device(None), cuop.DTypeError, "set_device: device: .*integer, given None"),
    (lambda: cuop.benchmark(len, num_runs=1.5), cuop.DTypeError, "benchmark: num_runs: .* 1.5"),
    (lambda: cuop.benchmark(3), cuop.DTypeError, "benchmark: op: needed is a function, given 3"),
    (lambda: cuop.fuse(3), cuop.DTypeError, "fuse: function: needed is a function, given 3"),
    (lambda: cuop.explain("a"), cuop.DTypeError, "explain: function: .* given 'a'"),
    (lambda: cuop.load(None), cuop.DTypeError, "load: path: needed is a string or path, given N"),
    (lambda: cuop.load("a\0b"), cuop.FileError, "load: .* holds a zero character"),
    (lambda: cuop.save("x.npy", object()), cuop.DTypeError, "save: array: dtype object is not"),
    (lambda: cuop.save(3, [1.0]), cuop.DTypeError, "save: path: needed is a string or path, giv"),
    (lambda: cuop.save("x", [1.0], 3), cuop.DTypeError, "save: on_progress: .*a function, given 3"),
    (lambda: distributed_sum([1.0], None, None), cuop.DTypeError, "distributed_sum: mpi: .*MPIMa"),
    # arrays and tensors have __index__, which refuses what is no single integer
    (lambda: cuop.eye(cuop.ones(3)), cuop.DTypeError, "eye: n: .*an integer, given Tensor"),
    (lambda: cuop.eye(np.ones((2, 3))), cuop.DTypeError, "eye: n: .*an integer, given ndarray"),
    (lambda: cuop.expand_dims([1.0], cuop.tensor([1, 2])), cuop.DTypeError, "expand_dims: axis: "),
    (lambda: cuop.set_cache_size(cuop.ones(3)), cuop.DTypeError, "set_cache_size: size: needed"),
    (lambda: cuop.set_device(np.ones(3)), cuop.DTypeError, "set_device: device: needed is an int"),
    (lambda: cuop.benchmark(len, num_runs=cuop.ones(2)), cuop.DTypeError, "benchmark: num_runs: "),
    (lambda: cuop.MemoryPool("cpu").deallocate(np.ones(3)), cuop.DTypeError, "deallocate: address"),
    (lambda: cuop.moveaxis(cuop.ones(3), 2, 0), cuop.ShapeError, "moveaxis: axis 2 is out of"),
    (lambda: TensorDistributor(MPIManager()).get_local_range("a"), cuop.DTypeError, "total: nee"),
    (lambda: MPIManager().scatter_tensor([1.0], "a"), MPIError, "scatter_tensor: dim: needed"),
    (
        lambda: TensorDistributor(MPIManager()).distribute_with_broadcast([1.0], [2.0], 3),
        MPIError,
        "distribute_with_broadcast: split_dim 3 is out",
    ),
    # classes have the methods of their objects; what has items need not end
    (lambda: cuop.sin(cuop.Tensor), cuop.DTypeError, "sin: x: the class Tensor cannot become a"),
    (lambda: cuop.sin(NoArray()), cuop.DTypeError, "sin: x: the __array__ of NoArray makes no ar"),
    (lambda: cuop.zeros(Endless()), cuop.DTypeError, "zeros: shape: an integer or a sequence"),
    (lambda: cuop.sum([1.0], axis=Endless()), cuop.DTypeError, "sum: axis: an integer or a seq"),
    (lambda: cuop.swapaxes(cuop.ones(3), 2, 0), cuop.ShapeError, "swapaxes: axis 2 is out of"),
    (
        lambda: MPIManager().broadcast_tensor([1.0], root=1),
        MPIError,
        "^broadcast_tensor: root 1 is not",
    ),
    # values that have no meaning there
    (lambda: float(cuop.tensor([1j])), cuop.DTypeError, "float: a complex64 tensor is no real"),
    (lambda: int(cuop.tensor([1j])), cuop.DTypeError, "int: a complex64 tensor is no real"),
    (lambda: cuop.zeros(2)[2**70], cuop.IndexError, r"index: 1180\d* is outside every axis"),
]


MANAGER = MPIManager()
DEEP: list = []
for _ in range(100_000):
    DEEP = [DEEP]

LONG = cuop.broadcast_to(cuop.ones(()), (2**40,))

REFUSALS += [
    # steps that a function is made of do not speak for it
    (lambda: cuop.clip([1, 2, 3], min=[1, 2]), cuop.ShapeError, "^clip: shapes"),
    (lambda: cuop.clamp([1, 2], max=[1, 2, 3]), cuop.ShapeError, "^clamp: shapes"),
    (lambda: cuop.clip([1.0], out=cuop.zeros(3)), cuop.ShapeError, "^clip: the output has"),
    (lambda: cuop.masked_fill([1], [[True]], 2), cuop.ShapeError, "^masked_fill: mask: shape"),
    (lambda: cuop.masked_fill([1], [True], [1, 2]), cuop.ShapeError, "^masked_fill: value: sha"),
    (lambda: cuop.masked_select([1], [[True]]), cuop.ShapeError, "^masked_select: mask: shape"),
    (lambda: cuop.full(2**62, 2), cuop.ShapeError, r"^full: shape: 4611\d* \* 8 does not"),
    (lambda: cuop.full((1,) * 33, 2), cuop.ShapeError, "^full: shape: a tensor has at most 32 dim"),
    (lambda: cuop.zeros((2**40, 2**40)), cuop.ShapeError, r"^zeros: shape: 1099\d* \* 1099\d* does not"),
    (lambda: cuop.outer(LONG, LONG), cuop.ShapeError, r"^outer: shape: 1099\d* \* 1099\d* does not"),
    (lambda: LONG[:, None] @ LONG[None], cuop.ShapeError, r"^matmul: shape: 1099\d* \* 1099\d* does"),
    (lambda: LONG[:, None] + LONG, cuop.ShapeError, r"^add: shape: 1099\d* \* 1099\d* does not fit"),
    (lambda: cuop.meshgrid(LONG, LONG), cuop.ShapeError, r"^meshgrid: shape: 1099\d* \* 1099\d* does"),
    (lambda: cuop.fft.rfft([1.0], n=2**62), cuop.ShapeError, r"^rfft: shape: 2305\d* \* 8 does not fit"),
    (lambda: cuop.arange(2**62), cuop.ShapeError, "^arange: 4.6.* elements are too many"),
    (lambda: cuop.arange(2.0**61), cuop.ShapeError, "^arange: 2.3.* elements are too many"),
    (lambda: cuop.eye(2**62, m=2), cuop.ShapeError, r"^eye: n, m: 4611\d* \* 2 does not fit"),
    (lambda: cuop.repeat([1, 2], 2**62 + 1), cuop.ShapeError, r"^repeat: repeats: 2 \* 4611\d* does"),
    (lambda: cuop.tile([1, 2], 2**62 + 1), cuop.ShapeError, r"^tile: repeats: 2 \* 4611\d* does"),
    (lambda: cuop.flatten([[1]], 1, 0), cuop.ShapeError, "^flatten: start_dim 1 lies behind end_dim"),
    (lambda: cuop.asarray("a"), cuop.DTypeError, "^asarray: data: a NumPy array of dtype"),
    (lambda: cuop.asarray(int), cuop.DTypeError, "^asarray: data: the class int cannot become"),
    (lambda: cuop.device_count("x"), cuop.DeviceError, "^device_count: type: 'x' is not a device"),
    (lambda: cuop.PartialReduction("x", "int64"), cuop.ExecutionError, "PartialReduction: kind: 'x"),
    # what other libraries hand to the protocols
    (lambda: cuop.zeros(2).__dlpack__(max_version=1), cuop.DTypeError, "max_version: .*given 1"),
    (lambda: cuop.zeros(2).__dlpack__(dl_device="a"), cuop.DTypeError, "dl_device: .*given 'a'"),
    (lambda: cuop.zeros(2).__array__(dtype=7), cuop.DTypeError, "__array__: dtype: .* for 7"),
    # objects between ranks
    (lambda: MANAGER.comm.scatter(3), cuop.DTypeError, "scatter: objects: .*given 3"),
    (lambda: MANAGER.comm.broadcast(memoryview(b"a")), cuop.DTypeError, "broadcast from.*memoryvi"),
    (lambda: MANAGER.comm.gather(lambda: 1), cuop.DTypeError, "gather .*function cannot be pick"),
    (lambda: MANAGER.allgather(lambda: 1), MPIError, "all_gather: an object of class"),
    (lambda: MANAGER.sendrecv(1, "a", 0), MPIError, "^sendrecv: dest: .*given 'a'"),
    (lambda: MANAGER.sendrecv(1, 0, 2**70), MPIError, "^sendrecv: source is 1180"),
    (lambda: MANAGER.send(1, "a"), MPIError, "^send: dest: .*given 'a'"),
    (lambda: MANAGER.recv("a"), MPIError, "^recv: source: .*given 'a'"),
    (lambda: cuop.dist.run_ranks(3, 2), cuop.DTypeError, "run_ranks: work: .*function, given 3"),
    (lambda: MANAGER.place_tensor([1.0], 3), MPIError, "place_tensor: place: .*given 3"),
    (lambda: MANAGER.gather_tensor([1.0], root=2), MPIError, "gather_tensor: root 2 is not one"),
    (lambda: MANAGER.broadcast_tensor([1.0], "a"), MPIError, "^broadcast_tensor: root: .*given 'a'"),
    (lambda: MANAGER.allgather_tensor(1.0), MPIError, "allgather_tensor: dim 0 is out of range"),
    (lambda: MANAGER.allgather_tensor([1.0], "a"), MPIError, "allgather_tensor: dim: .*given 'a'"),
    (lambda: TensorDistributor(MANAGER).gather_2d([1.0], "a", 1, 1, 1), MPIError,
     "gather_2d: grid_rows: needed is an integer, given 'a'"),
    (lambda: TensorDistributor(MANAGER).distribute_2d([1.0], [1.0], 1, 0), MPIError,
     "distribute_2d: grid_cols is 0; it must be at least 1"),
    (lambda: distributed_sum(float, MANAGER, None), MPIError, "class float is none"),
    (lambda: MANAGER.allgather_tensor("a"), MPIError, "allgather_tensor: tensor: a NumPy array"),
    (lambda: MANAGER.allreduce_tensor(int), MPIError, "allreduce_tensor: tensor: the class int"),
    (lambda: cuop.minimum([1, "a"], DEEP), cuop.DTypeError, "^minimum: x1: .*dtype <U21"),
    (lambda: cuop.MatMulDouble(transA=DEEP), cuop.DTypeError, "transA: .*list is neither a name"),
    (lambda: cuop.kernel_cache_export(""), cuop.ExecutionError, "kernel cache: the path is empty"),
    (lambda: distributed_jacobi_2d([[1.0]], [[1.0]], MANAGER, None, method=[]), MPIError,
     "distributed_jacobi_2d: method list was given, possible are"),
    (lambda: distributed_jacobi_2d([[1.0]], [[1.0]], MANAGER, None, return_info=np.zeros(2)),
     MPIError, "return_info: needed is True or False, given ndarray"),
    (lambda: genesis.enable_lazy_init(np.zeros(2)), cuop.DTypeError, "is_lazy: .*given ndarray"),
    (lambda: genesis.cuda.memory_allocated(DEEP), cuop.DeviceError, "device: list is not a GPU"),
]  # fmt: skip


DISTRIBUTOR = TensorDistributor(MANAGER)
IMAGE = np.ones((1, 1, 3, 3))

REFUSALS += [
    # arguments that another function is given under a name of its own
    (lambda: DISTRIBUTOR.gather("a"), MPIError, "^gather: local: a NumPy array of dtype"),
    (lambda: DISTRIBUTOR.allgather(int), MPIError, "^allgather: local: the class int is none"),
    (lambda: DISTRIBUTOR.gather_compressed("a"), MPIError, "^gather_compressed: local: a NumPy"),
    (lambda: DISTRIBUTOR.reduce_sum(int), MPIError, "^reduce_sum: local: the class int is none"),
    (lambda: DISTRIBUTOR.distribute_with_broadcast([1.0], int), MPIError, "cast: whole: the class"),
    (lambda: DISTRIBUTOR.distribute_2d([[1.0]], "a", 1, 1), MPIError, "distribute_2d: B: a NumPy"),
    (lambda: DISTRIBUTOR.broadcast(int), MPIError, "^broadcast: tensor: the class int is none"),
    (lambda: distributed_sum("a", MANAGER, None), MPIError, "distributed_sum: tensor: a NumPy"),
    (lambda: distributed_sum(2**70, MANAGER, None), MPIError, "distributed_sum: tensor: 1180"),
    (lambda: distributed_conv2d("a", IMAGE, MANAGER, None), MPIError, "conv: input: a NumPy"),
    (lambda: distributed_conv2d(IMAGE, IMAGE, MANAGER, None, int), MPIError, "conv: bias: the cl"),
    (lambda: cuop.dist.fft2d_pencil_from_root(MANAGER.comm, 1), cuop.ShapeError, "pencil: x: a ten"),
    # what is given to an operator
    (lambda: cuop.DotFloat().forward([1.0], "a"), cuop.DTypeError, "^DotFloat: y: a NumPy array"),
    (lambda: cuop.DotFloat().cost(int, [1.0]), cuop.DTypeError, "^DotFloat: x: the class int"),
    (lambda: cuop.GemmFloat().set_weight("a"), cuop.DTypeError, "^GemmFloat: B: a NumPy array"),
    (lambda: cuop.ReluFloat().forward([1j], cuop.zeros(1)), cuop.DTypeError,
     "^ReluFloat: x: .*complex"),
    # sizes, texts and objects with a mind of their own
    (lambda: cuop.full(2, cuop.tensor([1j, 2j])), cuop.DTypeError, "fill_value: Tensor is not a n"),
    (lambda: cuop.logspace(1, 2, 2**62), cuop.ShapeError, r"^logspace: num: 4611\d* \* 8 does not"),
    (lambda: cuop.broadcast_to(np.zeros(()), 2**62), cuop.ShapeError, r"^broadcast_to: shape: "),
    (lambda: cuop.min(cuop.ones((1,) * 32), axis=[]), cuop.ShapeError, r"^min: axis: .* at most 31 "),
    (lambda: cuop.linspace(1, 2, 2**62), cuop.ShapeError, r"^linspace: num: 4611\d* \* 8 does not"),
    (lambda: cuop.fft.fftfreq(2**62), cuop.ShapeError, r"^fftfreq: n: 4611\d* \* 8 does not fit"),
    (lambda: cuop.eye(2, m=-3), cuop.ShapeError, "^eye: n is 2 and m -3; they must not be neg"),
    (lambda: cuop.unique([1j]), cuop.DTypeError, "^unique: x: dtype complex64 is not supported"),
    (lambda: cuop.external_stream(-(2**70), device="cpu"), cuop.DTypeError, "stream: stream: needed"),
    (lambda: cuop.einsum([1.0], cuop.tensor(1.0)), cuop.ExecutionError, "einsum: .* stands where"),
    (lambda: cuop.einsum("a", [1.0], optimize="x"), cuop.ExecutionError, 'optimize: the search "x"'),
    (lambda: cuop.parse_bytes("a", "a\0b"), cuop.ExecutionError, r"^a\\x00b: 'a' is not a size"),
    (lambda: cuop.kernel_cache_import("a\0b"), cuop.ExecutionError, r"import: file: a\\x00b holds"),
    (lambda: cuop.einsum([1.0], np.zeros(())), cuop.ExecutionError, "einsum: .* stands where"),
    (lambda: cuop.pad(cuop.ones((1, 2)), 2**40), cuop.ShapeError, r"^pad: pad_width: 2199\d* \* 2199"),
    (lambda: cuop.pad([1], 2**62), cuop.ShapeError, r"^pad: pad_width: 4611\d* \+ 4611\d* does not"),
    (lambda: cuop.repeat([1], -2), cuop.ShapeError, "^repeat: repeats is -2, it must not be neg"),
    (lambda: cuop.reshape([1], (2**40, 2**40)), cuop.ShapeError, r"^reshape: shape .* more elements"),
    (lambda: cuop.save("file", cuop.ones(1, "bfloat16")), cuop.DTypeError, "^save: array: NumPy has"),
    (lambda: cuop.einsum([1.0], "a\0b"), cuop.ExecutionError, r"^einsum: a\\x00b stands where"),
    (lambda: MANAGER.comm.split(0).in_world(-(2**31)), cuop.IndexError, "^in_world: rank -2147483648"),
    (lambda: cuop.tensordot([1], [1], axes=Endless()), cuop.ShapeError, "^tensordot: axes must be a n"),
    (lambda: cuop.fft.fftn(cuop.ones((1, 2, 2)), s=(2**62, 2, 2)), cuop.ShapeError,
     r"^fftn: lengths \(4611\d*, 2, 2\) have more elements"),
    (lambda: cuop.norm([1.0], np.nan), cuop.ExecutionError, "^norm: ord is NaN"),
    (lambda: cuop.save("file", BadInterface()), cuop.DTypeError, "^save: array: Invalid __array_int"),
    (lambda: distributed_sum(None, MANAGER, None), MPIError, "sum: tensor: needed is an array on rank"),
    (lambda: cuop.pad(0, Endless()), cuop.DTypeError, "^pad: pad_width: an integer or a sequence"),
    (lambda: cuop.reshape([1], -(2**63)), cuop.ShapeError, r"^reshape: shape \(-9223\d*,\) may hold"),
    (lambda: cuop.kernel_cache_warm(dtypes=["a"]), cuop.DTypeError, "warm: dtypes: 'a' is unknown"),
    (lambda: cuop.from_dlpack(np.zeros((1,) * 40)), cuop.ShapeError, "^from_dlpack: a tensor has"),
    (lambda: cuop.permutation(2**62), cuop.ShapeError, r"^permutation: n: 4611\d* \* 8 does not fit"),
    (lambda: cuop.tile(cuop.ones((1,) * 32), [1] * 33), cuop.ShapeError, "^tile: repeats: a tensor"),
    (lambda: cuop.enable_memory_debugging(np.zeros(2)), cuop.DTypeError, "is_on: .*given ndarray"),
    (lambda: cuop.load(NoPath()), cuop.DTypeError, "^load: path: .*given NoPath"),
    (lambda: cuop.from_dlpack(cuop.Tensor), cuop.DTypeError, "^from_dlpack: the class Tensor"),
    (lambda: cuop.zeros(()).__format__(1), cuop.DTypeError, "format: format_spec: .*given 1"),
    (lambda: cuop.zeros(1).copy_from(cuop.tensor([1j])), cuop.DTypeError, "^copy_from: array: comp"),
    (lambda: cuop.MemoryPool("cpu").allocate(2**64), cuop.MemoryError, "allocate: size is 1844"),
    (lambda: cuop.dist.profile_report(MANAGER.comm, max_events=2**70), cuop.ExecutionError,
     "^profile_report: max_events is 1180"),
    (lambda: genesis.asarray(DEEP), cuop.ShapeError, "^tensor: data: the nested list"),
    (lambda: genesis.warm_up_kernels([slice(3)]), cuop.DTypeError, "warm_up_kernels: kernels: a sha"),
    (lambda: genesis.warm_up_kernels(["max", 0]), cuop.ShapeError, "kernels: max: there is no elem"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSALS)
def test_an_error_names_function_and_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_integers_of_every_kind_are_taken():
    class Three:
        def __index__(self):
            return 3

    for n in (3, np.int8(3), np.uint64(3), np.array(3), cuop.tensor(3), Three()):
        assert cuop.eye(n).shape == (3, 3)


def test_errors_inside_a_call_stay_as_they_are():
    class Broken:
        def __index__(self):
            cuop.eye(2.5)

    with pytest.raises(cuop.ShapeError, match="reshape"):
        cuop.zeros(4).reshape(3)
    with pytest.raises(cuop.DTypeError, match="eye: n: needed is an integer, given 2.5"):
        cuop.dist.run_ranks(lambda comm: cuop.eye(2.5), 1)
    with pytest.raises(cuop.Error, match="eye: n"):
        cuop.eye(Broken())


def test_forms_of_the_same_arguments_are_named_once():
    with pytest.raises(TypeError) as caught:
        cuop.where(1, 2)
    message = str(caught.value)
    assert message.endswith("the arguments are (condition, x1, x2) or (condition, x1, x2, out)")


@pytest.mark.parametrize("flag", [np.True_, np.False_])
def test_bool_of_numpy_is_true_or_false(flag):
    x = cuop.ones((2, 3))
    assert x.sum(0, keepdims=flag).ndim == 1 + int(flag)
    assert cuop.matmul(x, x, trans_a=flag, trans_b=not flag).shape == ((3, 3) if flag else (2, 2))
    assert cuop.linspace(0, 1, 3, endpoint=flag)[-1].item() == (1 if flag else pytest.approx(2 / 3))
    here = cuop.ones((2, 3), device="cpu")
    assert np.shares_memory(here.__array__(copy=flag), here.__array__()) is not bool(flag)
    config = cuop.JITConfig(enable_jit=flag)
    assert config.enable_jit is bool(flag)
    for wrong in [np.int64(1), np.array([True]), 1.0]:
        with pytest.raises(cuop.DTypeError, match="sum: keepdims: needed is True or False"):
            x.sum(0, keepdims=wrong)


def test_every_function_of_the_module_says_what_it_does():
    silent = []
    for name in cuop.__all__:
        function = getattr(cuop, name)
        if type(function).__name__ == "nb_func":
            lines = [
                line for line in function.__doc__.splitlines() if not line.startswith(f"{name}(")
            ]
            if not "".join(lines).strip():
                silent.append(name)
    assert silent == []
