// The choices of this process's user that do not belong to one wrapper: algorithms of libraries and
// configurations of kernels. Kept beside the compiled kernels (tune/choice_store.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cuop/tune/choice_store.h"
#include "cuop/tune/tuner.h"

namespace cuop::tune {

struct DatabaseSettings {
  bool is_used = true;         ///< false: nothing is read or written
  std::string directory = {};  ///< "" for the default cache directory
  int64_t max_bytes = int64_t{1} << 30;
};
void set_database(const DatabaseSettings& settings);

/// The database, null when it is not used.
std::shared_ptr<ChoiceStore> database();

/// What this process did with it.
struct DatabaseStatistics {
  int64_t searches = 0;  ///< searches that measured
  int64_t loaded = 0;    ///< choices that were read and taken
  int64_t refused = 0;   ///< choices that were read, but that the library or the kernel has no more
  int64_t damaged = 0;   ///< files that could not be used
};
DatabaseStatistics database_statistics();

/// tune::choose among what the database keeps, where this thread keeps its own; counts.
Choosing choose_in_database(Problem& problem, ChoiceOptions options);

/// The choice stored for the key where this thread keeps its own (backend/execution.h), counted
/// as damaged or not at all when there is none.
std::optional<Choice> stored_choice(const std::string& key);
/// To be called for what `stored_choice` returned: whether it could be taken.
void note_loaded(bool is_taken);
/// Keeps what a search found.
void store_choice(const std::string& key, const Choice& choice);

}  // namespace cuop::tune
