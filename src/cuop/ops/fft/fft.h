// Discrete Fourier transforms of any length along any axes, with NumPy's arguments and results:
// X[k] = sum_j x[j] exp(-2 pi i j k / n), the inverse with the opposite sign.
//
// Dtypes: complex64 results for float16, bfloat16, float32 and complex64, complex128 for everything
// else; irfft and its relatives give the real type of that. Strides are free. The backward
// transforms are scaled by 1/n unless `norm` says otherwise. Errors: ShapeError for an axis out of
// range or given twice and for a length below 1, DeviceError when no FFT library was found.
#pragma once

#include <optional>
#include <string_view>

#include "cuop/core/tensor.h"

namespace cuop {

/// Which direction carries the factor 1/n: the backward one, the forward one, or both 1/sqrt(n).
enum class FftNorm : uint8_t { kBackward, kForward, kOrtho };
/// "backward", "forward" or "ortho"; ExecutionError otherwise.
FftNorm parse_fft_norm(std::string_view text, const char* who);

using FftSize = std::optional<int64_t>;  ///< length; none takes the axis as it is
using FftDims = std::optional<Dims>;     ///< lengths or axes; none takes NumPy's default

/// One axis, cut or padded with zeros at its end to `n`.
Tensor fft(const Tensor& x, FftSize n = {}, int64_t axis = -1, FftNorm norm = FftNorm::kBackward,
           const Tensor* out = nullptr);
Tensor ifft(const Tensor& x, FftSize n = {}, int64_t axis = -1, FftNorm norm = FftNorm::kBackward,
            const Tensor* out = nullptr);
/// Of real input; only the n/2+1 outputs that are not conjugates of others. DTypeError for complex.
Tensor rfft(const Tensor& x, FftSize n = {}, int64_t axis = -1, FftNorm norm = FftNorm::kBackward,
            const Tensor* out = nullptr);
/// Inverse of rfft; `n` is the length of the real output, 2 (m - 1) for m inputs when not given.
Tensor irfft(const Tensor& x, FftSize n = {}, int64_t axis = -1, FftNorm norm = FftNorm::kBackward,
             const Tensor* out = nullptr);

/// Real spectrum of a signal that is its own mirrored conjugate, of which x has the first half:
/// irfft of conj(x), scaled as a forward transform. `n` outputs, 2 (m - 1) for m inputs by default.
Tensor hfft(const Tensor& x, FftSize n = {}, int64_t axis = -1, FftNorm norm = FftNorm::kBackward,
            const Tensor* out = nullptr);
/// Inverse of hfft: conj(rfft(x)), scaled as a backward transform. DTypeError for complex.
Tensor ihfft(const Tensor& x, FftSize n = {}, int64_t axis = -1, FftNorm norm = FftNorm::kBackward,
             const Tensor* out = nullptr);

/// Several axes. `s` holds the lengths (-1: as it is) and `axes` the axes they belong to; without
/// `axes` the last len(s) axes, without both all of them.
Tensor fftn(const Tensor& x, const FftDims& s = {}, const FftDims& axes = {},
            FftNorm norm = FftNorm::kBackward, const Tensor* out = nullptr);
Tensor ifftn(const Tensor& x, const FftDims& s = {}, const FftDims& axes = {},
             FftNorm norm = FftNorm::kBackward, const Tensor* out = nullptr);
/// Real input: rfft along the last of the axes, fft along the others.
Tensor rfftn(const Tensor& x, const FftDims& s = {}, const FftDims& axes = {},
             FftNorm norm = FftNorm::kBackward, const Tensor* out = nullptr);
Tensor irfftn(const Tensor& x, const FftDims& s = {}, const FftDims& axes = {},
              FftNorm norm = FftNorm::kBackward, const Tensor* out = nullptr);

/// The last two axes, unless `axes` names others.
Tensor fft2(const Tensor& x, const FftDims& s = {}, const FftDims& axes = Dims{-2, -1},
            FftNorm norm = FftNorm::kBackward, const Tensor* out = nullptr);
Tensor ifft2(const Tensor& x, const FftDims& s = {}, const FftDims& axes = Dims{-2, -1},
             FftNorm norm = FftNorm::kBackward, const Tensor* out = nullptr);
Tensor rfft2(const Tensor& x, const FftDims& s = {}, const FftDims& axes = Dims{-2, -1},
             FftNorm norm = FftNorm::kBackward, const Tensor* out = nullptr);
Tensor irfft2(const Tensor& x, const FftDims& s = {}, const FftDims& axes = Dims{-2, -1},
              FftNorm norm = FftNorm::kBackward, const Tensor* out = nullptr);

/// Sine and cosine transforms of type I of real input along `axis`, unscaled:
/// dst: X[k] = 2 sum_j x[j] sin(pi (j+1)(k+1) / (n+1)); applied twice it gives 2 (n+1) x.
/// dct: X[k] = x[0] + (-1)^k x[n-1] + 2 sum_{0<j<n-1} x[j] cos(pi j k / (n-1)), n >= 2; twice it
/// gives 2 (n-1) x. float32 for float32 and the 16-bit floats, float64 otherwise.
Tensor dst1(const Tensor& x, int64_t axis = -1, const Tensor* out = nullptr);
Tensor dct1(const Tensor& x, int64_t axis = -1, const Tensor* out = nullptr);
/// Cosine transforms of types II and III, each the other's inverse but for a factor of 2 n, n >= 1:
/// dct2: X[k] = 2 sum_j x[j] cos(pi (2 j + 1) k / (2 n)),
/// dct3: X[k] = x[0] + 2 sum_{0<j<n} x[j] cos(pi j (2 k + 1) / (2 n)).
Tensor dct2(const Tensor& x, int64_t axis = -1, const Tensor* out = nullptr);
Tensor dct3(const Tensor& x, int64_t axis = -1, const Tensor* out = nullptr);

/// Sample frequencies of an n-point transform with sample spacing d, in cycles per unit of d
/// (float64): 0, 1, ..., -1 over n d; rfftfreq holds the n/2+1 non-negative ones.
Tensor fftfreq(int64_t n, double d = 1.0, Device device = kCpu);
Tensor rfftfreq(int64_t n, double d = 1.0, Device device = kCpu);
/// Moves frequency 0 to the middle of each axis (all axes when `axes` is none), and back.
Tensor fftshift(const Tensor& x, const FftDims& axes = {});
Tensor ifftshift(const Tensor& x, const FftDims& axes = {});

}  // namespace cuop
