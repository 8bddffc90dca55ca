#include "cuop/operators/tuned/no_effect.h"

#include <atomic>
#include <mutex>
#include <set>

#include "cuop/core/fork_mutex.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"
#include "cuop/operators/tuned/demands.h"

namespace cuop {

namespace {

using backend::KernelType;

std::atomic<WarningOutput> output = nullptr;

struct FieldRow {
  const char* field;
  bool is_set;
  std::string value;
  const char* why;
};

/// True for the first caller of the process with this field.
bool is_news(const std::string& field) {
  static auto& mutex = *new ForkMutex;
  static auto* const told = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return told->insert(field).second;
}

}  // namespace

std::vector<NoEffect> fields_without_effect(const JitConfig& config, Device device,
                                            const KernelTraits& traits) {
  if (!device.is_cpu()) return {};
  const bool has_tiles = traits.takes_tile && !wants_simple(config);
  const FieldRow rows[] = {
      {"kernel_type", config.kernel_type == KernelType::kTensorCore, "tensor_core",
       "it asks for a GPU's matrix units; the kernel is chosen as by 'auto'"},
      {"tile_size", config.tile_size != 0 && !has_tiles, cat(config.tile_size),
       traits.takes_tile ? "the CPU's simple kernel has no tiles"
                         : "the CPU's kernels of this operator have no tiles"},
      {"block_size", config.block_size != 0, cat(config.block_size),
       "it counts the threads of a GPU's block"},
      {"num_stages", config.num_stages != 0, cat(config.num_stages),
       "it counts the stages of a GPU kernel's pipeline"},
      {"enable_tensor_core", !config.enable_tensor_core, "False",
       "it is about a GPU's matrix units"},
      {"enable_tma", config.enable_tma, "True", "it is about a GPU's tensor memory accelerator"},
      {"max_registers", config.max_registers != 0, cat(config.max_registers),
       "it limits the registers of a GPU's threads"},
      {"enable_shared_memory_opt", !config.enable_shared_memory_opt, "False",
       "it is about a GPU's shared memory"},
      {"enable_loop_unroll", !config.enable_loop_unroll, "False",
       "the CPU's kernels are compiled ahead of time"},
      {"enable_memory_coalescing", !config.enable_memory_coalescing, "False",
       "it is about how a GPU's threads read memory"}};
  std::vector<NoEffect> fields;
  for (const FieldRow& row : rows) {
    if (!row.is_set) continue;
    fields.push_back(
        {row.field, cat(row.field, "=", row.value, ": no effect on ", device, " (", row.why, ")")});
  }
  return fields;
}

void warn_of_no_effect(const std::string& who, const std::vector<NoEffect>& fields) {
  for (const NoEffect& field : fields) {
    if (!is_news(field.field)) continue;
    const std::string text = cat(who, ": ", field.text, "; of this field it is said once");
    if (const WarningOutput write = output) {
      write(text);
    } else {
      log(LogLevel::kWarn, text);
    }
  }
}

void set_no_effect_output(WarningOutput wanted) { output = wanted; }

}  // namespace cuop
