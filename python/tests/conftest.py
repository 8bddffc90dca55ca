"""Tests run on whatever device is the default; those about the CPU's own kernels say so."""

import pytest

import cuop


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Tests marked `cpu` make their tensors there, also where a GPU is the default."""
    if item.get_closest_marker("cpu") is None:
        return (yield)
    before = cuop.current_device()
    cuop.set_current_device("cpu")
    try:
        return (yield)
    finally:
        cuop.set_current_device(before)
