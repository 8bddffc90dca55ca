// The host's compiler, called to make a kernel's binary.
#pragma once

#include <string>
#include <vector>

namespace cuop::simulator {

struct SourceFile {
  std::string name;  ///< as #include gives it
  std::string text;
};

struct Compiled {
  bool is_good = false;
  std::string log;
  std::string image;  ///< a shared object
};

/// The first file is what is compiled, the others are what it may include.
Compiled compile(const std::vector<SourceFile>& files, const std::vector<std::string>& defines);

/// Changes with everything beside the files that changes the binary.
unsigned compiler_fingerprint();

}  // namespace cuop::simulator
