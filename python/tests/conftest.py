"""Tests run on whatever device is the default; those about the CPU's own kernels say so."""

import pytest

import cuop
from rank_ports import reserved_ports


@pytest.fixture
def master_port():
    """A MASTER_PORT for one job, which no other test has while this one runs."""
    with reserved_ports() as port:
        yield str(port)


@pytest.fixture
def own_cache(tmp_path):
    """A folder of the test's own for what is compiled and chosen; the configuration comes back."""
    before = cuop.get_global_jit_config()
    cuop.set_global_jit_config(cuop.GlobalJITConfig(cache_dir=str(tmp_path / "cache")))
    yield
    cuop.set_global_jit_config(before)


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
