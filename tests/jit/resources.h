// Kernels compiled for the architectures that matter, and what they use: no GPU is needed for that.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/jit/nvrtc.h"

namespace cuop::test {

using jit::CompiledKernel;
using jit::CompileRequest;
using jit::Nvrtc;

inline constexpr const char* kArchitectures[] = {"sm_80", "sm_90a", "sm_100a"};

/// Those to compile the next kernel for, from the `first` on: one in turn, as each takes a second,
/// so that the kernels of a test are spread over all; every one where CUOP_TEST_ARCHITECTURES is
/// "all".
inline std::vector<const char*> next_architectures(size_t first = 0) {
  const std::span<const char* const> all = std::span(kArchitectures).subspan(first);
  const char* asked = std::getenv("CUOP_TEST_ARCHITECTURES");
  if (asked != nullptr && std::string_view(asked) == "all") return {all.begin(), all.end()};
  static size_t kernels = 0;
  return {all[++kernels % all.size()]};
}

/// What the assembler says a kernel uses.
struct Resources {
  int registers = 0, stack = 0, spilled = 0;
  std::string log;
};

inline int number_before(const std::string& log, const std::string& what) {
  const size_t end = log.find(what);
  if (end == std::string::npos) return -1;
  size_t begin = end;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(log[begin - 1])) != 0) --begin;
  return std::atoi(log.substr(begin, end - begin).c_str());
}

inline Resources resources_of(CompileRequest request, const char* arch) {
  request.arch = arch;
  request.options.emplace_back("--ptxas-options=-v");
  const CompiledKernel compiled = Nvrtc::instance().compile(request, 120.0);
  return {number_before(compiled.log, " registers"), number_before(compiled.log, " bytes stack"),
          number_before(compiled.log, " bytes spill stores"), compiled.log};
}

/// Tests that hold kernels of fixed text to their budgets.
class KernelBudget : public ::testing::Test {
 protected:
  void SetUp() override {
    const Nvrtc& nvrtc = Nvrtc::instance();
    if (!nvrtc.is_available()) GTEST_SKIP() << "needs NVRTC: " << nvrtc.reason();
  }

  /// Compiles the kernel for architectures from the `first` on, once in a test. `frame` is in
  /// bytes: divisions and exponentials of doubles are routines with one.
  void expect_within(const jit::TextKernel& kernel, int registers, int frame = 0,
                     size_t first = 0) {
    if (!seen_.insert(kernel.call).second) return;
    for (const char* arch : next_architectures(first)) {
      const Resources used = resources_of(jit::kernel_request(kernel), arch);
      EXPECT_GT(used.registers, 0) << kernel.call << " for " << arch << "\n" << used.log;
      EXPECT_LE(used.registers, registers) << kernel.call << " for " << arch;
      EXPECT_LE(used.spilled, frame) << kernel.call << " for " << arch;
      EXPECT_LE(used.stack, frame) << kernel.call << " for " << arch;
    }
  }

 private:
  std::set<std::string> seen_;
};

}  // namespace cuop::test
