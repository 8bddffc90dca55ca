"""A typed program over cuOP: tools/check_stubs.sh has mypy check it strictly, and pytest runs it.

The lines with an ignore are wrong on purpose: mypy complains of an ignore that it does not need, so
they prove that the stubs refuse what they should.
"""

from collections.abc import Callable
from typing import assert_type

import numpy as np

import cuop
from cuop.dist import DistTensor
from cuop.typing import ArrayLike


def make() -> cuop.Tensor:
    x = cuop.zeros((2, 3), dtype="float32")
    assert_type(x, cuop.Tensor)
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.dtype, cuop.dtype)
    return x


def methods(x: cuop.Tensor) -> cuop.Tensor:
    assert_type(x.transpose(1, 0).exp().round(2).real, cuop.Tensor)
    assert_type(cuop.unique_all(x).inverse_indices, cuop.Tensor)
    assert_type(cuop.unstack(x), tuple[cuop.Tensor, ...])
    assert_type(cuop.finfo(x).eps, float)
    assert_type(cuop.result_type(x, "int8", 1.5), cuop.dtype)
    return x[:, cuop.newaxis].clip(max=cuop.pi)


def in_parts(x: DistTensor) -> DistTensor:
    assert_type(cuop.relu(2 * x + 1), DistTensor)
    assert_type(cuop.where(x > 0, x, 0), DistTensor)
    assert_type(cuop.add(make(), 1), cuop.Tensor)
    assert_type(cuop.einsum("ij,ij->", make(), np.ones((2, 3))), cuop.Tensor)
    assert_type(cuop.dist.einsum("ij->ji", x), DistTensor)
    return x[1:].fft2d().sum(axis=0)


def accept(values: ArrayLike) -> cuop.Tensor:
    return cuop.tensor(values, dtype=np.float64)


def refuse() -> list[Callable[[], object]]:
    return [
        lambda: cuop.zeros("three"),  # type: ignore[arg-type]
        lambda: cuop.eye("three"),  # type: ignore[arg-type]
        lambda: cuop.zeros(3, dtype="float32", devise="cpu"),  # type: ignore[call-arg]
    ]


def main() -> None:
    assert make().size == 6 and methods(make()).shape == (2, 1, 3)
    for values in ([[1, 2], [3, 4]], np.ones(3), 2.5, make()):
        assert accept(values).dtype == cuop.float64
    for call in refuse():
        try:
            call()
        except (cuop.Error, TypeError):
            continue
        raise AssertionError("a wrongly typed call went through")


if __name__ == "__main__":
    main()
