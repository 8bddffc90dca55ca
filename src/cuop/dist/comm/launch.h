// How this process was started, read from what launchers leave in the environment.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace cuop::dist {

using Environment = std::map<std::string, std::string>;

struct Launch {
  /// "openmpi", "hydra" (MPICH, Intel MPI), "pmix", "srun", "torchrun" or "none".
  std::string launcher = "none";
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;  ///< ranks on this host
  /// Where rank 0 can be met over TCP; "" when the launcher does not say.
  std::string address = {};
  int port = 0;

  /// The launcher starts MPI processes: MPI knows the ranks.
  bool is_mpi() const { return launcher == "openmpi" || launcher == "hydra" || launcher == "pmix"; }
};

/// The launcher whose traces are in `environment`. torchrun's agent wins over all others (it runs
/// inside of them), then MPI's launchers, then RANK and WORLD_SIZE set by hand, then srun.
/// ExecutionError when a value is no number or the rank is outside the size.
Launch detect_launch(const Environment& environment);
/// The same with this process's environment.
Launch detect_launch();

/// What ranks tell hosts apart by: CUOP_HOST_NAME, else the system's name.
std::string host_name();

/// Tasks on node `node` from Slurm's list "2(x3),1" (nodes 0 to 2 have two, node 3 has one).
int slurm_tasks_on_node(const std::string& list, int node);
/// The first host of Slurm's list "n[03-05,7],login" is n03.
std::string slurm_first_host(const std::string& list);

}  // namespace cuop::dist
