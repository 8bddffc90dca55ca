"""What is said where a machine has a GPU but lacks one of the vendor's libraries, and of those found."""

import os
from pathlib import Path

import pytest
from processes import python, simulated

# Its file, what needs it, the package that brings it.
LIBRARIES = {
    "cuBLAS": ("libcublas.so.13", "cuop.symm(x, x)", "nvidia-cublas"),
    "cuBLASLt": ("libcublasLt.so.13", "cuop.matmul(x, x)", "nvidia-cublas"),
    "cuFFT": ("libcufft.so.12", "cuop.fft.fft(x)", "nvidia-cufft"),
    "cuSPARSE": ("libcusparse.so.12", "cuop.to_sparse(x) @ x", "nvidia-cusparse"),
    "cuDNN": ("libcudnn.so.9", "cuop.conv2d(y, y, variant='cudnn')", "nvidia-cudnn-cu13"),
}


def folder_without(missing, at, has_another):
    """A folder of the simulated libraries but one, or with another library under its name."""
    for library in Path(os.environ["LD_LIBRARY_PATH"]).glob("lib*.so.*"):
        if library.name != missing:
            (at / library.name).symlink_to(library)
    if has_another:
        (at / missing).symlink_to(at / "libcuda.so.1")
    return str(at)


@simulated
@pytest.mark.parametrize("has_another", [False, True])
@pytest.mark.parametrize("title", LIBRARIES)
def test_a_missing_library_is_named_with_what_brings_it_and_the_ways_to_the_cpu(
    title, has_another, tmp_path
):
    file, use, package = LIBRARIES[title]
    folder = folder_without(file, tmp_path, has_another)
    lines, _ = python(
        f"""
import cuop
print([part.is_found for part in cuop.system_info() if part.name == {title!r}])
x, y = cuop.ones((64, 64), device="cuda"), cuop.ones((1, 1, 4, 4), device="cuda")
try:
    {use}
except (cuop.DeviceError, cuop.ExecutionError) as error:
    print(error)
print(x.to("cpu").sum().item())
""",
        CUOP_LIBRARY_PATH=folder,
        LD_LIBRARY_PATH=folder,
    )
    if lines[0] == "[True]" and not has_another:
        pytest.skip(f"this machine has a {title} of its own")
    assert title in lines[1] and ("has no symbol" if has_another else "not found") in lines[1]
    assert f"install the Python package {package} (for CUDA 12: " in lines[1]
    assert f"CUOP_LIBRARY_PATH to the folder of {file}" in lines[1]
    assert lines[1].endswith(
        "to('cpu') moves a tensor to the CPU, CUOP_DEVICE=cpu keeps the process there"
    )
    assert lines[2] == "4096.0"


@simulated
def test_info_tells_the_version_of_a_library_that_says_it_part_by_part():
    lines, _ = python(
        "import cuop; print([p.detail for p in cuop.system_info() if p.name == 'cuBLAS'])"
    )
    assert lines[0].endswith("libcublas.so.13 13.2.1']")
