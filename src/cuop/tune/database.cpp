#include "cuop/tune/database.h"

#include <mutex>

#include "cuop/backend/execution.h"
#include "cuop/core/cache_directory.h"
#include "cuop/core/fork_mutex.h"

namespace cuop::tune {

namespace {

struct Database {
  ForkMutex mutex;
  DatabaseSettings settings;
  std::shared_ptr<ChoiceStore> store;
  DatabaseStatistics statistics;
};
Database& shared() {
  static Database* instance = new Database;
  return *instance;
}

}  // namespace

void set_database(const DatabaseSettings& settings) {
  Database& database = shared();
  const std::lock_guard lock(database.mutex);
  database.settings = settings;
  if (database.store) database.statistics.damaged += database.store->damaged_count();
  database.store = nullptr;
}

std::shared_ptr<ChoiceStore> database() {
  Database& database = shared();
  const std::lock_guard lock(database.mutex);
  if (!database.settings.is_used) return nullptr;
  if (!database.store) {
    const std::string& directory = database.settings.directory;
    database.store = std::make_shared<ChoiceStore>(
        directory.empty() ? default_cache_directory() : directory, database.settings.max_bytes);
  }
  return database.store;
}

namespace {

const CachePlace& place_of_thread() { return backend::execution_options().cache_place; }

/// The database, or where this thread keeps its choices instead.
std::shared_ptr<ChoiceStore> store_of_thread() {
  if (place_of_thread().kind != CachePlace::Kind::kOwn) return database();
  Database& database = shared();
  const std::lock_guard lock(database.mutex);
  if (!database.settings.is_used) return nullptr;
  return std::make_shared<ChoiceStore>(place_of_thread().directory, database.settings.max_bytes);
}

}  // namespace

DatabaseStatistics database_statistics() {
  Database& database = shared();
  const std::lock_guard lock(database.mutex);
  DatabaseStatistics statistics = database.statistics;
  if (database.store) statistics.damaged += database.store->damaged_count();
  return statistics;
}

std::optional<Choice> stored_choice(const std::string& key) {
  const auto store = store_of_thread();
  return store ? store->load(key) : std::nullopt;
}

void note_loaded(bool is_taken) {
  Database& database = shared();
  const std::lock_guard lock(database.mutex);
  ++(is_taken ? database.statistics.loaded : database.statistics.refused);
}

Choosing choose_in_database(Problem& problem, ChoiceOptions options) {
  const auto store = store_of_thread();
  options.store = store.get();
  options.is_read_only = true;  // what is new is kept below
  Choosing chosen = choose(problem, options);
  const Finding& found = *chosen.found;
  if (chosen.is_refused) note_loaded(false);
  if (chosen.source == Choosing::Source::kDisk && !problem.values.empty()) note_loaded(true);
  if (chosen.source == Choosing::Source::kMade && found.is_complete) {
    store_choice(problem.key, {found.value, found.made_in_ms, found.gain, found.rounds});
  }
  return chosen;
}

void store_choice(const std::string& key, const Choice& choice) {
  {
    const std::lock_guard lock(shared().mutex);
    ++shared().statistics.searches;
  }
  if (place_of_thread().kind == CachePlace::Kind::kNowhere) return;
  if (const auto store = store_of_thread()) store->save(key, choice);
}

}  // namespace cuop::tune
