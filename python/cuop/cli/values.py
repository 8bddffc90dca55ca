"""What options and arguments may be: whatever else is given is wrong usage (typer.BadParameter), in one line
that repeats it and says what is allowed."""

import math
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from cuop.errors import Error

NORMS = ("backward", "ortho", "forward")
MODES = ("plain", "compensated", "exact")
BOUNDARIES = ("zero", "periodic")


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """One of some words."""
    allowed = list(names)

    def parse(text: str) -> str:
        if text not in allowed:
            raise typer.BadParameter(f"{text!r} was given; allowed are {', '.join(allowed)}")
        return text

    return parse


def whole(least: int | None = None, most: int | None = None) -> Callable[[str | int], int]:
    """A whole number, from `least` to `most` where they are given."""
    allowed = "a whole number"
    if least is not None:
        allowed += f" of at least {least}" if most is None else f" from {least} to {most}"

    def parse(text: str | int) -> int:  # a default comes as it is
        try:
            number = int(text)
        except ValueError:
            number = None
        is_allowed = number is not None and (least is None or least <= number)
        if not is_allowed or (most is not None and number > most):
            raise typer.BadParameter(f"{text!r} was given; needed is {allowed}")
        return number

    return parse


def real(above: float = -math.inf) -> Callable[[str | float], float]:
    """A number above another."""
    allowed = "a number" if math.isinf(above) else f"a number above {above:g}"

    def parse(text: str | float) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not above < number < math.inf:
            raise typer.BadParameter(f"{text!r} was given; needed is {allowed}")
        return number

    return parse


def read_by(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """What a function of the library makes of the text, which words its refusal: that begins with the text."""

    def parse(text: str) -> Any:
        try:
            return read(text)
        except Error as error:
            who, quoted, why = str(error).partition(f"'{text}'")
            raise typer.BadParameter(quoted + why if quoted else who) from error

    return parse


def size(text: str) -> int:
    """Bytes, at least one: 1000, 512MB, 2G."""
    from cuop._core import parse_bytes

    given = read_by(lambda words: parse_bytes(words, "size"))(text)
    if given < 1:
        raise typer.BadParameter(f"a limit of {given} bytes was given; it must be above 0")
    return given


def dtype(text: str) -> str:
    """The name of a dtype."""
    import cuop

    return read_by(cuop.dtype)(text).name


def device(text: str) -> str:
    """The name of a device, which need not be there."""
    import cuop

    return str(read_by(cuop.Device)(text))


def whole_option(help: str, least: int | None = None, most: int | None = None) -> Any:
    """typer's option of a whole number."""
    return typer.Option(metavar="INTEGER", parser=whole(least, most), help=help)


def real_option(help: str, above: float = -math.inf) -> Any:
    """typer's option of a number."""
    return typer.Option(metavar="FLOAT", parser=real(above), help=help)


def choice_option(help: str, metavar: str, names: Iterable[str]) -> Any:
    """typer's option of one of some words."""
    return typer.Option(metavar=metavar, parser=one_of(names), help=help)


def size_option(help: str) -> Any:
    """typer's option of a number of bytes."""
    return typer.Option(metavar="SIZE", parser=size, help=help)


# Options that `cuop run` and `cuop plan` share, to the word.
Dim0 = Annotated[int, whole_option("transpose: first axis.")]
Dim1 = Annotated[int, whole_option("transpose: second axis.")]
Mode = Annotated[str, choice_option("sum, mean: plain, compensated or exact.", "MODE", MODES)]
Boundary = Annotated[
    str, choice_option("stencil, jacobi: zero or periodic.", "BOUNDARY", BOUNDARIES)
]
