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


#: Numbers that the library counts in.
_LEAST, _MOST = -(2**63), 2**63 - 1


def whole(least: int | None = None, most: int | None = None) -> Callable[[str | int], int]:
    """A whole number of 64 bits, from `least` to `most` where they are given."""
    allowed = "a whole number"
    if least is not None:
        allowed += f" of at least {least}" if most is None else f" from {least} to {most}"
    lowest, highest = _LEAST if least is None else least, _MOST if most is None else most

    def parse(text: str | int) -> int:  # a default comes as it is
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or not lowest <= number <= highest:
            is_long = number is not None and not _LEAST <= number <= _MOST
            limits = " of 64 bits" if is_long and most is None else ""
            raise typer.BadParameter(f"{text!r} was given; needed is {allowed}{limits}")
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


def named_option(name: str, parser: Callable[[str], Any], help: str) -> Any:
    """typer's option of that name, which stands for its value too. Named here: typer 0.27 takes a name that
    it finds itself from the value's, in capitals."""
    return typer.Option(name, metavar=name.lstrip("-").upper(), parser=parser, help=help)


def choice_option(name: str, help: str, names: Iterable[str]) -> Any:
    """typer's option of one of some words."""
    return named_option(name, one_of(names), help)


def size_option(help: str) -> Any:
    """typer's option of a number of bytes."""
    return typer.Option(metavar="SIZE", parser=size, help=help)


# Options that `cuop run` and `cuop plan` share, to the word.
Dim0 = Annotated[int, whole_option("transpose: first axis.")]
Dim1 = Annotated[int, whole_option("transpose: second axis.")]
Mode = Annotated[str, choice_option("--mode", "sum, mean: plain, compensated or exact.", MODES)]
Boundary = Annotated[
    str, choice_option("--boundary", "stencil, jacobi: zero or periodic.", BOUNDARIES)
]
