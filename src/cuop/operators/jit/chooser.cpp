#include "cuop/operators/jit/chooser.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "cuop/core/log.h"
#include "cuop/core/lru_cache.h"
#include "cuop/core/text.h"
#include "cuop/tune/machine.h"
#include "cuop/tune/permission.h"

namespace cuop {

namespace {

constexpr size_t kMostRemembered = 1 << 16;

struct Remembered {
  Kernel kernel;
  double made_in_ms = 0.0;
  double gain = 0.0;
  int rounds = 0;
  std::string stored_in;  ///< the directory that has it too
  bool is_final = true;   ///< false: chosen for want of time, so not worth keeping on disk
  std::string text = {};  ///< what was measured when it was found
  std::vector<tune::Measurement> measurements = {};
};

struct Memory {
  std::mutex mutex;
  std::condition_variable maker_left;
  int makers = 0;
  LruCache<std::string, Remembered> choices{kMostRemembered};
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

std::string key_of(const ChoiceRequest& request) {
  std::string key = request.who;
  for (const int64_t size : request.task->sizes) key.append(" ").append(std::to_string(size));
  for (const Kernel& kernel : request.candidates) key.append(" ").append(name(kernel));
  key.append(request.demands);
  key.append(request.is_measured ? " measured on " : " by rule on ");
  return key + tune::machine_text(request.task->out.device());
}

int rounds_of(const ChoiceRequest& request) {
  return request.is_measured ? request.measuring.rounds : 0;
}

std::vector<std::string> names_of(const ChoiceRequest& request) {
  std::vector<std::string> names;
  for (const Kernel& kernel : request.candidates) names.push_back(name(kernel));
  return names;
}

/// The default without measuring, for this reason.
Measured unmeasured(const ChoiceRequest& request, const std::string& why, bool is_complete = true,
                    bool is_put_off = false) {
  return {request.candidates.front(),
          cat("nothing is measured: ", why, "\n"),
          is_complete,
          0.0,
          is_put_off,
          tune::not_measured(names_of(request), why)};
}

bool is_candidate(const ChoiceRequest& request, const Kernel& kernel) {
  for (const Kernel& candidate : request.candidates) {
    if (candidate == kernel) return true;
  }
  return false;
}

void remember(const std::string& key, const Remembered& choice) {
  const std::lock_guard lock(memory().mutex);
  memory().choices.put(key, choice);
}

/// What was measured in fewer rounds than are asked for now does not count.
bool look_up(const ChoiceRequest& request, const std::string& key, Remembered& found) {
  const std::lock_guard lock(memory().mutex);
  const Remembered* known = memory().choices.find(key);
  if (known == nullptr) return false;
  found = *known;
  return found.rounds >= rounds_of(request);
}

bool look_up_on_disk(const ChoiceRequest& request, const std::string& key, Remembered& found) {
  if (request.store == nullptr || !request.is_measured) return false;
  const auto choice = request.store->load(key);
  const bool is_good = choice && choice->rounds >= rounds_of(request) &&
                       backend::parse_kernel(choice->value, found.kernel) &&
                       is_candidate(request, found.kernel);
  if (!is_good) return false;
  found = {found.kernel,   choice->made_in_ms,         choice->gain,
           choice->rounds, request.store->directory(), true};
  const std::string why = cat("an earlier process chose ", choice->value, " in ", choice->rounds,
                              " rounds, and it was kept on disk");
  found.text = cat("nothing is measured: ", why, "\n");
  found.measurements = tune::not_measured(names_of(request), why);
  return true;
}

void store(const ChoiceRequest& request, const std::string& key, Remembered choice) {
  if (request.store == nullptr || !request.is_measured || !choice.is_final) return;
  if (choice.stored_in == request.store->directory()) return;
  request.store->save(key, {name(choice.kernel), choice.made_in_ms, choice.gain, choice.rounds});
  choice.stored_in = request.store->directory();
  remember(key, choice);
}

/// First what the default leaves to a library, then the kernels beside each other.
Measured measure(const ChoiceRequest& request, MeasureOptions options) {
  const Kernel& first = request.candidates.front();
  const int64_t start = trace::now_ns();
  Measured library;
  if (request.is_for_library) {
    library = fastest_algorithms(*request.task, first, options);
    if (request.candidates.size() < 2) return library;
    options.seconds -= static_cast<double>(trace::now_ns() - start) * 1e-9;
    options.is_first_library = true;
  }
  Measured found = fastest_kernel(*request.task, request.candidates, options);
  found.text = library.text + found.text;
  found.is_complete = found.is_complete && library.is_complete;
  found.gain = 1.0 - (1.0 - library.gain) * (1.0 - found.gain);
  found.measurements.insert(found.measurements.begin(), library.measurements.begin(),
                            library.measurements.end());
  return found;
}

Measured make(const ChoiceRequest& request) {
  if (!request.is_measured) return unmeasured(request, "the choice is by rule");
  if (request.candidates.size() < 2 && !request.is_for_library) {
    return unmeasured(request, "there is no other");
  }
  const std::string obstacle =
      tune::measuring_obstacle(request.task->out.device(), request.is_asked);
  if (!obstacle.empty()) return unmeasured(request, obstacle, false, true);
  const int64_t start = trace::now_ns();
  const MakerScope scope(request.most_makers, request.measuring.seconds);
  if (!scope.has_turn()) {
    return unmeasured(request, "out of time waiting for other threads to do so", false);
  }
  MeasureOptions measuring = request.measuring;
  measuring.seconds -= static_cast<double>(trace::now_ns() - start) * 1e-9;
  return measure(request, measuring);
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
  const auto answer = [&](Source source) {
    return ChosenKernel{found.kernel, source,     found.made_in_ms,  elapsed_ms(),
                        found.gain,   found.text, found.measurements};
  };
  if (request.is_cached && look_up(request, key, found)) {
    store(request, key, found);
    return answer(Source::kMemory);
  }
  if (request.is_cached && look_up_on_disk(request, key, found)) {
    remember(key, found);
    return answer(Source::kDisk);
  }
  const Measured measured = make(request);
  found = {measured.kernel,      elapsed_ms(),  measured.gain,        rounds_of(request), "",
           measured.is_complete, measured.text, measured.measurements};
  if (request.is_cached && !measured.is_put_off) {
    remember(key, found);
    store(request, key, found);
  }
  write_log(request, key, measured);
  return answer(measured.is_put_off ? Source::kPutOff : Source::kMade);
}

int64_t forget_choices() {
  const std::lock_guard lock(memory().mutex);
  const auto count = static_cast<int64_t>(memory().choices.size());
  memory().choices.clear();
  return count;
}

}  // namespace cuop
