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
    return normal(shape, mean, std, options(dtype, device, generator, out));
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
      [](int64_t low, int64_t high, Arg<Shape> shape, Arg<DType> dtype, OptionalDevice device,
         Generator* generator, std::optional<Tensor> out) {
        return randint(low, high, shape, options(dtype, device, generator, out));
      },
      "low"_a, "high"_a, "shape"_a, "dtype"_a = "int64", "device"_a = nb::none(),
      "generator"_a = nb::none(), "out"_a = nb::none(), ReturnsOut(), Released(),
      "Integers in [low, high) of any integer dtype; both are 64-bit integers, up to 2^63 - 1. "
      "Raises "
      "ExecutionError when the range is empty or the dtype cannot hold it.");
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
