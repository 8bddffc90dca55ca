"""Tests that need a GPU: marked as such, skipped and counted where there is none."""

import pytest

import cuop


@pytest.fixture(autouse=True)
def cpu_unless_named():
    """What these tests compare with is the CPU's; they name the GPU where they mean it."""
    before = cuop.current_device()
    cuop.set_current_device("cpu")
    yield
    cuop.set_current_device(before)


def pytest_collection_modifyitems(items):
    absent = cuop.device_count("cuda") == 0
    for item in items:
        if "/gpu/" not in str(item.path):
            continue
        item.add_marker(pytest.mark.gpu)
        if absent:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA GPU"))
