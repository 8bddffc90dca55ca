#!/usr/bin/env python3
"""Calls every public function, method and callback with arguments that nobody gives on purpose.

    python tools/fuzz_api.py --seconds 60 [--seed 7]
    python tools/fuzz_api.py --seed 7 --only 4711

A call may answer or raise. It is a defect when the process ends or hangs, and when an error is not in
words: text of the C++ library or of the binding generator, no text at all, or a text that does not
name the argument that it is about (`_is_named` has the rule).
"""

from __future__ import annotations

import enum
import inspect
import os
import random
import re
from dataclasses import dataclass
from typing import Any

from fuzz_harness import Case, main
from signatures import signatures

os.environ.setdefault("CUOP_COMM_TIMEOUT", "1")

_MODULES = {
    "cuop": "cuop",
    "dist": "cuop.dist",
    "fft": "cuop.fft",
    "genesis": "genesis",
    "cuda": "genesis.cuda",
    "distributed_gpu": "distributed_gpu",
    "cost_model": "distributed_gpu.cost_model",
    "convolution": "distributed_gpu.algorithms.convolution",
    "dfft": "distributed_gpu.algorithms.fft",
    "matrix_ops": "distributed_gpu.algorithms.matrix_ops",
    "reduction": "distributed_gpu.algorithms.reduction",
    "stencil": "distributed_gpu.algorithms.stencil",
}
# Raises the text that it is given; plain rows that cuop makes, whose constructors take anything.
_LEFT_OUT = {"fail_together", "Part", "Explanation", "FusedGroup", "ProfileReport"}
# Change the process for all later calls, and are taken back after each of their own.
_CHANGES = re.compile(
    r"\.(enable_memory_debugging|set_memory_debugging|set_memory_limit|set_memory_fraction"
    r"|set_trace_recording|enable_profiling|set_global_jit_config)\("
)
_GOOD_BY_NAME = {
    "comm": ["dist.world()"],
    "mpi": ["distributed_gpu.MPIManager()"],
    "distributor": ["distributed_gpu.TensorDistributor(distributed_gpu.MPIManager())"],
    "boundary": ["'zero'", "'periodic'"],
    "mode": ["'plain'", "'exact'"],
    "path": ["'file'"],
    "ranks": ["1", "2"],
    "iterations": ["2"],
    "num_runs": ["2"],
    "work": [
        "(lambda comm: 1)",
        "(lambda comm: comm.barrier())",
        "raising",
        "(lambda comm: comm.sendrecv(1, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size))",
        "(lambda comm: (setattr(comm, 'timeout', 0.02), comm.recv((comm.rank + 1) % comm.size)))",
    ],
}
_INSTANCES = {
    "cuop.Tensor": ["tensor((2, 3))", "tensor((3,), 'int64')", "tensor((0, 2))", "tensor(())"],
    "cuop.Generator": ["cuop.Generator(1)"],
    "cuop.Device": ["cuop.Device('cpu')"],
    "cuop.MemoryPool": ["cuop.MemoryPool('cpu')"],
    # Of their own, which one may abort or leave to a message that nobody sends.
    "dist.Communicator": ["dist.world().split(0)"],
    "distributed_gpu.MPIManager": ["distributed_gpu.MPIManager(dist.world().split(0))"],
    "distributed_gpu.TensorDistributor": _GOOD_BY_NAME["distributor"],
}
_METHODS_LEFT_OUT = re.compile(
    r"__(class|new|init|del|dir|doc|module|dict|weakref|reduce|reduce_ex|getattribute|setattr|delattr"
    r"|init_subclass|subclasshook|sizeof|getstate|nb_\w+|annotations|abstractmethods)__$"
)
_SPECIAL = {
    "or": "bitwise_or", "and": "bitwise_and", "xor": "bitwise_xor", "invert": "bitwise_not",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift", "sub": "subtract",
    "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "power", "neg": "negative", "pos": "positive", "lt": "less", "le": "less_equal",
    "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal", "float": "item",
    "absolute": "abs", "conjugate": "conj", "int": "item", "bool": "item", "complex": "item", "index": "item",
    "iter": "iteration", "getitem": "index", "setitem": "index", "contains": "equal",
}  # fmt: skip
# Second names, by which an error does not call a function.
_ALIASES = {
    "power": "pow", "mod": "remainder", "absolute": "abs", "conjugate": "conj",
    "bitwise_not": "bitwise_invert", "true_divide": "divide",
    "allgather": "all_gather", "allreduce": "all_gather", "reduce": "gather",
    "matmul_mixed_precision": "matmul", "matmul_sparse_aware": "matmul", "batch_matmul": "matmul",
    "conv2d": "conv", "conv3d": "conv", "parse_bytes": "size", "permute_dims": "permute",
    "synchronize": "barrier", "expand_dims": "shape", "equal": "eq",
}  # fmt: skip
# Arguments whose value is how often the work is done: 2**40 times takes its time.
_REPEATS = re.compile(r"\b(iterations|num_runs|warmup_runs|rounds)=")
_RAW = re.compile(
    r"bad_cast|bad_alloc|std::|_M_|incompatible function arguments|basic_string|nanobind|nb_func"
    r"|Unable to cast|unordered_map|terminate called|Assertion|vector::|\bN4cuop|stoi|cannot create std"
)
# Errors about no single argument: which arguments there are; operands that do not go together, or
# have no dtype to be computed in; an object that is not ready; what other ranks did.
_ABOUT_NO_ARGUMENT = re.compile(
    r"nothing is recorded|unexpected|missing|takes no|takes \d|too many|positional|arguments are|multiple values"
    r"|do not broadcast|do not fit|shapes .* and |dtypes .* and |tensors of .* and |the range \["
    r"|: dtype \w+ is not supported|number .* does not fit dtype|cannot travel as"
    r"|is out of range for a tensor of|no elements? to |a tensor has at most "
    r"|is not set; call|cannot go on"
)
# Of a class of Python that was given for a function, and of an object's own __str__ or __repr__.
_OF_A_CLASS = re.compile(
    r"(type|float|int)\(\) (takes|argument)|.*no constructor defined|__str__ returned"
    r"|maximum recursion .* the repr of|.* codec can't encode"
)
# What errors call arguments by, where that is another word than their name.
_WORDS = {
    "out": {"output"}, "y": {"output"}, "X": {"output"}, "C": {"output"},
    "root": {"rank"}, "dest": {"rank"}, "source": {"rank"}, "dst": {"rank"}, "src": {"rank"},
    "obj": {"object"}, "text": {"size"}, "path": {"file", "directory"}, "file": {"path"},
    "s": {"length", "lengths", "sizes"}, "dim": {"dims", "axis"},
    "equation": {"equation", "term", "character", "index"}, "operands": {"operand", "index", "term"},
    "padded": {"grid"}, "pad_width": {"widths"}, "stencil_kernel": {"kernel"},
    "x": {"input", "output", "length"}, "a": {"operand"}, "b": {"operand"}, "axes": {"axis"},
    "n": {"length", "lengths"}, "tensor": {"input", "length"}, "tensors": {"tensor"}, "size": {"bytes"},
    "device": {"devices", "cuda"}, "cost_model": {"model"}, "pad_h": {"padding"}, "pad_w": {"padding"},
}  # fmt: skip


