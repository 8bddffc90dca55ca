"""Words for calls of the extension whose arguments do not fit: who, which argument, given, needed.

The extension imports this module when such a call has failed, never before.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cuop._arguments import as_integer, describe
from cuop.errors import DTypeError, Error, ExecutionError

_INTEGERS = "an integer or a sequence of integers"
_ENUM = "one of the names or integers that stand for it"
_CLASSES = {"Tensor", "Sequence", "Mapping"}
_WORDS = {
    "int": "an integer",
    "float": "a real number",
    "bool": "True or False",
    "str": "a string",
    "None": "None",
    "Tensor": "a tensor",
    "object": "a value other than None",
    "Callable": "a function",
    "Sequence": "a sequence",
    "Mapping": "a dict",
    "ArrayLike": "an array or a number",
    "DTypeLike": "a dtype or its name",
    "DeviceLike": "a device or its name",
    "ShapeLike": _INTEGERS,
    "AxesLike": _INTEGERS,
    "OffsetLike": _INTEGERS,
    "Number": "a number",
    "UploLike": _ENUM,
    "SideLike": _ENUM,
    "TransLike": _ENUM,
    "DiagLike": _ENUM,
}


def explain(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], allowed: tuple[int, int] | None
) -> Exception:
    """The exception for a call that fits no signature of `function`.

    `allowed` holds the bounds of an integer that was out of range.
    """
    name = _name_of(function, args)
    signatures = list(_signatures(function))
    reasons = []
    for signature in signatures:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            forms = " or ".join(_parameter_names(form) for form in signatures)
            reasons.append(TypeError(f"{name}: {error}; the arguments are {forms}"))
            continue
        reasons.append(_wrong_kind(function, name, signature, bound.arguments, allowed))
    typed = [reason for reason in reasons if isinstance(reason, Error)]
    # Of several forms, the one that lacks nothing but knows a name less is nearest to what was meant.
    named = [reason for reason in reasons if "unexpected keyword" in str(reason)]
    return (typed or named or reasons)[0]


def place(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> str:
    """The function and the name of the argument for which `value` was given, for a message."""
    name = _name_of(function, args)
    for signature in _signatures(function):
        try:
            arguments = signature.bind(*args, **kwargs).arguments
        except TypeError:
            continue
        for argument, given in arguments.items():
            if argument != "self" and any(item is value for item in _items(given)):
                return f"{name}: {argument}"
    return name


def _signatures(function: Any) -> Iterator[inspect.Signature]:
    for text, *_ in function.__nb_signature__:
        plain = re.sub(r"\\\d+", "None", text)  # the places of default values
        definition = re.sub(r"^def \w*", "def function", plain)
        scope: dict[str, Callable[..., Any]] = {}
        exec(f"from __future__ import annotations\n{definition}: ...", scope)
        yield inspect.signature(scope["function"])


def _name_of(function: Any, args: tuple[Any, ...]) -> str:
    name = function.__name__
    if name == "__init__":
        return type(args[0]).__name__
    if name:
        plain = name.strip("_") if name.startswith("__") else name
        return f"{args[0].name}: {plain}" if args and "Operator" in _class_names(args[0]) else plain
    for scope in type(args[0]).__mro__ if args else ():
        for key, member in vars(scope).items():
            if isinstance(member, property) and function in (member.fget, member.fset):
                return f"{type(args[0]).__name__}.{key}"
    return "function"


def _parameter_names(signature: inspect.Signature) -> str:
    return "(" + ", ".join(name for name in signature.parameters if name != "self") + ")"


def _items(given: Any) -> Iterator[Any]:
    """What an argument holds: itself, and the entries of lists and tuples, which may hold themselves."""
    waiting, seen = [given], set()
    while waiting:
        item = waiting.pop()
        yield item
        if isinstance(item, (list, tuple)) and id(item) not in seen:
            seen.add(id(item))
            waiting.extend(reversed(item))


def _wrong_kind(
    function: Any,
    name: str,
    signature: inspect.Signature,
    arguments: Mapping[str, Any],
    allowed: tuple[int, int] | None,
) -> Exception:
    """Blames the first argument that cannot fit, or else the first that a signature cannot rule."""
    doubtful = None
    for argument, value in arguments.items():
        parameter = signature.parameters[argument]
        if argument == "self" and parameter.annotation is parameter.empty:
            owner = (function.__qualname__ or "").split(".")[0]
            if owner and owner not in _class_names(value):
                return DTypeError(f"{name}: this method of {owner} was given {describe(value)}")
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        where = name if argument == "arg" else f"{name}: {argument}"  # a property's value
        kinds = _alternatives(str(parameter.annotation))
        fits = [_fits(kind, value) for kind in kinds]
        number = as_integer(value) if "int" in kinds else None
        if number is not None:
            if allowed is not None and not allowed[0] <= number <= allowed[1]:
                return ExecutionError(
                    f"{where} is {number}; allowed are {allowed[0]} to {allowed[1]}"
                )
            if not -(2**31) <= number < 2**31:
                doubtful = ExecutionError(f"{where} is {number}, out of range")
            elif number < 0:
                doubtful = doubtful or ExecutionError(
                    f"{where} is {number}; it must not be negative"
                )
            continue
        error = DTypeError(f"{where}: needed is {_needed(kinds, value)}, given {describe(value)}")
        if not any(fits):
            return error
        if True not in fits:
            doubtful = doubtful or error
    return doubtful or TypeError(f"{name}: the arguments do not fit {signature}")


def _alternatives(annotation: str) -> list[str]:
    """The parts of a union, each without the modules that its name stands in."""
    parts, depth, start = [], 0, 0
    for place_, letter in enumerate(annotation):
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and depth == 0:
            parts.append(annotation[start:place_])
            start = place_ + 1
    parts.append(annotation[start:])
    return [re.sub(r"\b(\w+\.)+", "", part.strip()) for part in parts]


def _fits(kind: str, value: Any) -> bool | None:
    """Whether a value is of a kind; None where only the conversion itself can tell."""
    if value is None or kind == "None":
        return value is None and kind in ("None", "Any")
    if kind == "int":
        return as_integer(value) is not None
    if kind == "float":
        return hasattr(type(value), "__float__") or hasattr(type(value), "__index__")
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "str":
        return isinstance(value, str)
    if kind.split("[")[0] == "Callable":
        return callable(value)
    if kind in _class_names(value):
        return True
    if kind in _WORDS and kind not in _CLASSES or kind == "Any":
        return True
    if "[" in kind:
        is_sequence = isinstance(value, (Sequence, Mapping)) and not isinstance(value, str)
        return None if is_sequence else False
    return kind in _class_names(value)


def _class_names(value: Any) -> list[str]:
    return [scope.__name__ for scope in type(value).__mro__]


def _needed(kinds: list[str], value: Any) -> str:
    if "Tensor" in kinds and hasattr(value, "__array__"):
        return "a tensor, which cuop.asarray(array) makes of an array's own memory"
    return " or ".join(_WORDS.get(kind.split("[")[0], kind) for kind in kinds)
