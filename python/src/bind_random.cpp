#include "binders.h"
#include "cuop/ops/random/random.h"

namespace cuop::python {

namespace {

RandomOptions options(DType dtype, const OptionalDevice& device, Generator* generator,
                      const std::optional<Tensor>& out) {
  const Tensor* target = pointer(out);
  const bool is_there = !device && target != nullptr;
  return {dtype, is_there ? target->device() : device_or_current(device), generator, target};
}

/// An integer of Python, which has no end, when 64 bits hold it.
std::optional<Scalar> within_64_bits(nb::handle integer) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
  if (overflow == 0) return Scalar(static_cast<int64_t>(value));
  if (overflow < 0) return std::nullopt;
  const unsigned long long large = PyLong_AsUnsignedLongLong(integer.ptr());
  if (PyErr_Occurred() == nullptr) return Scalar(static_cast<uint64_t>(large));
  PyErr_Clear();
  return std::nullopt;
}

nb::int_ to_integer(nb::handle object, const char* argument) {
  const bool has_index = PyIndex_Check(object.ptr()) != 0;
  PyObject* const index = has_index ? PyNumber_Index(object.ptr()) : nullptr;
  if (index != nullptr) return nb::steal<nb::int_>(index);
  const Raised why = has_index ? wrong_kind() : nullptr;
  refuse<DTypeError>(cat(Call::place(argument), ": needed is an integer, given ", describe(object)),
                     why);
}

/// Integers in [low, high), whose end may be 2^63 or 2^64.
Tensor draw_integers(nb::handle low, nb::handle high, const Shape& shape,
                     const RandomOptions& options) {
  const nb::int_ first = to_integer(low, "low"), end = to_integer(high, "high");
  const std::string range = cat("[", describe(first), ", ", describe(end), ")");
  if (!(first < end)) throw ExecutionError(cat("randint: the range ", range, " is empty"));
  const auto from = within_64_bits(first), last = within_64_bits(end.attr("__sub__")(1));
  const DType dtype = options.dtype;
  if (is_integer(dtype) && (!from || !last || !from->fits(dtype) || !last->fits(dtype))) {
    throw ExecutionError(cat("randint: ", dtype, " does not hold the range ", range));
  }
  const nb::gil_scoped_release released;
  return randint_through(from.value_or(0), last.value_or(0), shape, options);
}

void bind_generator(Module& m) {
  Class<Generator>(m, "Generator",
                   "A stream of random numbers: a seed and the count of counter values used "
                   "up. The same seed and calls give the same values on every device.")
      .def(nb::init<uint64_t>(), "seed"_a)
      .def("manual_seed", &Generator::manual_seed, "seed"_a, "Restarts with this seed.")
      .def_prop_ro("seed", &Generator::seed, "The seed.")
      .def_prop_rw("counter", &Generator::counter, &Generator::set_counter,
                   "Counter values used so far; setting it resumes a saved stream.");
  m.def("manual_seed", &manual_seed, "seed"_a, "Restarts the process's generator with this seed.");
  m.def("default_generator", &default_generator, nb::rv_policy::reference,
        "The process's generator.");
}

}  // namespace

void bind_random(Module& m) {
  bind_generator(m);
  const auto draw_normal = [](Arg<Shape> shape, Arg<DType> dtype, double mean, double std,
                              OptionalDevice device, Generator* generator,
                              std::optional<Tensor> out) {
    return random(shape, mean, std, options(dtype, device, generator, out));
  };
  m.def("random", draw_normal, "shape"_a, "dtype"_a = "float32", "mean"_a = 0.0, "std"_a = 1.0,
        "device"_a = nb::none(), "generator"_a = nb::none(), "out"_a = nb::none(), ReturnsOut(),
        Released(),
        "Normal numbers of the given mean and standard deviation (Philox4x32-10, Box-Muller); "
        "float16, bfloat16, float32 or float64. Raises ExecutionError when std is negative.");
  m.def(
      "uniform",
      [](Arg<Shape> shape, double low, double high, Arg<DType> dtype, OptionalDevice device,
         Generator* generator, std::optional<Tensor> out) {
        return uniform(shape, low, high, options(dtype, device, generator, out));
      },
      "shape"_a, "low"_a = 0.0, "high"_a = 1.0, "dtype"_a = "float32", "device"_a = nb::none(),
      "generator"_a = nb::none(), "out"_a = nb::none(), ReturnsOut(), Released(),
      "Uniform numbers in [low, high). Raises ExecutionError when the range is empty in the "
      "dtype.");
  m.def(
      "randint",
      [](nb::handle low, nb::handle high, Arg<Shape> shape, Arg<DType> dtype, OptionalDevice device,
         Generator* generator, std::optional<Tensor> out) {
        return draw_integers(low, high, shape, options(dtype, device, generator, out));
      },
      "low"_a, "high"_a, "shape"_a, "dtype"_a = "int64", "device"_a = nb::none(),
      "generator"_a = nb::none(), "out"_a = nb::none(), ReturnsOut(),
      nb::sig("def randint(low: int, high: int, shape: ShapeLike, dtype: DTypeLike = 'int64', "
              "device: DeviceLike | None = None, generator: Generator | None = None, out: Tensor | "
              "None = None) -> Tensor"),
      "Integers in [low, high) of any integer dtype; `high` may be one more than the dtype's "
      "greatest number. Raises ExecutionError when the range is empty or the dtype cannot hold it, "
      "DTypeError for limits that are no integers.");
  m.def(
      "permutation",
      [](int64_t n, OptionalDevice device, Generator* generator) {
        check_count(n, DType::kInt64, "permutation: n");
        return permutation(n, options(DType::kInt64, device, generator, std::nullopt));
      },
      "n"_a, "device"_a = nb::none(), "generator"_a = nb::none(), Released(),
      "0, ..., n-1 in random order (int64).");
}

}  // namespace cuop::python