@dataclass(frozen=True)
class Target:
    """What is called: the text before the bracket, its parameters, the names an error may use."""

    call: str
    parameters: tuple[tuple[str, str, bool, bool], ...]  # name, kind, is needed, is by name only
    names: frozenset[str]  # of the function
    arguments: frozenset[str]  # of all its forms


def _signatures(function: Any) -> list[inspect.Signature]:
    plain = getattr(function, "__wrapped__", function)
    if hasattr(plain, "__nb_signature__"):
        return signatures(plain)
    try:
        return [inspect.signature(plain)]
    except (TypeError, ValueError):
        return []


def _targets_of(call: str, function: Any, names: set[str], is_method: bool) -> list[Target]:
    found = []
    forms = _signatures(function)
    arguments = {name for signature in forms for name in signature.parameters}
    for signature in forms:
        parameters = []
        for position, (name, parameter) in enumerate(signature.parameters.items()):
            if position == 0 and is_method:
                continue
            if parameter.kind is parameter.VAR_KEYWORD:
                continue
            kind = parameter.annotation if isinstance(parameter.annotation, str) else ""
            is_needed = parameter.default is parameter.empty
            is_named = parameter.kind is parameter.KEYWORD_ONLY
            parameters.append((name, kind, is_needed, is_named))
        found.append(Target(call, tuple(parameters), frozenset(names), frozenset(arguments)))
    return found


