#include "cuop/dist/comm/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuop/core/error.h"
#include "tests/error_of.h"

namespace cuop::dist {

namespace {

void expect(const Launch& launch, const char* launcher, int rank, int size, int local_rank,
            int local_size) {
  EXPECT_EQ(launch.launcher, launcher);
  EXPECT_EQ(launch.rank, rank);
  EXPECT_EQ(launch.size, size);
  EXPECT_EQ(launch.local_rank, local_rank);
  EXPECT_EQ(launch.local_size, local_size);
}

const Environment kOpenMpi{{"OMPI_COMM_WORLD_RANK", "5"},
                           {"OMPI_COMM_WORLD_SIZE", "8"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                           {"PMIX_RANK", "5"}};

const Environment kTorchrun{{"TORCHELASTIC_RUN_ID", "none"},
                            {"RANK", "3"},
                            {"WORLD_SIZE", "4"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "node1"},
                            {"MASTER_PORT", "29500"}};

const Environment kSrun{{"SLURM_JOB_ID", "1234"},
                        {"SLURM_STEP_ID", "2"},
                        {"SLURM_PROCID", "6"},
                        {"SLURM_LOCALID", "0"},
                        {"SLURM_NODEID", "3"},
                        {"SLURM_STEP_NUM_TASKS", "7"},
                        {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                        {"SLURM_STEP_NODELIST", "n[03-05,7]"}};

Environment with(Environment base, const Environment& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

TEST(Launch, PlainProcessIsOneRank) {
  expect(detect_launch({{"PATH", "/bin"}}), "none", 0, 1, 0, 1);
  EXPECT_FALSE(detect_launch(Environment{}).is_mpi());
}

TEST(Launch, OpenMpi) {
  expect(detect_launch(kOpenMpi), "openmpi", 5, 8, 1, 4);
  EXPECT_TRUE(detect_launch(kOpenMpi).is_mpi());
}

TEST(Launch, Hydra) {
  const Environment hydra{
      {"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}};
  expect(detect_launch(hydra), "hydra", 2, 3, 0, 1);
}

TEST(Launch, Torchrun) {
  const Launch launch = detect_launch(kTorchrun);
  expect(launch, "torchrun", 3, 4, 1, 2);
  EXPECT_EQ(launch.address, "node1");
  EXPECT_EQ(launch.port, 29500);
  EXPECT_FALSE(launch.is_mpi());
}

TEST(Launch, Srun) {
  const Launch launch = detect_launch(kSrun);
  expect(launch, "srun", 6, 7, 0, 1);
  EXPECT_EQ(launch.address, "n03");
  EXPECT_GE(launch.port, 20000);
  EXPECT_LT(launch.port, 40000);
  EXPECT_NE(launch.port, detect_launch(with(kSrun, {{"SLURM_STEP_ID", "3"}})).port);
}

TEST(Launch, SrunWithPmixIsMpi) {
  const Launch launch = detect_launch(with(kSrun, {{"PMIX_RANK", "6"}}));
  expect(launch, "pmix", 6, 7, 0, 1);
  EXPECT_TRUE(launch.is_mpi());
}

TEST(Launch, BatchScriptIsOneProcess) {
  Environment batch = kSrun;
  batch.erase("SLURM_STEP_ID");
  expect(detect_launch(batch), "none", 0, 1, 0, 1);
}

TEST(Launch, TheInnermostLauncherWins) {
  EXPECT_EQ(detect_launch(with(kSrun, kTorchrun)).launcher, "torchrun");
  EXPECT_EQ(detect_launch(with(kOpenMpi, kTorchrun)).launcher, "torchrun");
  EXPECT_EQ(detect_launch(with(kSrun, kOpenMpi)).launcher, "openmpi");
  // RANK and WORLD_SIZE set by hand under mpirun, as many scripts do, are still MPI ranks.
  EXPECT_EQ(detect_launch(with(kOpenMpi, {{"RANK", "5"}, {"WORLD_SIZE", "8"}})).launcher,
            "openmpi");
}

TEST(Launch, RefusesWhatMakesNoSense) {
  EXPECT_THAT(
      [] {
        detect_launch(with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "8"}}));
      },
      testing::ThrowsMessage<ExecutionError>(testing::HasSubstr("rank 8 of 8")));
  EXPECT_THAT(
      [] {
        detect_launch(with(kTorchrun, {{"WORLD_SIZE", "four"}}));
      },
      testing::ThrowsMessage<ExecutionError>(testing::HasSubstr("WORLD_SIZE is 'four'")));
  EXPECT_THROW(detect_launch({{"RANK", "0"}, {"WORLD_SIZE", "0"}}), ExecutionError);
  EXPECT_EQ(test::error_of<ExecutionError>([] {
              detect_launch({{"RANK", "0"}, {"WORLD_SIZE", "2147483647"}});
            }),
            "launch: torchrun: 2147483647 ranks were given; needed are 1 to 32768");
}

TEST(Launch, SlurmLists) {
  EXPECT_EQ(slurm_tasks_on_node("2(x3),1", 0), 2);
  EXPECT_EQ(slurm_tasks_on_node("2(x3),1", 2), 2);
  EXPECT_EQ(slurm_tasks_on_node("2(x3),1", 3), 1);
  EXPECT_EQ(slurm_tasks_on_node("16", 0), 16);
  EXPECT_EQ(slurm_tasks_on_node("", 0), 1);
  EXPECT_EQ(slurm_first_host("n[03-05,7],login"), "n03");
  EXPECT_EQ(slurm_first_host("n[3,7]"), "n3");
  EXPECT_EQ(slurm_first_host("alpha,n[03-05]"), "alpha");
  EXPECT_EQ(slurm_first_host("alpha"), "alpha");
}

}  // namespace

}  // namespace cuop::dist
