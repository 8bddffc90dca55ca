#include "binders.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/copy/pinned.h"
#include "cuop/ops/create/create.h"
#include "define_both.h"
#include "exchange.h"

namespace cuop::python {

namespace {

/// Of the floats among the numbers those with a dtype decide, else float32; integers are counted
/// in 64 bits, whatever their dtype, as by NumPy.
DType arange_dtype(std::initializer_list<const TypedScalar*> numbers) {
  std::optional<DType> own;
  bool is_real = false, is_large = false;
  for (const TypedScalar* number : numbers) {
    const auto& [value, dtype] = *number;
    is_real = is_real || value.is_floating();
    is_large = is_large || value.is_large();
    if (dtype && is_floating(*dtype)) own = own ? promote(*own, *dtype) : *dtype;
  }
  if (own) return *own;
  return is_real ? DType::kFloat32 : is_large ? DType::kUInt64 : DType::kInt64;
}

Tensor arange_from(const TypedScalar& start, const std::optional<Arg<TypedScalar>>& stop,
                   const TypedScalar& step, const std::optional<Arg<DType>>& dtype,
                   const OptionalDevice& device) {
  const TypedScalar first = stop ? start : TypedScalar{0};
  const TypedScalar last = stop ? **stop : start;
  const DType natural = arange_dtype({&first, &last, &step});
  return arange(first.value, last.value, step.value, value_or(dtype, natural),
                device_or_current(device));
}

/// What Python's numbers, which have no dtype, become where a tensor is made of them.
DType natural_dtype(const TypedScalar& number) {
  const auto& [value, dtype] = number;
  if (dtype) return *dtype;
  return value.promote_with(value.is_floating() || value.is_complex() ? DType::kFloat32
                                                                      : value.natural_dtype());
}

/// empty_like and its kin: `make(shape, dtype, device)` with what is not given taken from x.
template <class Make, class... Extra>
void bind_like(Module& m, const char* name, Make make, const Extra&... extra) {
  m.def(
      name,
      [make](Arg<Tensor> x, std::optional<Arg<DType>> dtype, OptionalDevice device) {
        return make(x->shape(), value_or(dtype, x->dtype()), value_or(device, x->device()));
      },
      "x"_a, "dtype"_a = nb::none(), "device"_a = nb::none(), extra...);
}

/// Zeros of a dtype after which the operator classes are named.
void define_zeros_of(Module& m, const char* name, DType dtype, const char* doc) {
  m.def(
      name,
      [dtype](Arg<Shape> shape, OptionalDevice device) {
        return zeros(shape, dtype, device_or_current(device));
      },
      "shape"_a, "device"_a = nb::none(), Released(), doc);
}

/// empty and its kin: `make(shape, dtype, device)`.
template <class Make, class... Extra>
void bind_of_shape(Module& m, const char* name, Make make, const Extra&... extra) {
  m.def(
      name,
      [make](Arg<Shape> shape, Arg<DType> dtype, OptionalDevice device) {
        return make(*shape, *dtype, device_or_current(device));
      },
      "shape"_a, "dtype"_a = "float32", "device"_a = nb::none(), extra...);
}

void bind_like_functions(Module& m) {
  bind_like(m, "empty_like", &empty, "Uninitialised tensor of the shape, dtype and device of `x`.");
  bind_like(m, "zeros_like", &zeros, Released(), "Zeros of the shape, dtype and device of `x`.");
  bind_like(m, "ones_like", &ones, Released(), "Ones of the shape, dtype and device of `x`.");
  m.def(
      "full_like",
      [](Arg<Tensor> x, Arg<Scalar> value, std::optional<Arg<DType>> dtype, OptionalDevice device) {
        return full(x->shape(), value, value_or(dtype, x->dtype()), value_or(device, x->device()));
      },
      "x"_a, "fill_value"_a, "dtype"_a = nb::none(), "device"_a = nb::none(), Released(),
      "`fill_value` everywhere in a tensor of the shape, dtype and device of `x`. Raises "
      "OverflowError when the dtype cannot hold it.");
}

void bind_pinned(Module& m) {
  m.def(
      "pin_memory",
      [](Arg<Tensor> tensor, Arg<Device> device) { return pin_memory(tensor, device); }, "tensor"_a,
      "device"_a = "cuda", Released(),
      "A row-major copy of the tensor in page-locked host memory: a tensor of the CPU that copies "
      "from and to the GPU without the driver's staging buffer. Copies are done when their call "
      "returns. The memory goes back to a pool with the last view of it. Raises DeviceError "
      "without the GPU.");
  m.def(
      "release_pinned", [](Arg<Device> device) { return release_pinned(device); },
      "device"_a = "cuda", Released(),
      "Returns idle page-locked memory of the GPU's pool to the system; the number of bytes.");
}

}  // namespace

void bind_create(Module& m) {
  bind_like_functions(m);
  bind_pinned(m);
  m.def(
      "tensor",
      [](nb::handle data, std::optional<Arg<DType>> dtype, OptionalDevice device) {
        return tensor_from(data, converted(dtype), converted(device));
      },
      "data"_a, "dtype"_a = nb::none(), "device"_a = nb::none(),
      "A new tensor with a copy of an array, nested list, number or DLPack producer. Python floats "
      "become float32 and ints int64 unless `dtype` says otherwise, which must hold them "
      "(OverflowError); arrays keep their dtype, or are converted as by `Tensor.to`.");
  m.def(
      "asarray",
      [](nb::handle data, std::optional<Arg<DType>> dtype, OptionalDevice device,
         std::optional<bool> copy) {
        return named_call("asarray", [&] {
          return shared_or_placed(data, converted(dtype), converted(device), copy);
        });
      },
      "data"_a, "dtype"_a = nb::none(), nb::kw_only(), "device"_a = nb::none(),
      "copy"_a = nb::none(),
      nb::sig(
          "def asarray(data: ArrayLike, dtype: DTypeLike | None = None, *, device: DeviceLike | "
          "None = None, copy: bool | None = None) -> Tensor"),
      "The data as a tensor that shares the memory of an array, and so lies where that lies; lists "
      "and numbers go to the current device. With a `dtype` it has that, with a `device` it is "
      "there, copied if need be: always with copy=True, and with False ExecutionError is raised "
      "instead. Lists and numbers take the dtype, which must hold them (OverflowError), arrays are "
      "converted as by `Tensor.to`.");
  define_both(
      m, "astype",
      [](Arg<Tensor> x, Arg<DType> dtype, bool copy, OptionalDevice device) {
        const Tensor result = to_device(cast(x, dtype), value_or(device, x->device()));
        return copy && result.storage() == x->storage() ? clone(result) : result;
      },
      "dtype"_a, "copy"_a = true, nb::kw_only(), "device"_a = nb::none(), Released(),
      "A copy converted to `dtype` as `Tensor.to` does, or with copy=False the tensor itself when "
      "nothing changes. Raises DTypeError from complex to real.");
  m.def(
      "from_dlpack",
      [](nb::handle producer) {
        return named_call("from_dlpack", [&] { return import_dlpack(producer); });
      },
      "producer"_a,
      "A tensor that shares the memory of any DLPack producer. Read-only memory stays so.");
  bind_of_shape(m, "empty", &empty, "Uninitialised tensor.");
  bind_of_shape(m, "zeros", &zeros, Released(), "Tensor of zeros.");
  bind_of_shape(m, "ones", &ones, Released(), "Tensor of ones.");
  m.def(
      "full",
      [](Arg<Shape> shape, Arg<TypedScalar> value, std::optional<Arg<DType>> dtype,
         OptionalDevice device) {
        return full(shape, value->value, value_or(dtype, natural_dtype(value)),
                    device_or_current(device));
      },
      "shape"_a, "fill_value"_a, "dtype"_a = nb::none(), "device"_a = nb::none(), Released(),
      "Tensor with every element equal to `fill_value`. Python floats give float32, complex "
      "numbers complex64 and ints int64, other numbers their own dtype. Raises OverflowError when "
      "`dtype` cannot hold it.");
  define_zeros_of(m, "TensorFloat", DType::kFloat32, "A float32 tensor of zeros.");
  define_zeros_of(m, "TensorDouble", DType::kFloat64, "A float64 tensor of zeros.");
  m.def(
      "eye",
      [](int64_t n, Arg<DType> dtype, std::optional<int64_t> columns, int64_t k,
         OptionalDevice device) {
        return eye(n, columns.value_or(n), k, dtype, device_or_current(device));
      },
      "n"_a, "dtype"_a = "float32", nb::kw_only(), "m"_a = nb::none(), "k"_a = 0,
      "device"_a = nb::none(), "n×m matrix with ones on the k-th diagonal.");
  m.def(
      "arange",
      [](Arg<TypedScalar> start, std::optional<Arg<TypedScalar>> stop, Arg<TypedScalar> step,
         std::optional<Arg<DType>> dtype,
         OptionalDevice device) { return arange_from(start, stop, step, dtype, device); },
      "start"_a, "stop"_a = nb::none(), "step"_a = 1, nb::kw_only(), "dtype"_a = nb::none(),
      "device"_a = nb::none(),
      "start, start+step, ... short of stop; `arange(n)` counts from 0. Integers give int64, or "
      "uint64 when one needs it, Python floats float32, other floats their own dtype. Raises "
      "OverflowError when the dtype cannot hold them.");
  m.def(
      "linspace",
      [](double start, double stop, int64_t num, Arg<DType> dtype, bool endpoint,
         OptionalDevice device) {
        check_count(num, *dtype, "linspace: num");
        return linspace(start, stop, num, dtype, endpoint, device_or_current(device));
      },
      "start"_a, "stop"_a, "num"_a, "dtype"_a = "float32", nb::kw_only(), "endpoint"_a = true,
      "device"_a = nb::none(), "`num` evenly spaced values from start to stop.");
  m.def(
      "logspace",
      [](double start, double stop, int64_t num, double base, Arg<DType> dtype, bool endpoint,
         OptionalDevice device) {
        check_count(num, *dtype, "logspace: num");
        return logspace(start, stop, num, base, dtype, endpoint, device_or_current(device));
      },
      "start"_a, "stop"_a, "num"_a, "base"_a = 10.0, "dtype"_a = "float32", nb::kw_only(),
      "endpoint"_a = true, "device"_a = nb::none(), "base ** linspace(start, stop, num).");
  m.def(
      "meshgrid",
      [](const nb::args& axes, const std::string& indexing) {
        std::vector<Tensor> tensors;
        for (nb::handle axis : axes) tensors.push_back(named_argument<Tensor>(axis, "xi"));
        return meshgrid(tensors, indexing);
      },
      "xi"_a, "indexing"_a = "xy",
      "Coordinate tensors of the grid of 1-D axes, as numpy.meshgrid ('xy' or 'ij').");
}

}  // namespace cuop::python
