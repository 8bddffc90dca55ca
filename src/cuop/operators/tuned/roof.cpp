#include "cuop/operators/tuned/roof.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "cuop/backend/cpu/blas_library.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/interruptible.h"
#include "cuop/core/log.h"
#include "cuop/core/lru_cache.h"
#include "cuop/operators/tuned/config.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/tune/choice_store.h"
#include "cuop/tune/machine.h"

namespace cuop {

namespace {

constexpr int kRepetitions = 3;
constexpr double kLongEnoughMs = 3.0;  // beside this, starting the work does not count
constexpr int64_t kFirstSize = 512;    // of a matrix
constexpr int64_t kLastSizeCpu = 1024, kLastSizeGpu = 8192;
constexpr int64_t kCopyBytesCpu = int64_t{64} << 20;  // beyond the caches
constexpr int64_t kCopyBytesGpu = int64_t{512} << 20;

double per_second(double amount, double ms) { return amount / (std::max(ms, 1e-6) * 1e-3); }

/// Shortest of some runs after the first, which warmed up and took `first_ms` itself.
double best_ms(const std::function<void()>& work, double first_ms, tune::Clock& clock) {
  double best = first_ms;
  for (int i = 0; i < kRepetitions; ++i) best = std::min(best, clock.time_ms(work));
  return best;
}

double measure_copy(Device device, tune::Clock& clock) {
  const int64_t free = backend::runtime(device).memory_info().free;
  const int64_t bytes = std::min(device.is_cpu() ? kCopyBytesCpu : kCopyBytesGpu, free / 8);
  if (bytes < 8) return 0.0;
  const Shape shape{bytes / 4};
  // The system gives one and the same page for memory that was never written, on a GPU it does not.
  const Tensor from = device.is_cpu() ? ones(shape) : empty(shape, DType::kFloat32, device);
  const Tensor to = empty(shape, DType::kFloat32, device);
  auto* const dst = static_cast<char*>(to.data());
  const auto* const src = static_cast<const char*>(from.data());
  const int64_t count = from.nbytes();
  const auto copy = [&] {
    if (!device.is_cpu()) {
      return backend::runtime(device).copy(dst, src, count, current_stream(device));
    }
    backend::parallel_for(count, 1 << 20, [&](int64_t begin, int64_t end) {
      std::memcpy(dst + begin, src + begin, static_cast<size_t>(end - begin));
    });
  };
  const double ms = best_ms(copy, clock.time_ms(copy), clock);
  return per_second(2.0 * static_cast<double>(count), ms);
}

double measure_product(DType dtype, Device device, tune::Clock& clock) {
  if (device.is_cpu() && !backend::blas::info().is_available) return 0.0;
  const int64_t last = device.is_cpu() ? kLastSizeCpu : kLastSizeGpu;
  for (int64_t size = kFirstSize;; size *= 2) {
    const Tensor a = full({size, size}, 0.5, dtype, device);
    const Tensor b = full({size, size}, 0.25, dtype, device);
    const Tensor c = empty({size, size}, dtype, device);
    const auto product = [&] { matmul(a, b, {}, &c); };
    clock.time_ms(product);  // the library's own preparations
    const double ms = clock.time_ms(product);
    if (ms < kLongEnoughMs && size < last) continue;
    const auto n = static_cast<double>(size);
    return per_second(2.0 * n * n * n, best_ms(product, ms, clock));
  }
}

/// Whether others use the device so much that a measurement would tell of them as well.
bool is_busy(Device device) {
  if (!device.is_cpu()) return !backend::runtime(device).is_idle(current_stream(device));
  double load = 0.0;
  return getloadavg(&load, 1) == 1 && load > 1.5 &&
         load > 0.5 * static_cast<double>(std::thread::hardware_concurrency());
}

std::string key_of(DType dtype, Device device) {
  return cat("roof of ", dtype, " on ", backend::runtime(device).description(), ", ",
             tune::machine_text(device));
}

tune::ChoiceStore store_of(const GlobalJitConfig& global) {
  return {global.cache_dir + "/roofs", global.max_cache_size};
}

std::optional<Roof> stored_roof(DType dtype, Device device) {
  const GlobalJitConfig global = global_jit_config();
  if (!global.enable_caching) return std::nullopt;
  const auto kept = store_of(global).load(key_of(dtype, device));
  Roof roof;
  return kept && parse_roof(kept->value, roof) ? std::optional(roof) : std::nullopt;
}

Roof measured_and_stored(DType dtype, Device device) {
  const GlobalJitConfig global = global_jit_config();
  const bool keeps = global.enable_caching && !is_busy(device);
  const std::string key = key_of(dtype, device);
  const int64_t start = trace::now_ns();
  const Roof roof = measure_roof(dtype, device, *tune::clock_for(device));
  const double took_ms = static_cast<double>(trace::now_ns() - start) * 1e-6;
  log(LogLevel::kDebug, key, ": ", to_text(roof), ", measured in ", took_ms, " ms");
  if (keeps) store_of(global).save(key, {to_text(roof), took_ms, 0.0, kRepetitions});
  return roof;
}

/// What this process has measured or read.
struct Roofs {
  /// One thread measures, the others wait for what it finds.
  InterruptibleMutex measuring{"measured_roof"};
  SharedLruCache<int, std::optional<Roof>> known{256};
};
Roofs& roofs() {
  static auto* instance = new Roofs;
  return *instance;
}

int place_of(DType dtype, Device device) {
  return (device.is_cpu() ? 0 : device.index + 1) * 256 + static_cast<int>(dtype);
}

DType measured_dtype(DType dtype) { return dtype == DType::kFloat64 ? dtype : DType::kFloat32; }

}  // namespace

Roof measure_roof(DType dtype, Device device, tune::Clock& clock) {
  Roof roof;
  roof.bytes_per_second = measure_copy(device, clock);
  try {
    roof.flops_per_second = measure_product(dtype, device, clock);
  } catch (const Error& error) {  // a yardstick that is not there must not end what it measures
    log(LogLevel::kInfo, "roof: no product on ", device, ": ", error.what());
  }
  return roof;
}

std::string to_text(const Roof& roof) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6g flop/s %.6g B/s", roof.flops_per_second,
                roof.bytes_per_second);
  return text;
}

