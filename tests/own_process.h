// Tests of what is decided once a process run in one of their own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace cuop::test {

/// Whether this program has a test of that name, "Suite.Test".
inline bool has_test(const std::string& name) {
  const testing::UnitTest& program = *testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *program.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j)
      if (suite.name() + std::string(".") + suite.GetTestInfo(j)->name() == name) return true;
  }
  return false;
}

/// Runs one test of this program in a process of its own, with variables set before it
/// ("NAME=value"). Answers 0 when it passed. A process that runs no test would pass as well: the
/// name is looked up first, and where this process is one of several shards, its own is not.
inline int run_in_process(const std::string& test, const std::string& setting) {
  if (!has_test(test)) return -1;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX " + setting + " '" +
                              self + "' --gtest_also_run_disabled_tests --gtest_filter=" + test +
                              " > /dev/null";
  return std::system(command.c_str());
}

/// Whether `work` comes to its end in a forked child, within 20 s.
template <class Work>
bool ends_in_fork(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    work();
    _exit(0);
  }
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace cuop::test
