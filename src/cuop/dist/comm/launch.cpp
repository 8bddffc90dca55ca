#include "cuop/dist/comm/launch.h"

#include <unistd.h>

#include <array>
#include <charconv>

#include "cuop/backend/current_device.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/rank_limit.h"

extern char** environ;

namespace cuop::dist {

namespace {

int to_int(const std::string& name, const std::string& text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0) {
    throw ExecutionError(
        cat("launch: ", name, " is '", text, "', it must be a number of 0 or more"));
  }
  return value;
}

/// Reads one launcher's variables.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  bool has(const char* name) const { return environment_.contains(name); }
  std::string text(const char* name) const {
    const auto found = environment_.find(name);
    return found != environment_.end() ? found->second : "";
  }
  int number(const char* name, int otherwise) const {
    const auto found = environment_.find(name);
    return found != environment_.end() ? to_int(name, found->second) : otherwise;
  }

 private:
  const Environment& environment_;
};

/// The variables in which a launcher says who a process is.
struct LauncherNames {
  const char *launcher, *rank, *size, *local_rank, *local_size;
};
constexpr LauncherNames kOpenMpi{"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                 "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr LauncherNames kHydra{"hydra", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
                               "MPI_LOCALNRANKS"};
constexpr LauncherNames kTorchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK",
                                  "LOCAL_WORLD_SIZE"};

Launch from_variables(const Reader& env, const LauncherNames& names) {
  Launch launch{.launcher = names.launcher};
  launch.rank = env.number(names.rank, 0);
  launch.size = env.number(names.size, 1);
  launch.local_rank = env.number(names.local_rank, 0);
  launch.local_size = env.number(names.local_size, 1);
  return launch;
}

Launch from_torchrun(const Reader& env) {
  Launch launch = from_variables(env, kTorchrun);
  launch.address = env.text("MASTER_ADDR");
  launch.port = env.number("MASTER_PORT", 0);
  return launch;
}

/// Ports from 20000 to 39999, told apart by job and step: below the range that systems hand out.
int slurm_port(const Reader& env) {
  const int job = env.number("SLURM_JOB_ID", 0);
  const int step = env.number("SLURM_STEP_ID", 0);
  return 20000 + (job % 20000 * 7 + step) % 20000;
}

Launch from_slurm(const Reader& env, const char* launcher) {
  Launch launch{.launcher = launcher};
  launch.rank = env.number("SLURM_PROCID", 0);
  launch.size = env.number("SLURM_STEP_NUM_TASKS", env.number("SLURM_NTASKS", 1));
  launch.local_rank = env.number("SLURM_LOCALID", 0);
  launch.local_size =
      slurm_tasks_on_node(env.text("SLURM_STEP_TASKS_PER_NODE"), env.number("SLURM_NODEID", 0));
  launch.address = slurm_first_host(env.text("SLURM_STEP_NODELIST"));
  launch.port = slurm_port(env);
  return launch;
}

/// PMIx says the rank; how many there are must come from whoever started it.
Launch from_pmix(const Reader& env) {
  Launch launch = from_slurm(env, "pmix");
  launch.rank = env.number("PMIX_RANK", 0);
  return launch;
}

Launch detect(const Reader& env) {
  if (env.has("TORCHELASTIC_RUN_ID") && env.has("WORLD_SIZE")) return from_torchrun(env);
  if (env.has("OMPI_COMM_WORLD_SIZE")) return from_variables(env, kOpenMpi);
  if (env.has("PMI_RANK") && env.has("PMI_SIZE")) return from_variables(env, kHydra);
  // A batch script is no step: it is one process although its job has many tasks.
  const bool is_step = env.has("SLURM_STEP_ID") && env.has("SLURM_PROCID");
  if (env.has("PMIX_RANK") && is_step) return from_pmix(env);
  if (env.has("RANK") && env.has("WORLD_SIZE")) return from_torchrun(env);
  if (is_step) return from_slurm(env, "srun");
  return {};
}

}  // namespace

std::string host_name() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::string& given = env().host_name.value;
  return given.empty() ? host.data() : given;
}

int slurm_tasks_on_node(const std::string& list, int node) {
  size_t begin = 0;
  int first_node = 0;
  while (begin < list.size()) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string part = list.substr(begin, end - begin);
    const size_t times = part.find("(x");
    const int tasks = to_int("SLURM_STEP_TASKS_PER_NODE", part.substr(0, times));
    const int nodes = times == std::string::npos
                          ? 1
                          : to_int("SLURM_STEP_TASKS_PER_NODE",
                                   part.substr(times + 2, part.find(')') - times - 2));
    if (node < first_node + nodes) return tasks;
    first_node += nodes;
    begin = end + 1;
  }
  return 1;
}

std::string slurm_first_host(const std::string& list) {
  const size_t bracket = list.find('[');
  const size_t comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const size_t end = list.find_first_of(",-]", bracket);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

Launch detect_launch(const Environment& environment) {
  Launch launch = detect(Reader(environment));
  if (launch.size < 1 || launch.rank >= launch.size) {
    throw ExecutionError(cat("launch: ", launch.launcher, " says rank ", launch.rank, " of ",
                             launch.size, ", ranks are 0 to size - 1"));
  }
  checked_ranks(launch.size, cat("launch: ", launch.launcher));
  return launch;
}

Launch detect_launch() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return detect_launch(environment);
}

namespace {

/// Ranks of one host prefer different GPUs. Found out once: reading all of the environment takes
/// longer than most calls that ask.
int local_rank() {
  static const int rank = [] {
    try {
      return detect_launch().local_rank;
    } catch (const Error&) {  // which is raised where the world is asked for
      return 0;
    }
  }();
  return rank;
}

const bool is_local_rank_known = [] {
  backend::set_gpu_preference(&local_rank);
  return true;
}();

}  // namespace

}  // namespace cuop::dist