def _operations(method: str) -> set[str]:
    """The names of what a special method does: __ior__ is bitwise_or."""
    plain = method.strip("_")
    if not method.startswith("__"):
        return {plain}
    stems = {plain, plain.removeprefix("r"), plain.removeprefix("i")}
    return stems | {_SPECIAL[stem] for stem in stems if stem in _SPECIAL}


def _can_be_made(instance: str) -> bool:
    from fuzz_values import evaluate

    try:
        evaluate(instance)
    except Exception:
        return False
    return True


def _class_targets(name: str, kind: type, random_: random.Random) -> list[Target]:
    """The constructor, and the methods and properties of an object made by a good call of it."""
    short = name.rsplit(".", 1)[-1]
    found = []
    if hasattr(kind.__init__, "__nb_signature__"):
        found = _targets_of(name, kind.__init__, {short}, True)
    elif issubclass(kind, enum.Enum):  # its constructor is Python's
        return []
    elif not kind.__module__.startswith("cuop._core"):
        found = _targets_of(name, kind, {short}, False)
    made = _INSTANCES.get(name) or [_call(target, random_, 0)[0] for target in found[:1]]
    made = [instance for instance in made if _can_be_made(instance)]
    for method, member in inspect.getmembers(kind):
        is_private = method.startswith("_") and not method.endswith("__")
        if is_private or _METHODS_LEFT_OUT.match(method) or method in _LEFT_OUT:
            continue
        names = {short, method, *_operations(method)}
        for instance in made:
            if isinstance(member, property) or not callable(member):
                found.append(Target(f"setattr({instance}, '{method}', ", (("arg", "", True, False),),
                                    frozenset(names), frozenset({method})))  # fmt: skip
            else:
                found += _targets_of(f"{instance}.{method}", member, names, True)
    return found


def _targets(namespace: dict[str, Any]) -> list[Target]:
    found, seen, random_ = [], set(), random.Random(1)
    for module in _MODULES:
        scope = namespace[module]
        for name in getattr(scope, "__all__", dir(scope)):
            value = getattr(scope, name, None)
            if name.startswith("_") or name in _LEFT_OUT or not callable(value):
                continue
            if id(value) in seen or isinstance(value, type) and issubclass(value, BaseException):
                continue
            seen.add(id(value))
            call = f"{module}.{name}"
            if isinstance(value, type):
                found += _class_targets(call, value, random_)
            else:
                found += _targets_of(call, value, {name, getattr(value, "__name__", name)}, False)
    return found


def _good(name: str, kind: str, random_: random.Random) -> str:
    from fuzz_values import GOOD

    if name in _GOOD_BY_NAME:
        return random_.choice(_GOOD_BY_NAME[name])
    kinds = [part for part in re.findall(r"\w+", kind) if part in GOOD]
    return random_.choice(GOOD[random_.choice(kinds)] if kinds else GOOD["ArrayLike"])


def _hostile(random_: random.Random) -> str:
    from fuzz_values import HOSTILE

    return random_.choice(random_.choice(HOSTILE))


def _call(target: Target, random_: random.Random, attacks: int) -> tuple[str, int]:
    """The text of a call, of which so many arguments are hostile, and how many arguments it gives."""
    given = [p for p in target.parameters if p[2] or (attacks and random_.random() < 0.4)]
    attacked = set(random_.sample(range(len(given)), min(attacks, len(given))))
    arguments, is_named = [], False
    for i, (name, kind, is_needed, is_named_only) in enumerate(given):
        value = _hostile(random_) if i in attacked else _good(name, kind, random_)
        is_named = is_named or is_named_only or not is_needed
        arguments.append(f"{name}={value}" if is_named else value)
    if target.call.startswith("setattr("):
        return target.call + ", ".join(arguments) + ")", len(given)
    if attacks and random_.random() < 0.03:
        arguments.append(
            random_.choice(["*()", "no_such_argument=1", f"**{{'a': {_hostile(random_)}}}"])
        )
    return f"{target.call}({', '.join(arguments)})", len(given)


