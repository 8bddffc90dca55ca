#include "cuop/jit/compile_service.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include "cuop/backend/current_device.h"
#include "cuop/backend/device_properties.h"
#include "cuop/backend/execution.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/cache_directory.h"
#include "cuop/core/deadline.h"
#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/jit/compile_attempt.h"

namespace cuop::jit {

namespace {

const CachePlace& place_of_thread() { return backend::execution_options().cache_place; }

using Clock = std::chrono::steady_clock;
constexpr double kMostSeconds = 1e8;  // three years; more would not fit the clock

/// The source for a reader: what else decides about the binary goes before it.
std::string listing(const CompileRequest& request) {
  std::string text = cat("// ", request.name, " for ", request.arch);
  for (const std::string& option : request.options) text += cat(" ", option);
  return cat(text, "\n", request.source);
}

/// Everything that the process's compilations share. Never destroyed: threads may still compile
/// while the process ends.
class Service final : ForkListed {
 public:
  Service() { enlist(); }
  static Service& instance() {
    static auto* service = new Service;
    return *service;
  }

  CompileSettings settings() {
    const std::lock_guard lock(mutex_);
    return settings_;
  }

  void set(const CompileSettings& settings) {
    const std::lock_guard lock(mutex_);
    settings_ = settings;
    if (cache_) damaged_before_ += cache_->statistics().damaged;
    cache_ = nullptr;
    own_caches_.clear();
  }

  std::shared_ptr<DiskCache> cache() {
    const std::lock_guard lock(mutex_);
    if (!cache_) {
      const std::string directory = settings_.directory.empty()
                                        ? kernel_directory(default_cache_directory())
                                        : settings_.directory;
      cache_ = std::make_shared<DiskCache>(directory, settings_.max_bytes);
    }
    return cache_;
  }

  /// Where this thread's binaries are kept, beside or instead of the shared cache.
  std::shared_ptr<DiskCache> cache_of_thread() {
    if (place_of_thread().kind != CachePlace::Kind::kOwn) return cache();
    const std::string& directory = place_of_thread().directory;
    const std::lock_guard lock(mutex_);
    auto& own = own_caches_[directory];
    if (!own) own = std::make_shared<DiskCache>(kernel_directory(directory), settings_.max_bytes);
    return own;
  }

  CompileStatistics statistics() {
    const std::lock_guard lock(mutex_);
    CompileStatistics result = statistics_;
    result.running = running_;
    result.damaged_entries = damaged_before_ + (cache_ ? cache_->statistics().damaged : 0);
    return result;
  }

  CompiledKernel compile(const CompileRequest& request) {
    CompileSettings now = settings();
    now.timeout = std::min(now.timeout, seconds_left());
    const Nvrtc& nvrtc = Nvrtc::instance();
    if (!nvrtc.is_available()) return nvrtc.compile(request, now.timeout);  // says why not
    const std::string key = compile_key(request, nvrtc.identity());
    const std::shared_ptr<DiskCache> kept_in = cache_of_thread();
    if (now.keeps_texts) kept_in->save_text(key, ".cu", listing(request));
    const auto deadline = deadline_of(now);
    if (!now.is_caching) return compile_now(request, now, deadline);
    const CachePlace::Kind kind = place_of_thread().kind;
    if (kind == CachePlace::Kind::kNowhere) {
      const auto kept = kept_in->load(key);
      return kept ? count_hit(*kept) : compile_now(request, now, deadline);
    }
    CompiledKernel fresh;
    bool is_fresh = false;
    const auto make = [&]() -> DiskCache::Binary {
      if (kind == CachePlace::Kind::kOwn) {
        if (const auto shared = cache()->load(key)) return *shared;
      }
      fresh = compile_now(request, now, deadline);
      is_fresh = true;
      return {fresh.image, fresh.made_in_ms};
    };
    // Another process that stands still must leave the time to do it here.
    const DiskCache::Binary binary =
        kept_in->load_or_make(key, entry_name(request), now.timeout / 2, make);
    return is_fresh ? fresh : count_hit(binary);
  }

  std::optional<CompiledKernel> find(const CompileRequest& request) {
    const Nvrtc& nvrtc = Nvrtc::instance();
    if (!settings().is_caching || !nvrtc.is_available()) return std::nullopt;
    const std::string key = compile_key(request, nvrtc.identity());
    const std::shared_ptr<DiskCache> kept_in = cache_of_thread();
    auto binary = kept_in->load(key);
    if (!binary && place_of_thread().kind == CachePlace::Kind::kOwn) {
      binary = cache()->load(key);
      if (binary) kept_in->save(key, cat(request.name, " ", request.arch), *binary);
    }
    if (binary && settings().keeps_texts) kept_in->save_text(key, ".cu", listing(request));
    return binary ? std::optional(count_hit(*binary)) : std::nullopt;
  }

