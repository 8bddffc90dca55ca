#!/usr/bin/env python3
"""Calls every public function, method and callback with arguments that nobody gives on purpose.

    python tools/fuzz_api.py --seconds 60 [--seed 7]
    python tools/fuzz_api.py --seed 7 --only 4711

A call may answer or raise. It is a defect when the process ends or hangs, and when an error is not in
words: text of the C++ library or of the binding generator, no text at all, or a text that names
neither the function nor an argument.
"""

from __future__ import annotations

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
# Their work is to change the process for all later calls, or to wait for what does not come.
_LEFT_OUT = {
    "enable_memory_debugging", "set_memory_debugging", "set_memory_limit", "set_memory_fraction",
    "set_trace_recording", "enable_profiling", "system", "print_system_info", "main",
    "set_global_jit_config", "measured_roof", "annotations", "fail_together",
    "Part", "Explanation", "FusedGroup", "ProfileReport",  # plain rows that cuop makes
}  # fmt: skip
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
    "work": ["(lambda comm: 1)", "(lambda comm: comm.barrier())", "raising"],
}
_INSTANCES = {
    "cuop.Tensor": ["tensor((2, 3))", "tensor((3,), 'int64')", "tensor((0, 2))", "tensor(())"],
    "cuop.Generator": ["cuop.Generator(1)"],
    "cuop.Device": ["cuop.Device('cpu')"],
    "cuop.MemoryPool": ["cuop.MemoryPool('cpu')"],
    "dist.Communicator": ["dist.world()"],
    "distributed_gpu.MPIManager": ["distributed_gpu.MPIManager()"],
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
    "iter": "iteration", "getitem": "index", "setitem": "index",
}  # fmt: skip
# Second names, by which an error does not call a function.
_ALIASES = {
    "power": "pow", "mod": "remainder", "absolute": "abs", "conjugate": "conj",
    "bitwise_not": "bitwise_invert", "true_divide": "divide",
    "allgather": "all_gather", "allreduce": "all_gather", "reduce": "gather",
    "matmul_mixed_precision": "matmul", "matmul_sparse_aware": "matmul", "batch_matmul": "matmul",
    "conv2d": "conv", "conv3d": "conv", "parse_bytes": "size",
}  # fmt: skip
# Which wait for other ranks until the deadline.
_SLOW = {"recv", "irecv", "send", "ssend"}
# Arguments whose value is how often the work is done: 2**40 times takes its time.
_REPEATS = re.compile(r"\b(iterations|num_runs|warmup_runs|rounds)=")
_RAW = re.compile(
    r"bad_cast|bad_alloc|std::|_M_|incompatible function arguments|basic_string|nanobind|nb_func"
    r"|Unable to cast|unordered_map|terminate called|Assertion|vector::|\bN4cuop|stoi|cannot create std"
)


@dataclass(frozen=True)
class Target:
    """What is called: the text before the bracket, its parameters, the names an error may use."""

    call: str
    parameters: tuple[tuple[str, str, bool, bool], ...]  # name, kind, is needed, is by name only
    names: frozenset[str]


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
    for signature in _signatures(function):
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
        known = names | {name for name, *_ in parameters}
        found.append(Target(call, tuple(parameters), frozenset(known)))
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
    elif not kind.__module__.startswith("cuop._core"):
        found = _targets_of(name, kind, {short}, False)
    made = _INSTANCES.get(name) or [_call(target, random_, 0) for target in found[:1]]
    made = [instance for instance in made if _can_be_made(instance)]
    for method, member in inspect.getmembers(kind):
        is_private = method.startswith("_") and not method.endswith("__")
        if is_private or _METHODS_LEFT_OUT.match(method) or method in _LEFT_OUT | _SLOW:
            continue
        names = {short, method, *_operations(method)}
        for instance in made:
            if isinstance(member, property) or not callable(member):
                found.append(Target(f"setattr({instance}, '{method}', ", (("arg", "", True, False),),
                                    frozenset(names | {"arg"})))  # fmt: skip
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


def _call(target: Target, random_: random.Random, attacks: int) -> str:
    """The text of a call, of which so many arguments are hostile."""
    given = [p for p in target.parameters if p[2] or (attacks and random_.random() < 0.4)]
    attacked = set(random_.sample(range(len(given)), min(attacks, len(given))))
    arguments, is_named = [], False
    for i, (name, kind, is_needed, is_named_only) in enumerate(given):
        value = _hostile(random_) if i in attacked else _good(name, kind, random_)
        is_named = is_named or is_named_only or not is_needed
        arguments.append(f"{name}={value}" if is_named else value)
    if attacks and random_.random() < 0.03:
        arguments.append(
            random_.choice(["*()", "no_such_argument=1", f"**{{'a': {_hostile(random_)}}}"])
        )
    if target.call.startswith("setattr("):
        return target.call + ", ".join(arguments) + ")"
    return f"{target.call}({', '.join(arguments)})"


def _is_named(text: str, target: Target) -> bool:
    """Whether a text names the function, an argument, or what the function is made of.

    That is, for the forms of a call over ranks, the call itself.
    """
    words = {word.lower() for word in re.findall(r"\w+", text)}
    words |= {word.removesuffix("_from_root") for word in words}
    names = {name.lower() for name in target.names}
    names |= {name.removeprefix("distributed_").removeprefix("jit") for name in names}
    names |= {name.removesuffix("_from_root") for name in names}
    names |= {_ALIASES[name] for name in names if name in _ALIASES}
    if not target.call.startswith(("cuop.", "tensor", "fft.", "setattr")):
        names |= {"from_root", "distTensor", "reduce_to", "all_reduce", "split", "broadcast_to"}
    return bool(words & names)


def _judge(error: BaseException, target: Target, text: str) -> str:
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
    if isinstance(error, cuop.DeviceError) and re.search("is not available|none on cpu", said):
        return ""  # of this machine
    if isinstance(error, cuop.MemoryError):
        return ""  # has figures instead
    if isinstance(
        error, cuop.Error | MemoryError | TypeError | ValueError | RuntimeError
    ) and not _is_named(said, target):
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

    def make(random_: random.Random) -> Case:
        target = random_.choice(targets)
        text = _call(target, random_, random_.choice((1, 1, 1, 2, 3)))

        def run() -> str:
            try:
                fuzz_values.evaluate(text)
            except BaseException as error:
                return _judge(error, target, text)
            finally:
                namespace["cuop"].set_memory_callback(None)
            return ""

        return Case(text, run, may_last=_REPEATS.search(text) is not None)

    return make


if __name__ == "__main__":
    main(__doc__.splitlines()[0], prepare)
