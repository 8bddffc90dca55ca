#include "tests/simulator/module.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <regex>

#include "cuop/core/text.h"
#include "tests/simulator/address_space.h"
#include "tests/simulator/block.h"
#include "tests/simulator/device.h"
#include "tests/simulator/settings.h"

namespace cuop::simulator {

namespace {

constexpr const char* kKernelPrefix = "simulated_kernel_";
/// Shared memory that a kernel with memory from its launch declares for itself.
constexpr size_t kLittle = 1 << 10;
/// What a block's shared memory holds before anybody wrote there.
constexpr int kSharedByte = 0xdb;

bool is_host_binary(const void* image) {
  const auto& header = *static_cast<const Elf64_Ehdr*>(image);
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_machine == EM_X86_64;
}

/// The table of sections is the last of what the linker writes.
size_t size_of(const void* image) {
  const auto& header = *static_cast<const Elf64_Ehdr*>(image);
  return header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
}

/// By a name that no other had: the loader takes the same name for the same library.
void* open_image(const void* image) {
  static std::atomic<int> serial = 0;
  const std::string folder = std::filesystem::temp_directory_path().string();
  const std::string name = cat(folder, "/cuop-simulated-", getpid(), '-', serial++, ".so");
  const int file = open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) return nullptr;
  void* handle = nullptr;
  const size_t bytes = size_of(image);
  if (write(file, image, bytes) == static_cast<ssize_t>(bytes)) {
    handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) std::fprintf(stderr, "simulated GPU: %s\n", dlerror());
  }
  close(file);
  unlink(name.c_str());
  return handle;
}

/// The one kernel of PTX that the simulator runs: `.entry NAME() { trap; }`.
std::string name_of_trap(const char* ptx) {
  static const std::regex pattern(R"(\.entry\s+(\w+)\s*\(\s*\)\s*\{\s*trap;\s*\})");
  std::cmatch match;
  return std::regex_search(ptx, match, pattern) ? match[1].str() : "";
}

std::atomic<uint64_t> runners = 0;

BlockRunner& runner() {
  static thread_local BlockRunner made(static_cast<uint64_t>(settings().seed) + ++runners);
  return made;
}

/// The arguments as the kernel will find them, whatever the caller does with its own.
struct Arguments {
  std::vector<std::max_align_t> bytes;
  std::vector<size_t> offsets;
};

Arguments copied(const KernelInfo& info, void** given) {
  Arguments result;
  size_t end = 0;
  for (int i = 0; i < info.argument_count; ++i) {
    result.offsets.push_back(end);
    end += (info.argument_bytes[i] + 63) / 64 * 64;
  }
  result.bytes.resize(end / sizeof(std::max_align_t) + 4);
  for (int i = 0; i < info.argument_count; ++i) {
    std::memcpy(
        reinterpret_cast<char*>(result.bytes.data()) + result.offsets[static_cast<size_t>(i)],
        given[i], info.argument_bytes[i]);
  }
  return result;
}

bool is_registered(const void* data, unsigned long bytes) {
  return AddressSpace::instance().is_registered(data, bytes);
}

void prepare_memory(Running& running, int device) {
  const AddressSpace& space = AddressSpace::instance();
  running.window = space.base();
  running.window_bytes = AddressSpace::kBytes;
  running.reachable = space.reach();
  running.present = space.present();
  running.device_bit = static_cast<unsigned char>(1u << device);
  running.is_registered = &is_registered;
}

