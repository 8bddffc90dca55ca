#include "cuop/core/nvtx.h"

#include <array>
#include <cstdint>

#include "cuop/core/env.h"
#include "cuop/core/log.h"

namespace cuop::nvtx {

namespace {

// The binary interface between a program and a profiler's library.
using FunctionPointer = void (*)();
using FunctionTable = FunctionPointer**;
enum Module : int { kCore = 1, kCore2 = 5 };
enum CoreFunction : size_t { kRangePush = 9, kRangePop = 11 };
enum ExportTable : uint32_t { kCallbacks = 1, kVersion = 3 };
constexpr unsigned kFunctions = 16;  // of each module, the unused first place among them
constexpr uint32_t kProtocolVersion = 3;

struct Callbacks {
  size_t struct_size;
  int (*get_module_function_table)(int module, FunctionTable* table, unsigned* size);
};
struct VersionInfo {
  size_t struct_size;
  uint32_t version;
  uint32_t reserved;
  void (*set_injection_version)(uint32_t version);
};
using GetExportTable = const void* (*)(uint32_t id);

/// A module's functions, null until the profiler fills them in, and where each stands.
struct Functions {
  std::array<FunctionPointer, kFunctions> entries{};
  std::array<FunctionPointer*, kFunctions> places{};
  Functions() {
    for (size_t i = 1; i < kFunctions; ++i) places[i] = &entries[i];
  }
};
Functions& functions_of(int module) {
  static Functions core, core2;
  return module == kCore ? core : core2;
}

int get_module_function_table(int module, FunctionTable* table, unsigned* size) {
  if (module != kCore && module != kCore2) return 0;
  if (table != nullptr) *table = functions_of(module).places.data();
  if (size != nullptr) *size = kFunctions;
  return 1;
}

const void* get_export_table(uint32_t id) {
  static const Callbacks callbacks{sizeof(Callbacks), &get_module_function_table};
  static const VersionInfo version{sizeof(VersionInfo), kProtocolVersion, 0, [](uint32_t) {}};
  if (id == kCallbacks) return &callbacks;
  return id == kVersion ? &version : nullptr;
}

bool attach_named() {
  const std::string& path = env().nvtx_library.value;
  if (path.empty() || path == "off") return false;
  const DynLib library("NVTX", {path});
  if (attach(library)) return true;
  log(LogLevel::kWarn, "nvtx: ", path, " gets no ranges: ",
      library.is_loaded() ? "it does not take the connection" : library.reason());
  return false;
}

}  // namespace

bool attach(const DynLib& library) {
  using Initialize = int (*)(GetExportTable);
  const auto initialize = reinterpret_cast<Initialize>(library.find("InitializeInjectionNvtx2"));
  return initialize != nullptr && initialize(&get_export_table) != 0;
}

bool is_attached() {
  static const bool is = attach_named();
  return is;
}

void push(const char* name) {
  const FunctionPointer entry = functions_of(kCore).entries[kRangePush];
  if (entry != nullptr) reinterpret_cast<int (*)(const char*)>(entry)(name);
}

void pop() {
  const FunctionPointer entry = functions_of(kCore).entries[kRangePop];
  if (entry != nullptr) reinterpret_cast<int (*)()>(entry)();
}

}  // namespace cuop::nvtx