  std::shared_future<CompiledKernel> compile_later(CompileRequest request) {
    Nvrtc::instance();  // not by a thread beside which the process may end
    std::packaged_task<CompiledKernel()> task(
        [this, kept = std::move(request), place = place_of_thread()] {
          const backend::ExecutionScope scope(backend::with_cache_place(place));
          return compile(kept);
        });
    std::shared_future<CompiledKernel> result = task.get_future().share();
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(task));
    if (std::ssize(waiting_) > idle_ && threads_ < settings_.max_threads) start_thread();
    ++given_;
    given_.notify_one();
    return result;
  }

 private:
  /// The lock is held. Without any thread the last task is taken back and the error is the
  /// caller's.
  void start_thread() {
    try {
      std::thread([this] { work(); }).detach();
      ++threads_;
    } catch (const std::system_error&) {
      if (threads_ > 0) return;
      waiting_.pop_back();
      throw;
    }
  }

  CompiledKernel count_hit(const DiskCache::Binary& binary) {
    const std::lock_guard lock(mutex_);
    ++statistics_.disk_hits;
    statistics_.saved_ms += binary.made_in_ms;
    return {binary.image, "", binary.made_in_ms};
  }

  static std::string entry_name(const CompileRequest& request) {
    return cat(request.name, " ", request.arch);
  }

  static Clock::time_point deadline_of(const CompileSettings& now) {
    return Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(now.timeout));
  }

  /// Waits until fewer threads compile than may.
  void take_turn(const CompileRequest& request, const CompileSettings& now,
                 Clock::time_point deadline) {
    constexpr std::chrono::milliseconds kLook{1};  // kernels take many of them
    while (!try_to_take_turn()) {
      if (Clock::now() >= deadline) {
        const std::lock_guard lock(mutex_);
        throw CompilationError(cat("jit: ", request.name, " did not get its turn to be compiled ",
                                   "within ", now.timeout, " s (compilation_timeout); ", running_,
                                   " threads compile, max_compilation_threads is ",
                                   settings_.max_threads));
      }
      std::this_thread::sleep_for(kLook);
      check_interrupt();
    }
  }

  bool try_to_take_turn() {
    const std::lock_guard lock(mutex_);
    if (running_ >= settings_.max_threads) return false;
    ++running_;
    return true;
  }

  void give_turn_back() {
    const std::lock_guard lock(mutex_);
    --running_;
  }

  /// On a thread of its own, which is left at the deadline: there are phases in which a compiler
  /// does not ask whether it is to stop. It keeps its turn until it has ended.
  CompiledKernel compile_now(const CompileRequest& request, const CompileSettings& now,
                             Clock::time_point deadline) {
    take_turn(request, now, deadline);
    const auto attempt = std::make_shared<CompileAttempt>();
    try {
      attempt->start(
          [this, request, now, deadline] {
            struct Turn {
              Service& service;
              ~Turn() { service.give_turn_back(); }
            } const turn{*this};
            const std::chrono::duration<double> left = deadline - Clock::now();
            CompiledKernel compiled = compile_with_log(request, now, std::max(left.count(), 0.0));
            const std::lock_guard lock(mutex_);
            ++statistics_.compilations;
            statistics_.compile_ms += compiled.made_in_ms;
            return compiled;
          },
          [this, request, now](const CompiledKernel& late) {
            if (!now.is_caching) return;
            cache()->save(compile_key(request, Nvrtc::instance().identity()), entry_name(request),
                          {late.image, late.made_in_ms});
          });
    } catch (const std::system_error& error) {
      give_turn_back();
      throw CompilationError(cat("jit: ", request.name, " is not compiled: ", error.what()));
    }
    if (auto compiled = attempt->wait(deadline)) return std::move(*compiled);
    if (now.is_caching) {  // another process may have been faster
      const auto found = cache()->load(compile_key(request, Nvrtc::instance().identity()));
      if (found) return {found->image, "", found->made_in_ms};
    }
    throw CompilationError(too_late(request, now.timeout));
  }

