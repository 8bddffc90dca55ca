#include "cuop/jit/cpu/program_cache.h"

#include <algorithm>

namespace cuop::jit {

namespace {

struct Entry {
  const BlockTable* table = nullptr;  // null while there is no program
  std::vector<Node> nodes;
  std::vector<int16_t> outputs;
  Program program;
};

/// A place for every expression; one that comes later to the same place takes it over.
constexpr size_t kPlaces = 16;
using Cache = std::array<Entry, kPlaces>;

bool is_same(const Node& a, const Node& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.compute == b.compute && a.code == b.code &&
         a.arguments == b.arguments;
}

size_t place_of(const Expr& expr) {
  uint32_t hash = 2166136261u;  // FNV-1a over what tells small expressions apart
  for (const Node& node : expr.nodes()) {
    hash = (hash ^ static_cast<uint32_t>(node.code)) * 16777619u;
    hash = (hash ^ static_cast<uint32_t>(node.dtype)) * 16777619u;
  }
  return (hash ^ (hash >> 16)) % kPlaces;
}

// Not inlined: the address of thread-local memory is asked for once.
[[gnu::noinline]] const Program& compiled_in(Cache& cache, const Expr& expr,
                                             const BlockTable& table) {
  Entry& entry = cache[place_of(expr)];
  const bool is_there = entry.table == &table && entry.outputs == expr.outputs() &&
                        std::equal(entry.nodes.begin(), entry.nodes.end(), expr.nodes().begin(),
                                   expr.nodes().end(), is_same);
  if (is_there) return entry.program;
  entry.table = nullptr;
  compile(expr, table, entry.program);
  entry.nodes = expr.nodes();
  entry.outputs = expr.outputs();
  entry.table = &table;
  return entry.program;
}

}  // namespace

const Program& compiled(const Expr& expr, const BlockTable& table) {
  thread_local Cache cache;
  return compiled_in(cache, expr, table);
}

}  // namespace cuop::jit
