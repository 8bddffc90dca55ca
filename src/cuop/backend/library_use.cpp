#include "cuop/backend/library_use.h"

namespace cuop::backend {

namespace {
thread_local LibraryWatch* innermost = nullptr;
}  // namespace

LibraryWatch::LibraryWatch() : before_(innermost) { innermost = this; }
LibraryWatch::~LibraryWatch() { innermost = before_; }

void note_library_use(bool on_matrix_units) {
  if (innermost == nullptr) return;
  innermost->has_library_ = true;
  innermost->has_matrix_units_ = innermost->has_matrix_units_ || on_matrix_units;
}

void note_matrix_units(const char* precision) {
  if (innermost == nullptr) return;
  innermost->has_matrix_units_ = true;
  innermost->precision_ = precision;
}

}  // namespace cuop::backend
