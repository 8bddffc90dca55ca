// The tuner's switches and database, and kernels of the user's own.
#include <nanobind/stl/map.h>

#include "binders.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/operators/tuned/user_kernel.h"
#include "cuop/tune/database.h"
#include "cuop/tune/library_tuning.h"
#include "cuop/tune/permission.h"

namespace cuop::python {

namespace {

using ArgumentList = nb::typed<nb::list, nb::any>;
using LaunchFunction = nb::typed<nb::callable, nb::any(int)>;
using PlainCall = nb::typed<nb::callable, nb::any()>;

Record record_of_choice(const tune::ChoiceStore::Entry& entry) {
  return record_of("key", entry.key, "choice", entry.choice.value, "gain", entry.choice.gain,
                   "rounds", entry.choice.rounds, "made_in_ms", entry.choice.made_in_ms, "used",
                   entry.used);
}

void bind_database(Module& m) {
  m.def("set_tuning_frozen", &tune::set_frozen, "on"_a,
        "While it is on, the tuner takes the choices that were stored and measures nothing, so "
        "that every run takes the same kernels. CUOP_TUNE_FROZEN=1 starts with it on.");
  m.def("tuning_frozen", &tune::is_frozen, "Whether the tuner only reads.");
  m.def(
      "tuning_choices",
      [] {
        std::vector<tune::ChoiceStore::Entry> entries;
        if (const auto store = tune::database()) entries = store->entries();
        return records_of(entries, record_of_choice);
      },
      "Every stored choice that can be used, the last used first: key (the problem and what it "
      "holds for), choice, gain (part of the default's time that it saves), rounds, made_in_ms, "
      "used (seconds since 1970).");
  m.def(
      "tuning_info",
      [] {
        const auto store = tune::database();
        const tune::DatabaseStatistics statistics = tune::database_statistics();
        return record_of("directory", store ? store->directory() : "", "problem",
                         store ? store->problem() : "enable_caching is off", "is_frozen",
                         tune::is_frozen(), "searches", statistics.searches, "loaded",
                         statistics.loaded, "refused", statistics.refused, "damaged",
                         statistics.damaged);
      },
      "Where choices are kept, why not ('problem'), and what this process did with them: searches "
      "that measured, choices loaded, refused (what they name is there no more), and damaged "
      "files.");
  m.def(
      "tuning_clear",
      [] {
        const auto store = tune::database();
        return store ? store->clear() : 0;
      },
      Released(), "Removes every stored choice; returns how many there were.");
}

const char* source_of(const tune::LibraryTuning::Counts& counts) {
  if (counts.searched > 0) return "measured";
  if (counts.stored > 0) return "disk";
  return counts.put_off > 0 ? "put off" : "";
}

void bind_library_tuning(Module& m) {
  m.def(
      "tune_libraries",
      [](const PlainCall& call, int64_t rounds, double seconds) {
        if (rounds < 1 || rounds > 1000) {
          throw ExecutionError(cat("tune_libraries: rounds is ", rounds, ", needed is 1 to 1000"));
        }
        if (!(seconds > 0.0)) {
          throw ExecutionError(
              cat("tune_libraries: seconds is ", seconds, ", needed is more than 0"));
        }
        tune::LibraryTuning tuning(static_cast<int>(rounds), seconds);
        call();
        return record_of("fastest", tuning.fastest(), "gain", tuning.gain(), "source",
                         source_of(tuning.counts()), "is_complete", tuning.is_complete(),
                         "made_in_ms", tuning.made_in_ms(), "text", tuning.text());
      },
      "call"_a, "rounds"_a = 21, "seconds"_a = 30.0,
      "Calls call(), and for each product and convolution on a GPU that it leaves to a library "
      "searches for the fastest of the library's algorithms, on copies of the operands; what is "
      "found is stored, and taken by this and later calls. Any dtype that the library takes. "
      "Returns a dict: fastest (of the search with the largest gain), gain (part of the default's "
      "time that it saves), source ('measured', 'disk', 'put off' while the tuner is frozen or a "
      "graph is captured, '' when no library had a choice), is_complete (false: more than "
      "`seconds` would have been needed), made_in_ms, text (one line a candidate). `rounds`: "
      "samples of each; stored choices of fewer are searched for again.");
}

/// Tensors and numbers, and nothing that would have to be copied: a kernel may write.
std::vector<KernelArgument> kernel_arguments(const UserKernel& kernel, const nb::list& given) {
  std::vector<KernelArgument> arguments;
  // A tuple: a number's __index__ may change the list.
  for (const nb::handle object : nb::tuple(given)) {
    if (nb::isinstance<Tensor>(object)) {
      arguments.emplace_back(nb::cast<Tensor>(object));
      continue;
    }
    const bool is_number = PyNumber_Check(object.ptr()) != 0 &&
                           PySequence_Check(object.ptr()) == 0 &&
                           !has_attribute(object, "__dlpack__");
    if (!is_number) {
      const size_t i = arguments.size();
      const auto& parameters = kernel.parameters();
      throw DTypeError(cat("kernel ", kernel.name(), ": ",
                           i < parameters.size() ? parameters[i].name : cat("argument ", i + 1),
                           ": needed is a tensor of cuOP or a number, given ", class_name(object),
                           "; cuop.from_dlpack takes other libraries' arrays"));
    }
    arguments.emplace_back(convert_argument(object, TypeTag<Scalar>{}));
  }
  return arguments;
}

/// How a configuration is launched, asked for in Python: (grid, block, shared bytes).
UserKernel::LaunchFor launches(const nb::callable& launch_for) {
  return [&launch_for](size_t config) {
    const nb::gil_scoped_acquire held;
    using Axes = std::array<int64_t, 3>;
    const nb::tuple answer = nb::cast<nb::tuple>(launch_for(config));
    const auto axes = [&](size_t i) {
      const auto three = nb::cast<std::tuple<int64_t, int64_t, int64_t>>(nb::tuple(answer[i]));
      return Axes{std::get<0>(three), std::get<1>(three), std::get<2>(three)};
    };
    return KernelLaunch{axes(0), axes(1), nb::cast<int64_t>(answer[2])};
  };
}

void bind_user_kernel(Module& m) {
  Class<UserKernel>(m, "_UserKernel", "What cuop.jit.Kernel is made of.")
      .def(
          "__init__",
          [](UserKernel* self, std::string source, std::string name,
             const std::vector<std::map<std::string, std::string>>& configs,
             std::vector<std::string> key, std::vector<std::string> options) {
            UserKernelOptions made;
            for (const auto& macros : configs) made.configs.push_back({macros});
            made.key = std::move(key);
            made.compiler_options = std::move(options);
            new (self) UserKernel(std::move(source), std::move(name), std::move(made));
          },
          "source"_a, "name"_a, "configs"_a, "key"_a, "options"_a)
      .def_prop_ro("parameters",
                   [](const UserKernel& kernel) {
                     std::vector<std::string> names;
                     for (const auto& p : kernel.parameters()) names.push_back(p.name);
                     return names;
                   })
      .def(
          "launch",
          [](UserKernel& kernel, ArgumentList arguments, LaunchFunction launch_for) {
            const auto converted = kernel_arguments(kernel, arguments);
            const nb::gil_scoped_release released;
            kernel.launch(converted, launches(launch_for));
          },
          "arguments"_a, "launch_for"_a)
      .def(
          "choose",
          [](UserKernel& kernel, ArgumentList arguments, LaunchFunction launch_for) {
            const auto converted = kernel_arguments(kernel, arguments);
            const nb::gil_scoped_release released;
            return kernel.choose(converted, launches(launch_for));
          },
          "arguments"_a, "launch_for"_a)
      .def("last_search", &UserKernel::last_search)
      .def(
          "compile",
          [](const UserKernel& kernel, int64_t config, const std::string& arch) {
            const jit::CompiledKernel compiled =
                without_gil([&] { return kernel.compile(static_cast<size_t>(config), arch); });
            return nb::bytes(compiled.image.data(), compiled.image.size());
          },
          "config"_a, "arch"_a);
}

}  // namespace

void bind_tune(Module& m) {
  bind_database(m);
  bind_library_tuning(m);
  bind_user_kernel(m);
}

}  // namespace cuop::python
