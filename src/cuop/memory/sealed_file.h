// Files in memory that have no name and never change their size: what processes of one user let
// each other map. Nothing is left of one behind the last process that has it, however that ends.
#pragma once

#include <cstdint>

#include "cuop/core/descriptor.h"

namespace cuop::memory {

/// A new one of zeros, which only this user may open; its pages are taken when they are first used.
/// `label` is for people. Closed, with errno set, where the system gives none.
Descriptor make_sealed_file(const char* label, int64_t bytes);

/// One that another process of this host has made and has open under that number, through /proc,
/// where the system lets nobody else in. Closed where it is none of this user's of that size.
Descriptor open_sealed_file(int64_t process, int64_t descriptor, int64_t bytes, bool for_writing);

}  // namespace cuop::memory
