// Entry points of NVRTC for the simulated device: what they make are shared objects of the host.
#include <cstring>
#include <string>
#include <vector>

#include "tests/simulator/compiler.h"
#include "tests/simulator/exported.h"
#include "tests/simulator/kernel_source.h"

namespace cuop::simulator {

namespace {

enum Status : int { kSuccess = 0, kInvalidInput = 3, kInvalidProgram = 4, kCompilation = 6 };
constexpr int kArchitectures[] = {80, 90, 100};

struct Program {
  std::vector<SourceFile> files;
  Compiled compiled;
};

Program* program_of(void* handle) { return static_cast<Program*>(handle); }

}  // namespace

/// No version of NVRTC: caches that the real one filled are never taken for this one's.
CUOP_SIMULATOR_ENTRY int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = static_cast<int>(1'000'000 + compiler_fingerprint() % 1'000'000);
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int nvrtcGetNumSupportedArchs(int* count) {
  *count = std::size(kArchitectures);
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int nvrtcGetSupportedArchs(int* architectures) {
  std::memcpy(architectures, kArchitectures, sizeof kArchitectures);
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY const char* nvrtcGetErrorString(int status) {
  switch (status) {
    case kSuccess:
      return "NVRTC_SUCCESS";
    case kInvalidInput:
      return "NVRTC_ERROR_INVALID_INPUT";
    case kInvalidProgram:
      return "NVRTC_ERROR_INVALID_PROGRAM";
    case kCompilation:
      return "NVRTC_ERROR_COMPILATION";
    default:
      return "NVRTC_ERROR_INTERNAL_ERROR";
  }
}

CUOP_SIMULATOR_ENTRY int nvrtcCreateProgram(void** program, const char* source, const char* name,
                                            int header_count, const char* const* headers,
                                            const char* const* header_names) {
  if (source == nullptr || header_count < 0) return kInvalidInput;
  auto* made = new Program;
  made->files.push_back({"main.cpp", framed(source, name != nullptr ? name : "default_program")});
  for (int i = 0; i < header_count; ++i) {
    made->files.push_back({header_names[i], without_ptx(headers[i])});
  }
  *program = made;
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int nvrtcDestroyProgram(void** program) {
  delete program_of(*program);
  *program = nullptr;
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int nvrtcCompileProgram(void* handle, int option_count,
                                             const char* const* options) {
  std::vector<std::string> defines;
  for (int i = 0; i < option_count; ++i) {
    if (std::strncmp(options[i], "-D", 2) == 0) defines.emplace_back(options[i]);
  }
  Program& program = *program_of(handle);
  program.compiled = compile(program.files, defines);
  return program.compiled.is_good ? kSuccess : kCompilation;
}
CUOP_SIMULATOR_ENTRY int nvrtcGetProgramLogSize(void* program, size_t* bytes) {
  *bytes = program_of(program)->compiled.log.size() + 1;
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int nvrtcGetProgramLog(void* program, char* log) {
  const std::string& text = program_of(program)->compiled.log;
  std::memcpy(log, text.c_str(), text.size() + 1);
  return kSuccess;
}
CUOP_SIMULATOR_ENTRY int nvrtcGetCUBINSize(void* program, size_t* bytes) {
  *bytes = program_of(program)->compiled.image.size();
  return *bytes > 0 ? kSuccess : kInvalidProgram;
}
CUOP_SIMULATOR_ENTRY int nvrtcGetCUBIN(void* program, char* image) {
  const std::string& bytes = program_of(program)->compiled.image;
  std::memcpy(image, bytes.data(), bytes.size());
  return bytes.empty() ? kInvalidProgram : kSuccess;
}

}  // namespace cuop::simulator
