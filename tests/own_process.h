// Tests of what is decided once a process run in one of their own.
#pragma once

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

}  // namespace cuop::test
