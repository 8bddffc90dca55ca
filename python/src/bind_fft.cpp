#include "binders.h"
#include "cuop/backend/cpu/fft.h"
#include "cuop/ops/fft/fft.h"

namespace cuop::python {

namespace {

using OptionalDims = std::optional<Arg<Shape>>;

FftNorm norm_of(const std::optional<std::string>& text, const char* who) {
  return text ? parse_fft_norm(*text, who) : FftNorm::kBackward;
}

struct OneAxis {
  const char* name;
  Tensor (*function)(const Tensor&, FftSize, int64_t, FftNorm, const Tensor*);
  const char* what;
};
constexpr OneAxis kOneAxis[] = {
    {"fft", &fft, "Discrete Fourier transform along `axis`, cut or zero-padded to `n`."},
    {"ifft", &ifft, "Inverse of fft (scaled by 1/n unless `norm` says otherwise)."},
    {"rfft", &rfft, "Transform of real input: the n//2+1 outputs of non-negative frequency."},
    {"irfft", &irfft, "Inverse of rfft; `n` real outputs, 2 (m - 1) for m inputs by default."},
    {"hfft", &hfft,
     "Real spectrum of a signal that is its own mirrored conjugate, of which x has the first half: "
     "`n` outputs, 2 (m - 1) for m inputs by default."},
    {"ihfft", &ihfft, "Inverse of hfft: the n//2+1 first elements of the signal."}};

struct ManyAxes {
  const char* name;
  Tensor (*function)(const Tensor&, const FftDims&, const FftDims&, FftNorm, const Tensor*);
  const char* what;
  bool is_2d;
};
constexpr ManyAxes kManyAxes[] = {
    {"fftn", &fftn, "Transform along several axes, of lengths `s` (-1: as they are).", false},
    {"ifftn", &ifftn, "Inverse of fftn.", false},
    {"rfftn", &rfftn, "Transform of real input: rfft along the last axis, fft along the others.",
     false},
    {"irfftn", &irfftn, "Inverse of rfftn.", false},
    {"fft2", &fft2, "fftn along the last two axes.", true},
    {"ifft2", &ifft2, "ifftn along the last two axes.", true},
    {"rfft2", &rfft2, "rfftn along the last two axes.", true},
    {"irfft2", &irfft2, "irfftn along the last two axes.", true}};

constexpr const char* kCommon =
    "\n\nNumPy's arguments and results: `norm` is 'backward', 'forward' or 'ortho'. complex64 (or "
    "float32) for float32, complex64 and the 16-bit floats, complex128 (or float64) otherwise. Any "
    "strides and any length of at least 1. Raises ShapeError for a bad axis or length, DTypeError "
    "for complex input where real is needed, DeviceError when no FFT library was found.";

void bind_transforms(Module& m) {
  for (const OneAxis& row : kOneAxis) {
    m.def(
        row.name,
        [row](Arg<Tensor> x, FftSize n, int64_t axis, std::optional<std::string> norm,
              std::optional<Tensor> out) {
          return row.function(x, n, axis, norm_of(norm, row.name), pointer(out));
        },
        "x"_a, "n"_a = nb::none(), "axis"_a = -1, "norm"_a = nb::none(), "out"_a = nb::none(),
        ReturnsOut(), Released(), (std::string(row.what) + kCommon).c_str());
  }
  for (const ManyAxes& row : kManyAxes) {
    const nb::object axes = row.is_2d ? nb::object(nb::make_tuple(-2, -1)) : nb::object(nb::none());
    m.def(
        row.name,
        [row](Arg<Tensor> x, OptionalDims s, OptionalDims axes_given,
              std::optional<std::string> norm, std::optional<Tensor> out) {
          return row.function(x, converted(s), converted(axes_given), norm_of(norm, row.name),
                              pointer(out));
        },
        "x"_a, "s"_a = nb::none(), "axes"_a = axes, "norm"_a = nb::none(), "out"_a = nb::none(),
        ReturnsOut(), Released(), (std::string(row.what) + kCommon).c_str());
  }
}

struct RealTransform {
  const char* name;
  Tensor (*function)(const Tensor&, int64_t, const Tensor*);
  const char* what;
};
constexpr RealTransform kRealTransforms[] = {
    {"dst1", dst1,
     "Sine transform of type I of real input, unscaled: 2 sum_j x[j] sin(pi (j+1)(k+1)/(n+1)). "
     "Applied twice it gives 2 (n+1) x."},
    {"dct1", dct1,
     "Cosine transform of type I of real input of at least 2 elements, unscaled. Applied twice it "
     "gives 2 (n-1) x."},
    {"dct2", dct2,
     "Cosine transform of type II of real input, unscaled: 2 sum_j x[j] cos(pi (2 j + 1) k / (2 "
     "n)). dct3 of it is 2 n x."},
    {"dct3", dct3,
     "Cosine transform of type III of real input, unscaled: x[0] + 2 sum_{j>0} x[j] cos(pi j (2 k "
     "+ "
     "1) / (2 n)). dct2 of it is 2 n x."},
};

void bind_real_transforms(Module& m) {
  for (const RealTransform& row : kRealTransforms) {
    m.def(
        row.name,
        [row](Arg<Tensor> x, int64_t axis, std::optional<Tensor> out) {
          return row.function(x, axis, pointer(out));
        },
        "x"_a, "axis"_a = -1, "out"_a = nb::none(), ReturnsOut(), Released(), row.what);
  }
}

}  // namespace

void bind_fft(Module& m) {
  Module fft_module(m.def_submodule("fft", "Discrete Fourier transforms."));
  bind_transforms(fft_module);
  bind_real_transforms(fft_module);
  fft_module.def(
      "fftfreq",
      [](int64_t n, double d) {
        check_count(n, DType::kFloat64, "fftfreq: n");
        return fftfreq(n, d);
      },
      "n"_a, "d"_a = 1.0,
      "Frequencies of an n-point transform with sample spacing d, in cycles per unit (float64).");
  fft_module.def(
      "rfftfreq",
      [](int64_t n, double d) {
        check_count(n, DType::kFloat64, "rfftfreq: n");
        return rfftfreq(n, d);
      },
      "n"_a, "d"_a = 1.0, "The n//2+1 frequencies of rfft with sample spacing d (float64).");
  fft_module.def(
      "fftshift", [](Arg<Tensor> x, OptionalDims axes) { return fftshift(x, converted(axes)); },
      "x"_a, "axes"_a = nb::none(), Released(), "Moves frequency 0 to the middle of the axes.");
  fft_module.def(
      "ifftshift", [](Arg<Tensor> x, OptionalDims axes) { return ifftshift(x, converted(axes)); },
      "x"_a, "axes"_a = nb::none(), Released(), "Inverse of fftshift.");
  m.def(
      "fft_info",
      [] {
        const backend::FftInfo info = backend::fft_info();
        return std::pair(info.is_available, info.description);
      },
      "Whether an FFT library was found for the CPU, and which or why not.");
}

}  // namespace cuop::python
