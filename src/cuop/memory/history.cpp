#include "cuop/memory/history.h"

namespace cuop::memory {

const char* name(HistoryEntry::Kind kind) {
  switch (kind) {
    case HistoryEntry::Kind::kAllocate:
      return "allocate";
    case HistoryEntry::Kind::kFree:
      return "free";
    case HistoryEntry::Kind::kMap:
      return "map";
    case HistoryEntry::Kind::kUnmap:
      return "unmap";
    case HistoryEntry::Kind::kOutOfMemory:
      return "out_of_memory";
  }
  return "";
}

}  // namespace cuop::memory
