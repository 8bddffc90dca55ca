"""Whatever arguments do while they are converted, a call uses what it was given."""

import gc

import numpy as np
import pytest
from fresh_process import run_with

import cuop

pytestmark = pytest.mark.cpu

JOINS = [cuop.stack, cuop.concatenate, cuop.concat]


class Scribbler:
    """An integer that fills memory which was given back before it is asked for its value."""

    def __init__(self, value=0):
        self.value = value

    def __index__(self):
        gc.collect()
        self.kept = [cuop.full((3, 5), 7.0) for _ in range(500)]
        return self.value


class Fleeting:
    """A sequence that makes its tensors anew whenever it is asked for one."""

    def __len__(self):
        return 4

    def __getitem__(self, i):
        if not 0 <= i < 4:
            raise IndexError
        return cuop.full((2, 3), float(i))


class Shrinking:
    """An array that empties the list which it is in while it is converted."""

    def __init__(self, owner):
        self.owner = owner

    def __array__(self, dtype=None, copy=None):
        self.owner.clear()
        Scribbler().__index__()
        return np.zeros((2, 3), np.float32)


@pytest.mark.parametrize("join", JOINS)
def test_the_items_of_a_sequence_live_as_long_as_the_call(join):
    expected = (np.stack if join is cuop.stack else np.concatenate)(
        [np.full((2, 3), float(i), np.float32) for i in range(4)]
    )
    np.testing.assert_array_equal(join(Fleeting(), Scribbler()).numpy(), expected)
    np.testing.assert_array_equal(join(tuple(Fleeting()), Scribbler()).numpy(), expected)


def test_a_tensor_is_a_sequence_of_its_rows():
    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    np.testing.assert_array_equal(cuop.stack(cuop.asarray(x), Scribbler()).numpy(), x)
    np.testing.assert_array_equal(cuop.concat(cuop.asarray(x), Scribbler()).numpy(), x.ravel())


@pytest.mark.parametrize("join", JOINS)
def test_a_list_that_shrinks_while_it_is_converted_is_taken_as_it_was(join):
    tensors = []
    tensors.append(Shrinking(tensors))
    tensors.extend(cuop.full((2, 3), float(i)) for i in range(1, 6))
    assert join(tensors, Scribbler()).numpy().sum() == 6 * 15
    assert tensors == []


class Popping:
    """An integer that takes the others out of its list when it is asked for its value."""

    def __init__(self, owner, value):
        self.owner, self.value = owner, value

    def __index__(self):
        del self.owner[:]
        gc.collect()
        return self.value


def test_lists_of_numbers_that_shrink():
    def shrinking(*values):
        numbers = list(values[1:])
        numbers.insert(0, Popping(numbers, values[0]))
        return numbers

    # Shapes are read entry by entry; what fits in the list at that moment is what is taken.
    assert cuop.zeros(shrinking(2, 3)).shape in [(2,), (2, 3)]
    assert cuop.ones(4).__dlpack__(max_version=(1, 0), dl_device=shrinking(1, 0)) is not None


def test_placing_looks_at_items_that_it_holds():
    """Looking for a GPU's array among the arguments asks the items of lists, which may change."""

    class Odd:
        def __init__(self, owner):
            self.owner = owner

        def __getattr__(self, name):
            self.owner.clear()
            Scribbler().__index__()
            raise AttributeError(name)

    arrays = []
    arrays.append(Odd(arrays))
    arrays.extend(np.ones(3) for _ in range(5))
    with pytest.raises(cuop.DTypeError):
        cuop.stack(arrays)


def test_joins_of_fleeting_tensors_in_a_process_that_checks_its_heap():
    """glibc overwrites what is freed, so that a stale pointer is no luck of the layout."""
    code = """
import cuop, numpy as np
for n in range(1, 40):
    x = np.arange(n * n, dtype=np.float64).reshape(n, n)
    assert np.array_equal(cuop.stack(cuop.asarray(x)).numpy(), x)
    assert np.array_equal(cuop.concat(cuop.asarray(x)).numpy(), x.ravel())
print("same")
"""
    done = run_with({"MALLOC_PERTURB_": "165", "PYTHONMALLOC": "malloc"}, code)
    assert (done.returncode, done.stdout) == (0, "same\n"), done.stderr
