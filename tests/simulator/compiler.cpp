#include "tests/simulator/compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace cuop::simulator {

namespace {

namespace fs = std::filesystem;

// No contraction and no vector order, as NVRTC is told; every access to memory is checked. Nothing
// is linked that a kernel does not call, so that .bss is the block's shared memory.
constexpr const char* kCompile[] = {"-x",
                                    "c++",
                                    "-std=gnu++20",
                                    "-O1",
                                    "-w",
                                    "-fPIC",
                                    "-D__CUDACC_RTC__=1",
                                    "-D__CUDA_ARCH__=900",
                                    "-ffp-contract=off",
                                    "-fno-exceptions",
                                    "-fno-rtti",
                                    "-fno-threadsafe-statics",
                                    "-fno-strict-aliasing",
                                    "-fvisibility=hidden",
                                    "-fsanitize=kernel-address,alignment,bounds",
                                    "-fno-sanitize-recover=alignment,bounds",
                                    "--param",
                                    "asan-instrumentation-with-call-threshold=0",
                                    "--param",
                                    "asan-stack=0",
                                    "--param",
                                    "asan-globals=0",
                                    "-I.",
                                    "-c",
                                    "-o",
                                    "kernel.o"};
constexpr const char* kLink[] = {"-shared",  "-nostdlib", "-nostartfiles", "-Wl,-Bsymbolic",
                                 "kernel.o", "-o",        "kernel.so",     "-lm",
                                 "-lc",      "-lgcc"};
constexpr const char* kFrameFiles[] = {"tests/simulator/kernel_frame.h",
                                       "tests/simulator/kernel_interface.h",
                                       "tests/simulator/device_text.h"};

/// A folder that goes with its scope.
class Folder {
 public:
  Folder() : path_((fs::temp_directory_path() / "cuop-simulator-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary folder");
  }
  ~Folder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& folder, const std::string& name, const std::string& text) {
  const fs::path path = folder / name;
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string read_frame(const char* file) { return read(fs::path(CUOP_SIMULATOR_ROOT) / file); }

/// The exit status of the command, run in the folder with its output in the file `log` there.
int run(const std::vector<std::string>& command, const std::string& folder) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, 1, "log", O_CREAT | O_WRONLY | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int error = posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

Compiled compile(const std::vector<SourceFile>& files, const std::vector<std::string>& defines) {
  // Everything lies in a folder that is the compiler's own, so that a compiler cache knows a kernel
  // again wherever the sources are.
  const Folder folder;
  for (const SourceFile& file : files) write(folder.path(), file.name, file.text);
  for (const char* file : kFrameFiles) write(folder.path(), file, read_frame(file));
  std::vector<std::string> command;
  if (*CUOP_SIMULATOR_CCACHE != '\0') command.emplace_back(CUOP_SIMULATOR_CCACHE);
  command.emplace_back(CUOP_SIMULATOR_COMPILER);
  command.insert(command.end(), std::begin(kCompile), std::end(kCompile));
  command.insert(command.end(), defines.begin(), defines.end());
  command.push_back(files.front().name);
  Compiled result;
  result.is_good = run(command, folder.path()) == 0;
  if (result.is_good) {
    command = {CUOP_SIMULATOR_COMPILER};
    command.insert(command.end(), std::begin(kLink), std::end(kLink));
    result.is_good = run(command, folder.path()) == 0;
  }
  result.log = read(fs::path(folder.path()) / "log");
  if (result.is_good) result.image = read(fs::path(folder.path()) / "kernel.so");
  return result;
}

unsigned compiler_fingerprint() {
  unsigned hash = 2166136261u;  // FNV-1a
  const auto add = [&hash](const std::string& text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  };
  for (const char* file : kFrameFiles) add(read_frame(file));
  for (const char* option : kCompile) add(option);
  for (const char* option : kLink) add(option);
  add(CUOP_SIMULATOR_COMPILER __VERSION__);
  return hash;
}

}  // namespace cuop::simulator