Result run(const Launch& launch, const Arguments& arguments, int device) {
  Function& function = *launch.function;
  const KernelInfo& info = function.info;
  if (info.call == nullptr) return Result::kLaunchFailed;  // the kernel that traps
  std::vector<void*> pointers;
  for (const size_t offset : arguments.offsets) {
    const auto* at = reinterpret_cast<const char*>(arguments.bytes.data()) + offset;
    pointers.push_back(const_cast<char*>(at));
  }
  BlockRunner& blocks = runner();
  const uint64_t count = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  blocks.begin_launch();
  // From anywhere, in steps that come to every block once.
  uint64_t step = 1 + blocks.random()() % count;
  while (std::gcd(step, count) != 1) step = 1 + step % count;
  uint64_t at = blocks.random()() % count;
  for (uint64_t i = 0; i < count; ++i, at = (at + step) % count) {
    const std::lock_guard lock(function.module->running);
    Running& running = *info.running;
    prepare_memory(running, device);
    blocks.prepare(running);
    running.grid = launch.grid;
    running.block_size = launch.block;
    const auto x = at % launch.grid.x, rest = at / launch.grid.x;
    running.block = {static_cast<unsigned>(x), static_cast<unsigned>(rest % launch.grid.y),
                     static_cast<unsigned>(rest / launch.grid.y)};
    std::memset(info.shared_begin, kSharedByte, function.shared_bytes());
    const std::string failure =
        blocks.run(running, info.call, pointers.data(), info.shared_begin, info.shared_end);
    if (failure.empty()) continue;
    std::fprintf(stderr, "simulated GPU: %s: %s\n", function.name.c_str(), failure.c_str());
    return Result::kIllegalAddress;
  }
  return Result::kSuccess;
}

}  // namespace

unsigned Function::max_threads() const {
  return info.max_threads > 0 ? info.max_threads : kMaxThreads;
}

Result Module::load(const void* image, std::shared_ptr<Module>& module) {
  auto made = std::make_shared<Module>();
  if (is_host_binary(image)) {
    made->handle_ = open_image(image);
    if (made->handle_ == nullptr) return Result::kInvalidImage;
  } else {
    const char* text = static_cast<const char*>(image);
    if (std::memcmp(text, ELFMAG, SELFMAG) == 0) return Result::kNoBinaryForGpu;
    made->trap_ = name_of_trap(text);
    if (made->trap_.empty()) return Result::kInvalidPtx;
  }
  module = std::move(made);
  return Result::kSuccess;
}

Module::~Module() {
  if (handle_ != nullptr) dlclose(handle_);
}

Function* Module::find(const std::string& name) {
  const std::lock_guard lock(running);
  auto& function = functions_[name];
  if (function != nullptr) return function.get();
  const KernelInfo* info = nullptr;
  if (handle_ != nullptr) {
    info = static_cast<const KernelInfo*>(dlsym(handle_, (kKernelPrefix + name).c_str()));
  }
  if (info == nullptr && (trap_.empty() || name != trap_)) {
    functions_.erase(name);
    return nullptr;
  }
  function = std::make_unique<Function>();
  function->module = this;
  function->name = name;
  if (info != nullptr) function->info = *info;
  return function.get();
}

Result prepare(const Launch& launch, void** arguments, int device, Work& work) {
  const Function& function = *launch.function;
  const KernelInfo& info = function.info;
  const Index3 g = launch.grid, b = launch.block;
  const auto limit = [device](DeviceAttribute which) {
    return static_cast<size_t>(attribute(which, device));
  };
  const bool is_grid =
      g.x >= 1 && g.y >= 1 && g.z >= 1 && g.x <= limit(DeviceAttribute::kMaxGridX) &&
      g.y <= limit(DeviceAttribute::kMaxGridY) && g.z <= limit(DeviceAttribute::kMaxGridZ);
  const bool is_block = b.x >= 1 && b.y >= 1 && b.z >= 1 && b.z <= 64 &&
                        size_t{b.x} * b.y * b.z <= function.max_threads();
  if (!is_grid || !is_block) return Result::kInvalidValue;
  if (launch.dynamic_shared > function.max_dynamic_shared ||
      function.shared_bytes() > limit(DeviceAttribute::kMaxSharedMemoryPerBlockOptin)) {
    return Result::kInvalidValue;
  }
  // Here a binary declares what the launch gives it (block_room of jit/kernels/block_copy.cuh):
  // that much must be asked for, and what it declares beside it is little.
  const size_t given = launch.dynamic_shared;
  if (given > 0 && (function.shared_bytes() < given || function.shared_bytes() > given + kLittle)) {
    return Result::kInvalidValue;
  }
  if (info.argument_count > 0 && arguments == nullptr) return Result::kInvalidValue;
  for (int i = 0; i < info.argument_count; ++i) {
    if (arguments[i] == nullptr) return Result::kInvalidValue;
  }
  auto kept = std::make_shared<const Arguments>(copied(info, arguments));
  work = [launch, kept, device, module = launch.function->module->shared_from_this()] {
    return run(launch, *kept, device);
  };
  return Result::kSuccess;
}

}  // namespace cuop::simulator
