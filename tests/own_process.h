// Tests of what is decided once a process run in one of their own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace cuop::test {

/// Runs one test of this program in a process of its own, with variables set before it
/// ("NAME=value"). Answers 0 when it passed.
inline int run_in_process(const std::string& test, const std::string& setting) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = setting + " '" + self +
                              "' --gtest_also_run_disabled_tests --gtest_filter=" + test +
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
