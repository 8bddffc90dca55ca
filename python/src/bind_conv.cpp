#include "binders.h"
#include "cuop/backend/cpu/dnn.h"
#include "cuop/core/text.h"
#include "cuop/ops/conv/conv.h"
#include "library_info.h"

namespace cuop::python {

namespace {

using Convolution = Tensor (*)(const Tensor&, const Tensor&, const Tensor*, const ConvOptions&,
                               const Tensor*);

void bind(Module& m, const char* name, Convolution convolution, const char* axes) {
  const std::string doc =
      cat("Cross-correlation of x [N, C, ", axes, "] with w [O, C / groups, kernel] plus bias [O].",
          R"(

stride, padding (zeros on both sides) and dilation are one number or one for each spatial axis. The
result is [N, O, out] with out = (in + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1.
x, w and bias share one dtype, any but bool: float16 and bfloat16 are computed in float32, integers
wrap. variant: 'auto', 'onednn' (float32, where oneDNN is installed), 'gemm' (patches and matrix
products; no integers), 'direct' (loops over the padded image; on the CPU no complex dtypes) or, on
a GPU, 'cudnn' (floating dtypes) or 'split' (float32 on the matrix units of compute capability 9.0, by
three bfloat16 parts of each element and as accurate as sums in float32; one group, at most 64 elements
of the kernel), which 'auto' takes where it is expected or known to be faster. activation: 'none', or
'relu' for 0 in place of negative results (NaN stays; not for complex dtypes), on a GPU in the same
pass over memory where there is a kernel for both. Raises ShapeError, DTypeError, and ExecutionError for a variant that cannot run.)");
  m.def(
      name,
      [convolution, name](Arg<Tensor> x, Arg<Tensor> w, std::optional<Arg<Tensor>> bias,
                          Arg<Shape> stride, Arg<Shape> padding, Arg<Shape> dilation,
                          int64_t groups, std::string_view variant, std::string_view activation,
                          std::optional<Tensor> out) {
        const ConvOptions options{*stride,
                                  *padding,
                                  *dilation,
                                  groups,
                                  parse_conv_variant(variant, name),
                                  nullptr,
                                  parse_conv_activation(activation, name)};
        return convolution(x, w, bias ? bias->operator->() : nullptr, options, pointer(out));
      },
      "x"_a, "w"_a, "bias"_a = nb::none(), nb::kw_only(), "stride"_a = 1, "padding"_a = 0,
      "dilation"_a = 1, "groups"_a = 1, "variant"_a = "auto", "activation"_a = "none",
      "out"_a = nb::none(), ReturnsOut(), Released(), doc.c_str());
}

}  // namespace

void bind_conv(Module& m) {
  bind(m, "conv1d", &conv1d, "length");
  bind(m, "conv2d", &conv2d, "height, width");
  bind(m, "conv3d", &conv3d, "depth, height, width");
  m.def(
      "conv_variant",
      [](Arg<Tensor> x, Arg<Tensor> w, Arg<Shape> stride, Arg<Shape> padding, Arg<Shape> dilation,
         int64_t groups, std::string_view variant) {
        return name(conv_variant(
            x, w,
            {*stride, *padding, *dilation, groups, parse_conv_variant(variant, "conv_variant"),
             nullptr, ConvActivation::kNone}));
      },
      "x"_a, "w"_a, nb::kw_only(), "stride"_a = 1, "padding"_a = 0, "dilation"_a = 1,
      "groups"_a = 1, "variant"_a = "auto",
      "The variant that a convolution of these arguments runs: 'onednn', 'gemm',\n"
      "'direct', 'cudnn' or 'split'.");
  m.def(
      "dnn_info", [] { return library_info(backend::dnn::info()); },
      "The CPU's oneDNN library: a dict of available, version, path and, when there is none, the "
      "reason.");
}

}  // namespace cuop::python
