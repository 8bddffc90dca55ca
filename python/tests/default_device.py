"""What tests ask of the device on which tensors are made, the host's or a GPU."""

import pytest

import cuop

ON_GPU = cuop.current_device() != cuop.Device("cpu")
#: How many devices one process drives.
DEVICES = cuop.get_device_count() if ON_GPU else 1


def on_the_host(reason):
    """Marks a test that is not for GPUs."""
    return pytest.mark.skipif(ON_GPU, reason=reason)
