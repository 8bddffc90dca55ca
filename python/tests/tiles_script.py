"""What runs under mpirun: arrays of rank 0's host, larger than what a device may use."""

import contextlib
import os
import tempfile

import numpy as np

import cuop
from cuop import executor, npy
from distributed_gpu import MPIError
from distributed_gpu.auto_executor import AutoExecutor


def blamed_for_a_lost_file(auto):
    """Whom the error of a call names whose array's file is cut off; None where there is none, as on
    ranks that got their parts in messages."""
    x = blamed = None
    if auto.is_master:
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "x.npy")
            np.save(path, np.ones((1024, 512)))
            x = npy.load(path)
            os.truncate(path, 4096)
    try:
        auto.sum(x, dim=1)
    except MPIError as error:
        blamed = error.rank
    with contextlib.suppress(cuop.FileError):  # of what rank 0 itself read of it meanwhile
        cuop.zeros(1)
    return blamed


def main():
    auto = AutoExecutor(verbose=False, max_per_gpu_gb=48 / 2**20)
    whole = AutoExecutor(verbose=False)
    root = auto.is_master
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((150, 110)), rng.standard_normal((110, 130))
    line = rng.standard_normal(6000) + 1j * rng.standard_normal(6000)

    def given(*arrays):
        return arrays if root else [None] * len(arrays)

    def check(result, expected, tolerance=1e-11):
        assert (result is None) != root
        if root:
            np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)

    check(auto.matmul(*given(a, b)), a @ b)
    report = auto.last_report
    assert report.peak <= report.plan.limit == 48 * 1024
    check(auto.matmul(*given(a.T[::2], a[:, ::3])), a.T[::2] @ a[:, ::3])
    turned = np.asfortranarray(a)
    check(auto.add(*given(turned, turned[::-1])), a + a[::-1])
    into = np.zeros((130, 150)).T  # of another order than its tiles
    out = {"out": cuop.asarray(into)} if root else {}
    executor.run(auto.mpi.comm, executor.matmul(), given(turned, b), memory_limit=48 * 1024, **out)
    check(into if root else None, a @ b)
    into = np.zeros((150, 260))[:, ::2]  # rank 0's own memory, between elements that stay
    out = {"out": cuop.asarray(into)} if root else {}
    executor.run(auto.mpi.comm, executor.matmul(), given(a, b), memory_limit=48 * 1024, **out)
    check(into if root else None, a @ b)
    assert not root or not into.base[:, 1::2].any()
    check(auto.sum(*given(a), dim=1), a.sum(1))
    check(auto.sum(*given(line), mode="exact"), line.sum())
    check(auto.transpose(*given(a)), a.T)
    check(auto.rfft(*given(a)), np.fft.rfft(a))
    check(auto.fft2d(*given(a)), np.fft.fft2(a))
    check(auto.fft(*given(line)), np.fft.fft(line), 1e-10)
    check(auto.rfft(*given(line.real)), np.fft.rfft(line.real), 1e-10)
    assert auto.last_report.passes == 2
    sweeps = {"boundary": "periodic", "iterations": 7}
    check(auto.stencil_2d(*given(a), **sweeps), whole.stencil_2d(*given(a), **sweeps), 0)
    u, info = auto.jacobi_2d(*given(a, a), iterations=9, return_info=True)
    check(u, whole.jacobi_2d(*given(a, a), iterations=9), 0)
    assert info.sweeps == 9
    try:
        auto.matmul(*given(a, a))
    except MPIError as error:
        assert "do not fit" in str(error)
    else:
        raise AssertionError("shapes that do not fit were multiplied")
    parts = auto.matmul(*given(a, b), return_on_cpu=False)
    np.testing.assert_allclose(cuop.asarray(parts.gather_all()).to_numpy(), a @ b, rtol=1e-11)
    blamed = auto.mpi.comm.all_gather(blamed_for_a_lost_file(auto))
    assert blamed[0] == 0 and set(blamed) <= {0, None}, blamed
    print(f"[rank {auto.mpi.get_rank()}] passed", flush=True)


if __name__ == "__main__":
    main()
