// The operator objects of neural networks.
#include "binders.h"
#include "cuop/operators/activations.h"
#include "cuop/operators/convolution.h"
#include "cuop/operators/normalisation.h"
#include "cuop/operators/pooling.h"
#include "cuop/operators/windows.h"
#include "operator_class.h"

namespace cuop::python {

namespace {

using OptionalInt = std::optional<int64_t>;

void bind_activations(Module& m) {
  bind_jit_operator<Relu>(m, "Relu", "y <- max(x, 0); NaN stays NaN.", [](auto& c) {
    c.def(nb::init<>());
    def_map(c, "x", "y", "Fills y, which may be x, and returns it.");
  });
  bind_jit_operator<Softmax>(
      m, "Softmax", "y <- exp(x) / sum(exp(x)) along one axis, without overflow.", [](auto& c) {
        c.def(nb::init<>());
        def_map<int64_t>(c, "x", "y", "Fills y, which may be x, and returns it.", "axis"_a = -1);
      });
}

void bind_normalisation(Module& m) {
  bind_jit_operator<BatchNorm>(
      m, "BatchNorm",
      "Normalises each channel of x [N, C] or [N, C, ...] by its running statistics, or after "
      "train(True) by its own, which then move the running ones. Parameters [C] that are not set: "
      "gamma 1, beta 0, running mean 0, running variance 1.",
      []<class Op>(OperatorClass<Op>& c) {
        c.def(nb::init<double, double>(), "eps"_a = 1e-5, "momentum"_a = 0.1);
        def_setter<&Op::set_gamma>(c, "set_gamma", "gamma", "Copies the scale [C].");
        def_setter<&Op::set_beta>(c, "set_beta", "beta", "Copies the shift [C].");
        def_setter<&Op::set_running_mean>(c, "set_running_mean", "mean", "Copies [C] means.");
        def_setter<&Op::set_running_var>(c, "set_running_var", "variance", "Copies [C] variances.");
        const auto statistic = [](Tensor tensor) {
          return tensor.is_defined() ? std::optional(tensor) : std::nullopt;
        };
        c.def(
            "get_running_mean", [statistic](const Op& op) { return statistic(op.running_mean()); },
            "A copy of the running mean; None before it is set or a training step made it.");
        c.def(
            "get_running_var", [statistic](const Op& op) { return statistic(op.running_var()); },
            "A copy of the running variance; None before it is set or a training step made it.");
        c.def(
            "train", [](Op& op, bool is_training) { guarded(op, [&] { op.train(is_training); }); },
            "is_training"_a = true, "Chooses training (True) or inference.");
        def_map(c, "x", "y", "Fills y, which may be x, and returns it.");
      });
  bind_jit_operator<LayerNorm>(
      m, "LayerNorm",
      "(x - mean) / sqrt(var + eps) gamma + beta, over the trailing dimensions that gamma has, or "
      "over all but the first for a gamma with one entry a channel. Where gamma is not set it is 1 "
      "in "
      "the shape of beta, or over the last dimension when neither is set; beta is 0 where not set.",
      []<class Op>(OperatorClass<Op>& c) {
        c.def(nb::init<double>(), "eps"_a = 1e-5);
        def_setter<&Op::set_gamma>(c, "set_gamma", "gamma", "Copies the scale.");
        def_setter<&Op::set_beta>(c, "set_beta", "beta", "Copies the shift.");
        def_map(c, "x", "y", "Fills y, which may be x, and returns it.");
      });
}

void bind_images(Module& m) {
  bind_jit_operator<Convolution2D>(
      m, "Convolution2D",
      "y <- conv2d(x [N, I, H, W], weight [O, I / groups, kh, kw]) + bias [O], with 0 in place of "
      "negative results for the activation 'relu'.",
      []<class Op>(OperatorClass<Op>& c) {
        c.def(
            "__init__",
            [](Op* self, int64_t in_channels, int64_t out_channels, int64_t kernel_h,
               int64_t kernel_w, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w,
               int64_t dilation_h, int64_t dilation_w, int64_t groups,
               std::string_view activation) {
              new (self)
                  Op(Convolution2DOptions{in_channels, out_channels, kernel_h, kernel_w, stride_h,
                                          stride_w, pad_h, pad_w, dilation_h, dilation_w, groups,
                                          parse_conv_activation(activation, "Convolution2D")});
            },
            "in_channels"_a, "out_channels"_a, "kernel_h"_a, "kernel_w"_a, "stride_h"_a = 1,
            "stride_w"_a = 1, "pad_h"_a = 0, "pad_w"_a = 0, "dilation_h"_a = 1, "dilation_w"_a = 1,
            "groups"_a = 1, "activation"_a = "none");
        def_setter<&Op::set_weight>(c, "set_weight", "weight",
                                    "Copies the weight [O, I / groups, kh, kw].");
        def_setter<&Op::set_bias>(c, "set_bias", "bias", "Copies the bias [O].");
        def_map<OptionalInt, OptionalInt>(c, "x", "y",
                                          "Fills y and returns it; the padding may be overridden.",
                                          "pad_h"_a = nb::none(), "pad_w"_a = nb::none());
      });
  const auto def_pool = []<class Op>(OperatorClass<Op>& c) {
    c.def(
        "__init__",
        [](Op* self, OptionalInt kernel_h, OptionalInt kernel_w, OptionalInt stride_h,
           OptionalInt stride_w, int64_t pad_h, int64_t pad_w) {
          new (self) Op(Pool2DOptions{kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w});
        },
        "kernel_h"_a = nb::none(), "kernel_w"_a = nb::none(), "stride_h"_a = nb::none(),
        "stride_w"_a = nb::none(), "pad_h"_a = 0, "pad_w"_a = 0);
    def_calls<1, InputObject, OutputObject, OptionalInt, OptionalInt, OptionalInt, OptionalInt,
              OptionalInt, OptionalInt>(
        c,
        [](const Operator& op, const char* output, InputObject x, OutputObject y,
           OptionalInt kernel_h, OptionalInt kernel_w, OptionalInt stride_h, OptionalInt stride_w,
           OptionalInt pad_h, OptionalInt pad_w) {
          return std::tuple(operator_input(x, op), operator_output(y, output),
                            Pool2DOptions{kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w});
        },
        "Fills y and returns it. What is given here wins over the constructor's; the stride is the "
        "window where neither gives one.",
        "x"_a, "y"_a, "kernel_h"_a = nb::none(), "kernel_w"_a = nb::none(),
        "stride_h"_a = nb::none(), "stride_w"_a = nb::none(), "pad_h"_a = nb::none(),
        "pad_w"_a = nb::none());
  };
  bind_operator<MaxPool2D>(m, "MaxPool2D", "The largest element of each window of [N, C, H, W].",
                           def_pool);
  bind_operator<AveragePool2D>(m, "AveragePool2D",
                               "The mean of each window of [N, C, H, W]; padding counts as zeros.",
                               def_pool);
  const auto def_global = [](auto& c) {
    c.def(nb::init<>());
    def_map(c, "x", "y", "Fills y [N, C, 1, 1] or [N, C] and returns it.");
  };
  bind_operator<GlobalMaxPool2D>(m, "GlobalMaxPool2D", "The largest element of each channel.",
                                 def_global);
  bind_operator<GlobalAveragePool2D>(m, "GlobalAveragePool2D", "The mean of each channel.",
                                     def_global);
}

void bind_windows(Module& m) {
  bind_operator<Flatten>(
      m, "Flatten", "y <- x with the axes from start_dim on merged into one.", [](auto& c) {
        c.def(nb::init<int64_t>(), "start_dim"_a = 0);
        def_map<OptionalInt>(
            c, "x", "y",
            "Fills y, which may be x's memory, and returns it. Without start_dim the "
            "constructor's is used, or 1 when the shape of y asks for that.",
            "start_dim"_a = nb::none());
      });
  bind_operator<View>(
      m, "View",
      "y <- the window of x that begins at an offset: one index of each axis, or a number of "
      "elements (row-major), from which on x is taken under a new shape.",
      []<class Op>(OperatorClass<Op>& c) {
        c.def(nb::init<>());
        c.def(
            "set_offset",
            [](Op& op, Arg<WindowOffset> offset) { guarded(op, [&] { op.set_offset(*offset); }); },
            "offset"_a,
            "Where the window begins: an index of each axis, or the number of elements before it.");
        c.def(
            "set_shape",
            [](Op& op, Arg<Shape> shape) { guarded(op, [&] { op.set_shape(*shape); }); }, "shape"_a,
            "Shape of the window.");
        def_calls<1, InputObject, OutputObject, std::optional<Arg<WindowOffset>>,
                  std::optional<Arg<Shape>>>(
            c,
            [](const Operator& op, const char* output, InputObject x, OutputObject y,
               const std::optional<Arg<WindowOffset>>& offset,
               const std::optional<Arg<Shape>>& shape) {
              return std::tuple(operator_input(x, op), operator_output(y, output),
                                converted(offset), converted(shape));
            },
            "Copies the window to y and returns y. Offset and shape given here win over those "
            "that were set; without any shape it is that of y.",
            "x"_a, "y"_a, "offset"_a = nb::none(), "shape"_a = nb::none());
      });
}

}  // namespace

void bind_network_operators(Module& m) {
  bind_activations(m);
  bind_normalisation(m);
  bind_images(m);
  bind_windows(m);
}

}  // namespace cuop::python
