"""Arguments of the functions that are written in Python, checked in the words of the extension's."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cuop.errors import DTypeError, ExecutionError, FileError, ShapeError

#: kMostRanks of src/cuop/dist/comm/rank_limit.h: of a communicator, a mesh or a plan.
MOST_RANKS = 1 << 15
#: Of a dimension.
MOST_SIZE = (1 << 63) - 1


def refused(value: Any, who: str, name: str, needed: str) -> DTypeError:
    """The error for an argument of the wrong kind."""
    return DTypeError(f"{who}: {name}: needed is {needed}, given {describe(value)}")


def describe(value: Any) -> str:
    """A short scalar itself, of everything else the name of its class."""
    is_long = type(value) is int and value.bit_length() > 128  # Python writes not all of them
    if not is_long and type(value) in (type(None), bool, int, float, str):
        text = repr(value)
        if len(text) <= 40:
            return text
    return type(value).__name__


def as_integer(value: Any, refusal: Callable[[], DTypeError]) -> int:
    """The int that anything with __index__ but a bool stands for; refusal() when it stands for none.

    An exception of the object's own goes to the user, but for TypeError, which is how arrays and
    tensors of several elements say that they are no integer: that is the cause of the refusal.
    """
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise refusal()
    try:
        return operator.index(value)
    except (TypeError, ShapeError) as error:
        raise refusal() from error


def integer(
    value: Any, who: str, name: str, least: int | None = None, most: int | None = None
) -> int:
    """An int of anything with __index__ but a bool, at least `least` and, given both, at most `most`."""
    number = as_integer(value, lambda: refused(value, who, name, "an integer"))
    if (least is not None and number < least) or (most is not None and number > most):
        allowed = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ExecutionError(f"{who}: {name} is {_shortened(number)}; it must be {allowed}")
    return number


def size_arguments(who: str, **named: Any) -> tuple[int, ...]:
    """The sizes of dimensions, by name, as ints."""
    return tuple(integer(each, who, name, least=0, most=MOST_SIZE) for name, each in named.items())


def _shortened(number: int) -> str:
    # Python writes no integer of more than some thousand digits.
    return str(number) if number.bit_length() <= 128 else f"a number of {number.bit_length()} bits"


def number(value: Any, who: str, name: str) -> float:
    """A float of anything that float() takes."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise refused(value, who, name, "a number") from error


def switch(value: Any, who: str, name: str) -> bool:
    """A setting that is on or off: True or False, Python's or NumPy's; DTypeError for all else."""
    if type(value) not in (bool, np.bool_):
        raise refused(value, who, name, "True or False")
    return bool(value)


class Switch:
    """An attribute that is on or off, whoever sets it; errors name its class."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._who, self._name = owner.__name__, name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else instance.__dict__[self._name]

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self._name] = switch(value, self._who, self._name)


def check_callable(value: Any, who: str, name: str) -> None:
    """Raise DTypeError unless the value can be called."""
    if not callable(value):
        raise refused(value, who, name, "a function")


def file_path(value: Any, who: str) -> Path:
    """A path of a string or os.PathLike; FileError for a name that no file can have."""
    if not isinstance(value, (str, os.PathLike)):
        raise refused(value, who, "path", "a string or path")
    try:
        text = os.fspath(value)
    except TypeError as error:  # of a __fspath__ that answers something else
        raise refused(value, who, "path", "a string or path") from error
    if not isinstance(text, str):
        raise refused(value, who, "path", "a string or path")
    if "\0" in text:
        raise FileError(f"{who}: {text!r} holds a zero character, which no file name may")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise FileError(f"{who}: {text!r} cannot be encoded, as file names must be") from error
    return Path(text)
