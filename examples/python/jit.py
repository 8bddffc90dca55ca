"""JIT wrappers around operators, their configuration and profile, and fused functions."""

import tempfile

import numpy as np

import cuop

cuop.manual_seed(2)

a, b = cuop.random((256, 256)), cuop.random((256, 256))
c = cuop.zeros((256, 256))
with tempfile.TemporaryDirectory() as folder:
    gemm = cuop.JITGemmFloat()
    gemm.enable_jit(True)
    gemm.enable_persistent_cache(True)
    gemm.set_persistent_cache_directory(folder)
    config = cuop.get_default_jit_config()
    config.kernel_type = "auto"
    config.optimization_level = "auto"
    gemm.set_jit_config(config)
    gemm.set_weight(b)
    for _ in range(5):
        gemm.forward(a, c)
    np.testing.assert_allclose(c.to_numpy(), a.to_numpy() @ b.to_numpy(), rtol=1e-4, atol=1e-3)
    profile, statistics = gemm.get_performance_profile(), gemm.get_statistics()
    print(
        f"gemm: {profile.execution_time:.3f} ms, {profile.gflops:.1f} GFLOP/s, {profile.kernel_type}"
    )
    print("statistics:", statistics)


# One pass over memory instead of five, with the same values.
def chain(x, y):
    return cuop.relu((x * y + x) * 2.0 - y)


x, y = cuop.random((1 << 16,)), cuop.random((1 << 16,))
fused = cuop.fuse(chain)
np.testing.assert_array_equal(fused(x, y).to_numpy(), chain(x, y).to_numpy())
print(cuop.explain(chain, x, y))

cuop.set_kernel_fusion(False)
np.testing.assert_array_equal(fused(x, y).to_numpy(), chain(x, y).to_numpy())
cuop.set_kernel_fusion(True)
print("jit: all checks hold")
