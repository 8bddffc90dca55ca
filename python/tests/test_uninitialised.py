"""Objects whose constructor never ran raise wherever they are used; none ends the process."""

import pytest
from fresh_process import TEST_PATH, run_with

pytestmark = pytest.mark.cpu

FIND = """
import copy, inspect, operator, pickle, sys, types
import numpy as np
import cuop
from cuop import _core

def classes(scope, seen):
    for value in vars(scope).values():
        if isinstance(value, types.ModuleType) and value.__name__.startswith("cuop._core"):
            if value not in seen:
                seen.append(value)
                yield from classes(value, seen)
        elif isinstance(value, type) and value not in seen:
            seen.append(value)
            yield value

def functions(scope):
    for name, value in vars(scope).items():
        if type(value).__name__ == "nb_func":
            yield f"{scope.__name__}.{name}", value

def is_enum(cls):
    return issubclass(cls, __import__("enum").Enum)

bound = [cls for cls in classes(_core, [_core]) if not is_enum(cls)]
bound = [cls for cls in bound if not cls.__name__.endswith("Double")]  # as their Float
assert _core.Tensor in bound and _core._dist.Communicator in bound and len(bound) > 30

def attempt(what, call):
    print(what, flush=True)  # so that a crash shows where it was
    try:
        call()
    except Exception:
        return True
    return False
"""

METHODS = """
PROTOCOLS = {
    "memoryview": memoryview, "bytes": bytes, "len": len, "iter": lambda x: list(iter(x)), "repr": repr,
    "str": str, "hash": hash, "bool": bool, "int": int, "float": float, "complex": complex,
    "index": operator.index, "neg": operator.neg, "copy": copy.copy, "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps, "array": np.asarray, "dlpack": np.from_dlpack, "dir": dir,
    "numpy sum": np.sum, "tensor": cuop.tensor, "asarray": cuop.asarray, "list": lambda x: cuop.tensor([x]),
    "add": lambda x: x + x, "radd": lambda x: 1 + x, "array add": lambda x: np.ones(3) + x,
    "iadd": lambda x: operator.iadd(x, 1), "matmul": lambda x: x @ x, "eq": lambda x: x == x,
    "less": lambda x: x < x, "item": lambda x: x[0], "set": lambda x: operator.setitem(x, 0, 1),
    "with": lambda x: x.__enter__(), "exit": lambda x: x.__exit__(None, None, None),
}
quiet = 0
for cls in bound:
    try:
        made = cls.__new__(cls)
    except TypeError:
        continue
    ready = [name for name, call in PROTOCOLS.items() if not attempt(f"{cls.__name__} {name}", lambda: call(made))]
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        if name in ("__init__", "__new__", "__class__", "__init_subclass__", "__subclasshook__", "__dir__"):
            continue
        is_ours = type(member).__name__ in ("nb_method", "property") or isinstance(member, property)
        raised = attempt(f"{cls.__name__}.{name}", lambda: getattr(made, name))
        if isinstance(member, property):
            assert raised, (cls, name)
            attempt(f"{cls.__name__}.{name} =", lambda: setattr(made, name, 1))
            continue
        for arguments in ((), (made,), (1, 2), (None, None, None)):
            raised = attempt(f"{cls.__name__}.{name}{len(arguments)}", lambda: getattr(made, name)(*arguments))
            assert raised or type(member).__name__ != "nb_method" or name in ("__eq__", "__ne__") or (
                name.startswith("__") and getattr(cls, name)(made, *arguments) is NotImplemented), (cls, name, arguments)
    attempt(f"{cls.__name__} of nothing", lambda: cls.__init__(42))
    for other in (42, made):
        for name in dir(cls):
            if type(inspect.getattr_static(cls, name)).__name__ == "nb_method":
                attempt(f"{cls.__name__}.{name} of {type(other).__name__}", lambda: getattr(cls, name)(other))
    del made
print("all")
"""

ARGUMENTS = """
for scope in (_core, _core._dist, _core.fft):
    for name, function in functions(scope):
        if name.endswith(("external_stream", "clear", "_cut_off_file")):
            continue
        for cls in (_core.Tensor, _core._dist.DistTensor, _core.Device):
            made = cls.__new__(cls)
            good = cuop.ones((2, 2))
            for arguments in ((made,), (good, made), ([made, made],), (good, good, made)):
                attempt(f"{name} {cls.__name__} {len(arguments)}", lambda: function(*arguments))
print("all")
"""


@pytest.mark.parametrize("code", [METHODS, ARGUMENTS], ids=["methods", "arguments"])
def test_no_use_of_an_unmade_object_ends_the_process(code):
    done = run_with({}, FIND + code)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[-1] == "all", (lines[-3:], done.stderr[-2000:])


def test_the_reproduction():
    import cuop

    with pytest.raises(BufferError, match="never made"):
        memoryview(cuop.Tensor.__new__(cuop.Tensor))
    with pytest.raises(cuop.DTypeError, match="never made"):
        cuop.stack([cuop.Tensor.__new__(cuop.Tensor)])


BLOCKS = """
import cuop
from cuop import _core
from in_threads import in_threads

def raises(call, words):
    try:
        call()
    except cuop.ExecutionError as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)

reports = _core._FusionReports()
raises(lambda: reports.groups, "inside of the block")
reports.__exit__()
reports.__enter__()
raises(reports.__enter__, "entered already")
reports.__exit__()
raises(lambda: reports.groups, "inside of the block")

fused = cuop.fused()
fused.__exit__()
fused.__enter__()
x = cuop.ones(3) + 1
in_threads(lambda: raises(lambda: fused.__exit__(), "another thread"))
fused.__exit__()
assert x.tolist() == [2, 2, 2]

# Left in the order of entering.
first, second = _core._FusionReports(), _core._FusionReports()
first.__enter__()
second.__enter__()
first.__exit__()
del first
with cuop.fused():
    y = cuop.ones(3) * 2
assert len(second.groups) == 1
second.__exit__()
with cuop.fused():
    assert (cuop.ones(3) + 2).tolist() == [3, 3, 3]

# Dropped without being left, here and by another thread.
for kind in (_core._FusionReports, cuop.fused):
    block = kind()
    block.__enter__()
    del block
    held = [kind()]
    held[0].__enter__()
    in_threads(held.clear)
    entered = []
    def enter():
        entered.append(kind())
        entered[0].__enter__()
        entered.append(cuop.ones(3) + 1)
    in_threads(enter)
    assert entered[1].tolist() == [2, 2, 2]
    entered.clear()
    assert (cuop.ones(3) * 4).tolist() == [4, 4, 4]

raises_type = []
for call in (lambda: cuop.JITConfig.__init__(42), lambda: cuop.JITConfig().__init__()):
    try:
        call()
    except (cuop.DTypeError, TypeError) as error:
        raises_type.append(type(error))
assert len(raises_type) == 2
print("all")
"""


def test_blocks_that_are_left_in_odd_ways():
    done = run_with(TEST_PATH, BLOCKS)
    assert (done.returncode, done.stdout) == (0, "all\n"), done.stderr
