"""Tests that need a GPU: marked as such, skipped and counted where there is none."""

import pytest

import cuop


def pytest_collection_modifyitems(items):
    absent = cuop.device_count("cuda") == 0
    for item in items:
        if "/gpu/" not in str(item.path):
            continue
        item.add_marker(pytest.mark.gpu)
        if absent:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA GPU"))