  CompiledKernel compile_with_log(const CompileRequest& request, const CompileSettings& now,
                                  double seconds) {
    const Nvrtc& nvrtc = Nvrtc::instance();
    const auto keep_log = [&](const std::string& text) {
      if (!now.keeps_texts || !nvrtc.is_available()) return;
      cache_of_thread()->save_text(compile_key(request, nvrtc.identity()), ".log", text);
    };
    try {
      CompiledKernel compiled = nvrtc.compile(request, seconds);
      keep_log(cat("compiled in ", compiled.made_in_ms, " ms\n", compiled.log));
      return compiled;
    } catch (const Error& error) {
      keep_log(error.what());
      throw;
    }
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      ++idle_;
      while (waiting_.empty()) {
        const uint32_t seen = given_;
        lock.unlock();
        given_.wait(seen);
        lock.lock();
      }
      --idle_;
      std::packaged_task<CompiledKernel()> task = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  /// A forked child has none of the threads.
  void renew() noexcept override { running_ = threads_ = idle_ = 0; }

  ForkMutex mutex_;  ///< of all below
  CompileSettings settings_;
  CompileStatistics statistics_;
  std::shared_ptr<DiskCache> cache_;
  std::map<std::string, std::shared_ptr<DiskCache>> own_caches_;  ///< by directory
  int64_t damaged_before_ = 0;
  int running_ = 0;
  std::deque<std::packaged_task<CompiledKernel()>> waiting_;
  std::atomic<uint32_t> given_ = 0;  ///< how many there ever were
  int threads_ = 0, idle_ = 0;
};

[[noreturn]] void refuse(const char* what, double given, const char* allowed) {
  throw CompilationError(cat("jit: ", what, " is ", given, "; ", allowed));
}

std::string absence_of_kernels(Device device) {
  const Nvrtc& nvrtc = Nvrtc::instance();
  if (!nvrtc.is_available()) return nvrtc.reason();
  try {
    const auto& properties = backend::runtime(device).properties();
    architecture_of(properties.major, properties.minor);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

const bool is_kernel_check_set = [] {
  backend::set_kernel_check(&absence_of_kernels);
  return true;
}();

}  // namespace

std::string kernel_directory(const std::string& cache_directory) {
  return (std::filesystem::path(cache_directory) / "kernels").string();
}

CompileSettings compile_settings() { return Service::instance().settings(); }

void set_compile_settings(const CompileSettings& settings) {
  if (settings.max_bytes < 0) {
    refuse("max_bytes", static_cast<double>(settings.max_bytes), "allowed are 0 and more");
  }
  if (!(settings.timeout > 0 && settings.timeout <= kMostSeconds)) {
    refuse("timeout", settings.timeout, "allowed are positive seconds, up to 1e8");
  }
  if (settings.max_threads < 1) {
    refuse("max_threads", settings.max_threads, "at least 1 must compile");
  }
  Service::instance().set(settings);
}

CompileStatistics compile_statistics() { return Service::instance().statistics(); }

std::shared_ptr<DiskCache> kernel_disk_cache() { return Service::instance().cache(); }

CompiledKernel compile_kernel(const CompileRequest& request) {
  return Service::instance().compile(request);
}

std::optional<CompiledKernel> find_compiled(const CompileRequest& request) {
  return Service::instance().find(request);
}

std::shared_future<CompiledKernel> compile_in_background(CompileRequest request) {
  return Service::instance().compile_later(std::move(request));
}

std::string architecture_of(int major, int minor) {
  const int number = 10 * major + minor;
  const Nvrtc& nvrtc = Nvrtc::instance();
  const std::vector<int>& known = nvrtc.architectures();
  if (nvrtc.is_available() && std::find(known.begin(), known.end(), number) == known.end()) {
    throw CompilationError(cat("jit: NVRTC ", nvrtc.major(), ".", nvrtc.minor(),
                               " does not know devices of compute capability ", major, ".", minor,
                               "; it knows ", join(known)));
  }
  return cat("sm_", number, number >= 90 ? "a" : "");
}

void check_architecture(const std::string& kernel, const std::string& arch) {
  const Nvrtc& nvrtc = Nvrtc::instance();
  if (!nvrtc.is_available()) return;  // which the compilation says
  std::vector<std::string> known;
  for (const int number : nvrtc.architectures()) known.push_back(cat("sm_", number));
  const bool has_suffix = arch.ends_with('a') || arch.ends_with('f');
  const std::string plain = arch.substr(0, arch.size() - (has_suffix ? 1 : 0));
  if (std::find(known.begin(), known.end(), plain) != known.end()) return;
  throw CompilationError(cat("jit: ", kernel, ": arch is '", arch, "'; NVRTC ", nvrtc.major(), '.',
                             nvrtc.minor(), " knows ", join(known),
                             ", and an 'a' behind those that have features of their own"));
}

}  // namespace cuop::jit