bool parse_roof(const std::string& text, Roof& roof) {
  Roof read;
  int end = 0;
  const int fields = std::sscanf(text.c_str(), "%lf flop/s %lf B/s%n", &read.flops_per_second,
                                 &read.bytes_per_second, &end);
  const bool is_good = fields == 2 && static_cast<size_t>(end) == text.size() &&
                       read.flops_per_second >= 0.0 && read.bytes_per_second > 0.0;
  if (is_good) roof = read;
  return is_good;
}

std::optional<Roof> known_roof(DType dtype, Device device) {
  const DType measured = measured_dtype(dtype);
  return roofs().known.get(place_of(measured, device),
                           [&] { return stored_roof(measured, device); });
}

Roof measured_roof(DType dtype, Device device) {
  if (backend::runtime(device).is_recording(current_stream(device))) return {};
  const auto lock = lock_unless_mine(roofs().measuring);
  if (const auto known = known_roof(dtype, device)) return *known;
  const DType measured = measured_dtype(dtype);
  const Roof roof = measured_and_stored(measured, device);
  roofs().known.put(place_of(measured, device), roof);
  return roof;
}

double percent_of_roof(const Cost& cost, double milliseconds, const Roof& roof) {
  if (!(milliseconds > 0.0)) return 0.0;
  const double for_flops = roof.flops_per_second > 0.0 ? cost.flops / roof.flops_per_second : 0.0;
  const double for_bytes =
      roof.bytes_per_second > 0.0 ? static_cast<double>(cost.bytes) / roof.bytes_per_second : 0.0;
  return std::max(for_flops, for_bytes) * 1e3 / milliseconds * 100.0;
}

}  // namespace cuop
