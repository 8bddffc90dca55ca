#include "cuop/operators/jit/chooser.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <unordered_map>

#include "cuop/backend/cpu/blas.h"
#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"

namespace cuop {

namespace {

constexpr size_t kMostRemembered = 1 << 16;

struct Remembered {
  Kernel kernel;
  double made_in_ms = 0.0;
  std::string stored_in;  ///< the directory that has it too
  bool is_final = true;   ///< false: chosen for want of time, so not worth keeping on disk
};

struct Memory {
  std::mutex mutex;
  std::condition_variable maker_left;
  int makers = 0;
  std::unordered_map<std::string, Remembered> choices;
};
Memory& memory() {
  static Memory* instance = new Memory;
  return *instance;
}

/// One of the threads that may measure at a time.
class MakerScope {
 public:
  MakerScope(int most, double seconds) {
    std::unique_lock lock(memory().mutex);
    has_turn_ = memory().maker_left.wait_for(lock, std::chrono::duration<double>(seconds),
                                             [&] { return memory().makers < most; });
    if (has_turn_) ++memory().makers;
  }
  ~MakerScope() {
    if (!has_turn_) return;
    {
      const std::lock_guard lock(memory().mutex);
      --memory().makers;
    }
    memory().maker_left.notify_one();
  }
  MakerScope(const MakerScope&) = delete;
  MakerScope& operator=(const MakerScope&) = delete;
  /// False when the time ran out first.
  bool has_turn() const { return has_turn_; }

 private:
  bool has_turn_ = false;
};

/// Everything beside the sizes that may change which kernel is fastest.
const std::string& machine_text() {
  static const std::string text = [] {
    const auto& blas = backend::blas::info();
    return cat(isa::name(isa::current()), ' ', blas.version, ' ', blas.core);
  }();
  return text;
}

std::string key_of(const ChoiceRequest& request) {
  std::string key = request.who;
  for (const int64_t size : request.task->sizes) key.append(" ").append(std::to_string(size));
  for (const Kernel& kernel : request.candidates) key.append(" ").append(name(kernel));
  const int rounds = request.is_measured ? request.measuring.rounds : 0;
  key.append(rounds > 0 ? cat(" measured in ", rounds, " rounds, threads ") : " by rule, threads ")
      .append(std::to_string(backend::thread_count()))
      .append(" ")
      .append(machine_text());
  return key;
}

bool is_candidate(const ChoiceRequest& request, const Kernel& kernel) {
  for (const Kernel& candidate : request.candidates) {
    if (candidate == kernel) return true;
  }
  return false;
}

void remember(const std::string& key, const Remembered& choice) {
  const std::lock_guard lock(memory().mutex);
  if (memory().choices.size() >= kMostRemembered) memory().choices.clear();
  memory().choices[key] = choice;
}

bool look_up(const std::string& key, Remembered& found) {
  const std::lock_guard lock(memory().mutex);
  const auto entry = memory().choices.find(key);
  if (entry == memory().choices.end()) return false;
  found = entry->second;
  return true;
}

void store(const ChoiceRequest& request, const std::string& key, Remembered choice) {
  if (request.store == nullptr || !request.is_measured || !choice.is_final) return;
  if (choice.stored_in == request.store->directory()) return;
  request.store->save(key, {name(choice.kernel), choice.made_in_ms});
  choice.stored_in = request.store->directory();
  remember(key, choice);
}

Measured make(const ChoiceRequest& request) {
  const Kernel& first = request.candidates.front();
  if (!request.is_measured) return {first, "by rule: nothing is measured\n"};
  if (request.candidates.size() < 2) return {first, "there is no other\n"};
  const int64_t start = trace::now_ns();
  const MakerScope scope(request.most_makers, request.measuring.seconds);
  if (!scope.has_turn()) {
    return {first, "nothing is measured: out of time waiting for other threads to do so\n", false};
  }
  MeasureOptions measuring = request.measuring;
  measuring.seconds -= static_cast<double>(trace::now_ns() - start) * 1e-9;
  return fastest_kernel(*request.task, request.candidates, measuring);
}

void write_log(const ChoiceRequest& request, const std::string& key, const Measured& measured) {
  const std::string text = cat(key, "\n", measured.text, "chosen: ", name(measured.kernel), "\n");
  log(LogLevel::kDebug, "jit: ", text);
  if (request.log_store != nullptr) request.log_store->save_log(key, text);
}

}  // namespace

ChosenKernel choose_kernel(const ChoiceRequest& request) {
  using Source = ChosenKernel::Source;
  const int64_t start = trace::now_ns();
  const auto elapsed_ms = [&] { return static_cast<double>(trace::now_ns() - start) * 1e-6; };
  const std::string key = key_of(request);
  Remembered found;
  if (request.is_cached && look_up(key, found)) {
    store(request, key, found);
    return {found.kernel, Source::kMemory, found.made_in_ms, elapsed_ms()};
  }
  if (request.is_cached && request.store != nullptr && request.is_measured) {
    const auto choice = request.store->load(key);
    Kernel kernel;
    if (choice && backend::parse_kernel(choice->value, kernel) && is_candidate(request, kernel)) {
      remember(key, {kernel, choice->made_in_ms, request.store->directory()});
      return {kernel, Source::kDisk, choice->made_in_ms, elapsed_ms()};
    }
  }
  const Measured measured = make(request);
  const Remembered made{measured.kernel, elapsed_ms(), "", measured.is_complete};
  if (request.is_cached) {
    remember(key, made);
    store(request, key, made);
  }
  write_log(request, key, measured);
  return {made.kernel, Source::kMade, made.made_in_ms, elapsed_ms()};
}

int64_t forget_choices() {
  const std::lock_guard lock(memory().mutex);
  const auto count = static_cast<int64_t>(memory().choices.size());
  memory().choices.clear();
  return count;
}

}  // namespace cuop
