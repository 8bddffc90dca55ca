#include "cuop/tune/tuner.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>

#include "cuop/core/fork_mutex.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/log.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/tune/permission.h"

namespace cuop::tune {

namespace {

using Source = Choosing::Source;
using FindingPointer = std::shared_ptr<const Finding>;

double milliseconds_since(int64_t start_ns) {
  return static_cast<double>(trace::now_ns() - start_ns) * 1e-6;
}

/// One of the threads that may measure at a time. A thread that does goes on at once: a handler of
/// a signal may ask for another choice amid a search.
class Turn : NonCopyable {
 public:
  Turn(int most, double seconds) {
    std::unique_lock lock(shared().mutex);
    has_come_ = wait_interruptibly(shared().freed, lock, end_of(seconds),
                                   [&] { return shared().taken < most || of_this_thread > 0; });
    if (!has_come_) return;
    ++shared().taken;
    ++of_this_thread;
  }
  ~Turn() {
    if (!has_come_) return;
    --of_this_thread;
    {
      const std::lock_guard lock(shared().mutex);
      --shared().taken;
    }
    shared().freed.notify_one();
  }
  /// False when the time ran out first.
  bool has_come() const { return has_come_; }

 private:
  static std::chrono::steady_clock::time_point end_of(double seconds) {
    using Clock = std::chrono::steady_clock;
    const std::chrono::duration<double> left(seconds);
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(left);
  }
  /// A forked child has none of the others that measure.
  struct Shared final : ForkListed {
    Shared() { enlist(); }
    void renew() noexcept override {
      new (&mutex) std::mutex;
      new (&freed) std::condition_variable;
      taken = of_this_thread;
    }
    std::mutex mutex;
    std::condition_variable freed;
    int taken = 0;
  };
  static Shared& shared() {
    static Shared* instance = new Shared;
    return *instance;
  }
  static inline thread_local int of_this_thread = 0;
  bool has_come_ = false;
};

/// The default, or what an earlier process chose.
Finding unmeasured(const Problem& problem, size_t winner, const std::string& why) {
  Finding finding;
  finding.winner = winner;
  finding.why_unmeasured = why;
  finding.text = cat("nothing is measured: ", why, "\n");
  finding.measurements = not_measured(problem.values, why);
  return finding;
}

Finding make(Problem& problem, const ChoiceOptions& options) {
  if (!problem.why_default.empty()) return unmeasured(problem, 0, problem.why_default);
  if (options.most_measuring == 0) return problem.search(options.limits);
  const int64_t start = trace::now_ns();
  const Turn turn(options.most_measuring, options.limits.seconds);
  if (!turn.has_come()) {
    Finding none = unmeasured(problem, 0, "out of time waiting for other threads to do so");
    none.is_complete = false;
    return none;
  }
  SearchLimits limits = options.limits;
  limits.seconds -= milliseconds_since(start) * 1e-3;
  return problem.search(limits);
}

std::string obstacle_of(const Problem& problem, const ChoiceOptions& options) {
  if (!problem.why_default.empty()) return "";
  if (!options.obstacle.empty()) return options.obstacle;
  return measuring_obstacle(problem.device, options.is_asked);
}

FindingPointer remembered(const Problem& problem, const ChoiceOptions& options) {
  if (options.memory == nullptr) return nullptr;
  const FindingPointer known = options.memory->find(problem.key);
  return known && known->rounds >= options.limits.rounds ? known : nullptr;
}

/// Of a problem that does not name its values before it measures, any that is stored.
FindingPointer stored(const Problem& problem, const ChoiceOptions& options, bool& is_refused) {
  const auto choice = options.store ? options.store->load(problem.key) : std::nullopt;
  if (!choice || choice->rounds < options.limits.rounds) return nullptr;
  const auto place = std::find(problem.values.begin(), problem.values.end(), choice->value);
  is_refused = place == problem.values.end() && !problem.values.empty();
  if (is_refused) return nullptr;
  Finding finding = unmeasured(problem, static_cast<size_t>(place - problem.values.begin()),
                               cat("an earlier process chose ", choice->value, " in ",
                                   choice->rounds, " rounds, and it was kept on disk"));
  finding.value = choice->value;
  finding.gain = choice->gain;
  finding.made_in_ms = choice->made_in_ms;
  finding.rounds = choice->rounds;
  finding.stored_in = options.store->directory();
  return std::make_shared<const Finding>(std::move(finding));
}

/// Keeps it where it is not kept yet; in memory when it `is_new` there.
FindingPointer keep(const Problem& problem, const ChoiceOptions& options, FindingPointer finding,
                    bool is_new) {
  const bool is_for_disk =
      options.store != nullptr && !options.is_read_only && finding->is_complete;
  if (is_for_disk && finding->stored_in != options.store->directory()) {
    Finding kept = *finding;
    kept.stored_in = options.store->directory();
    options.store->save(problem.key, {kept.value, kept.made_in_ms, kept.gain, kept.rounds});
    finding = std::make_shared<const Finding>(std::move(kept));
    is_new = true;
  }
  if (is_new && options.memory != nullptr) options.memory->put(problem.key, finding);
  return finding;
}

}  // namespace

Finding finding_of(SearchResult&& result) {
  Finding finding;
  finding.winner = result.winner;
  finding.gain = result.gain;
  finding.is_complete = result.is_complete;
  finding.text = result.text();
  finding.measurements = std::move(result.measurements);
  return finding;
}

Choosing choose(Problem& problem, const ChoiceOptions& options) {
  if (FindingPointer known = remembered(problem, options)) {
    return {keep(problem, options, known, false), Source::kMemory};
  }
  bool is_refused = false;
  if (FindingPointer known = stored(problem, options, is_refused)) {
    return {keep(problem, options, known, true), Source::kDisk};
  }
  const int64_t start = trace::now_ns();
  const std::string obstacle = obstacle_of(problem, options);
  Finding made = obstacle.empty() ? make(problem, options) : unmeasured(problem, 0, obstacle);
  if (!problem.values.empty()) made.value = problem.values.at(made.winner);
  made.made_in_ms = milliseconds_since(start);
  made.rounds = options.limits.rounds;
  const std::string text = cat(problem.key, "\n", made.text, "chosen: ", made.value, "\n");
  log(LogLevel::kDebug, "tune: ", text);
  if (options.log_store != nullptr) options.log_store->save_log(problem.key, text);
  const auto finding = std::make_shared<const Finding>(std::move(made));
  if (!obstacle.empty()) return {finding, Source::kPutOff, is_refused};
  return {keep(problem, options, finding, true), Source::kMade, is_refused};
}

}  // namespace cuop::tune
