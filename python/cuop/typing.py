"""What cuOP's functions accept where their signatures say ArrayLike, ShapeLike and so on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import os

    import numpy.typing

    from cuop._core import Device, Diag, Side, Tensor, Trans, Uplo, dtype

__all__ = [
    "ArrayLike",
    "AxesLike",
    "DTypeLike",
    "DeviceLike",
    "DiagLike",
    "Number",
    "OffsetLike",
    "PathLike",
    "ShapeLike",
    "SideLike",
    "TransLike",
    "UploLike",
]


class SupportsDLPack(Protocol):
    """An array of another library that hands its memory over by DLPack."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


#: A Python number; it takes part in an operation without deciding the dtype more than it must.
Number: TypeAlias = "bool | int | float | complex"
#: Anything that becomes a tensor: one already, a NumPy array, another library's, nested lists.
ArrayLike: TypeAlias = "Tensor | SupportsDLPack | numpy.typing.ArrayLike"
#: A dtype of cuOP's or NumPy's, its name, or a Python number type.
DTypeLike: TypeAlias = "dtype | numpy.typing.DTypeLike"
#: A device or its name: 'cpu', 'cuda:1'.
DeviceLike: TypeAlias = "Device | str"
#: Sizes, outermost first; a number is a shape of one dimension.
ShapeLike: TypeAlias = "int | Sequence[int]"
#: Where a window begins: an index of each axis, or a number of elements in row-major order.
OffsetLike: TypeAlias = "int | Sequence[int]"
#: Where a file or folder is.
PathLike: TypeAlias = "str | os.PathLike[str]"
#: One axis or several; negative ones count from the end.
AxesLike: TypeAlias = "int | Sequence[int]"
#: Which side the special matrix stands on: 'left' or 'right', or the member or number of it.
SideLike: TypeAlias = "Side | str | int"
#: Which triangle holds the matrix: 'lower' or 'upper', or the member of it.
UploLike: TypeAlias = "Uplo | str"
#: op(A): 'none', 'trans' or 'conj_trans', or the member, number or truth of it.
TransLike: TypeAlias = "Trans | str | int | bool"
#: Whether the diagonal is read ('non_unit') or taken as ones ('unit'), or the member or number of it.
DiagLike: TypeAlias = "Diag | str | int"
