// What libraries did for a thread's work on a GPU.
#pragma once

#include "cuop/core/noncopyable.h"

namespace cuop::backend {

/// While it lives, notes what libraries start for this thread.
class LibraryWatch : NonCopyable {
 public:
  LibraryWatch();
  ~LibraryWatch();

  bool has_library() const { return has_library_; }
  bool has_matrix_units() const { return has_matrix_units_; }
  /// What a kernel of our own has multiplied on matrix units, "" when none has.
  const char* precision() const { return precision_; }

 private:
  friend void note_library_use(bool on_matrix_units);
  friend void note_matrix_units(const char* precision);
  LibraryWatch* const before_;
  bool has_library_ = false, has_matrix_units_ = false;
  const char* precision_ = "";
};

/// A library has started a kernel for this thread, by its own account on matrix units or not.
void note_library_use(bool on_matrix_units);
/// A kernel of our own has been started for this thread on matrix units, which multiply numbers of
/// this precision; a string that lives for ever.
void note_matrix_units(const char* precision);

}  // namespace cuop::backend