def _is_named(text: str, target: Target, count: int) -> bool:
    """Whether a text names the argument that it is about.

    The name of the function is enough where nothing else can be meant, as the call gives one argument
    or none; where arguments have no names, as those of an operator; and in an error about no single
    argument. For the forms of a call over ranks, what such a function is made of counts as its name.
    """
    words = {word.lower() for word in re.findall(r"\w+", text)}
    known = set().union(target.arguments, *(_WORDS.get(name, ()) for name in target.arguments))
    if target.call.startswith("tensor("):
        known.add("x")  # the tensor whose method it is
    if words & {name.lower() for name in known}:
        return True
    is_operator = target.call.endswith("__")
    if count > 1 and not is_operator and not _ABOUT_NO_ARGUMENT.search(text):
        return False
    words |= {word.removesuffix("_from_root") for word in words}
    names = {name.lower() for name in target.names}
    names |= {name.removeprefix("distributed_").removeprefix("jit") for name in names}
    names |= {name.removesuffix("_from_root") for name in names}
    names |= {_ALIASES[name] for name in names if name in _ALIASES}
    if not target.call.startswith(("cuop.", "tensor", "fft.", "setattr")):
        names |= {"from_root", "redistribute", "reduce_to", "all_reduce", "split", "broadcast_to"}
    return bool(words & names)


def _judge(error: BaseException, target: Target, text: str, count: int) -> str:
    """What is wrong with an exception, or ""."""
    import cuop

    head = text.split("(", 1)[0]
    chain = error
    while chain is not None:
        if type(chain).__name__ == "RaisedOnPurpose":
            return ""
        chain = chain.__cause__ or chain.__context__
    try:
        said = str(error)
    except Exception as failure:
        return (
            f"no words: {head} {type(error).__name__} whose str() raises {type(failure).__name__}"
        )
    place = f"{head} {type(error).__name__} {said[:150]}"
    if isinstance(error, SystemError):
        return f"SystemError: {place}"
    if _RAW.search(said):
        return f"raw text: {place}"
    if isinstance(error, (SyntaxError, NameError)) and "eval" not in said:
        return f"fuzzer: {place}"
    wordless = (StopIteration, KeyboardInterrupt, MemoryError)  # Python's own have no words
    if not said.strip() and not isinstance(error, wordless):
        return f"no words: {place}"
    if any(note.startswith("raised on rank") for note in getattr(error, "__notes__", ())):
        return ""  # by the function that was given to the ranks
    if _OF_A_CLASS.match(said) or re.search(
        r"\.(explain|tune_libraries)\((int|type|float)\b", text
    ):
        return ""
    if isinstance(error, cuop.DeviceError) and re.search(
        "is not available|none on cpu|there is no GPU", said
    ):
        return ""  # of this machine
    if isinstance(error, cuop.MemoryError):
        return ""  # has figures instead
    if isinstance(
        error, cuop.Error | MemoryError | TypeError | ValueError | RuntimeError
    ) and not _is_named(said, target, count):
        return f"unnamed: {place}"
    return ""


def prepare():
    """What makes up one call from a generator of random numbers."""
    import importlib

    import fuzz_values

    namespace = fuzz_values.NAMES
    for name, module in _MODULES.items():
        namespace[name] = importlib.import_module(module)
    namespace["cuop"].set_device("cpu")
    targets = _targets(namespace)
    config = namespace["cuop"].get_global_jit_config()

    def take_back(text: str) -> None:
        cuop = namespace["cuop"]
        cuop.set_memory_callback(None)
        if not _CHANGES.search(text):
            return
        cuop.set_memory_debugging("cpu", False)
        cuop.set_memory_limit(None, "cpu")
        cuop.set_trace_recording(False)
        cuop.enable_profiling(False)
        cuop.set_global_jit_config(config)

    def make(random_: random.Random) -> Case:
        target = random_.choice(targets)
        text, count = _call(target, random_, random_.choice((1, 1, 1, 2, 3)))

        def run() -> str:
            try:
                fuzz_values.evaluate(text)
            except BaseException as error:
                return _judge(error, target, text, count)
            finally:
                take_back(text)
            return ""

        return Case(text, run, may_last=_REPEATS.search(text) is not None)

    return make


if __name__ == "__main__":
    main(__doc__.splitlines()[0], prepare)
