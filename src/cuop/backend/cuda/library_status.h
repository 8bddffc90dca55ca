// What a library of the vendor's answered, as an error of ours.
#pragma once

#include <string_view>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::backend::cuda {

/// ExecutionError "who: LIBRARY answered WORDS to STEP" unless the status is 0. `words_of` makes
/// the library's words of it: anything that core/text.h can write.
template <class WordsOf>
void check_library(int status, const char* library, const char* who, std::string_view step,
                   WordsOf&& words_of) {
  if (status == 0) [[likely]]
    return;
  throw ExecutionError(cat(who, ": ", library, " answered ", words_of(status), " to ", step));
}

}  // namespace cuop::backend::cuda
