#include "cuop/jit/cpu/block_kernels.h"

#include "cuop/backend/cpu/gathers.h"

namespace cuop::jit {

namespace {

template <class Level>
BlockTable make_table() {
  BlockTable table;
  add_float_kernels<Level>(table);
  if (isa::has_quick_gathers()) add_gathering_kernels<Level>(table);
  if (isa::has_slow_permutations()) add_unpermuted_kernels<Level>(table);
  add_integer_kernels<Level>(table);
  add_complex_kernels<Level>(table);
  add_cast_kernels<Level>(table);
  add_reduce_kernels<Level>(table);
  return table;
}

template <class Level>
const BlockTable& table_of() {
  static const BlockTable table = make_table<Level>();
  return table;
}

}  // namespace

const BlockTable& block_table(isa::Level level) {
  return isa::choose(level,
                     []<class Level>(Level) -> const BlockTable& { return table_of<Level>(); });
}

// Not remembered: a thread may ask for the plain kernels (backend/kernel.h).
const BlockTable& block_table() { return block_table(isa::current()); }

}  // namespace cuop::jit
