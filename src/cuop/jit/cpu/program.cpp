#include "cuop/jit/cpu/program.h"

#include <algorithm>
#include <limits>

#include "cuop/core/error.h"
#include "cuop/core/of_thread.h"
#include "cuop/core/text.h"

namespace cuop::jit {

namespace {

constexpr int kForever = std::numeric_limits<int>::max();

/// Working memory of one compilation, kept by each thread so that small ones allocate nothing.
struct CompileWorkspace {
  std::vector<int> last_use;     // by node; -1 when no output needs it
  std::vector<int> root;         // the node whose slot holds this node's value
  std::vector<int> slot;         // by node, where the value is
  std::vector<int> output;       // by node, the first output it is written to, or -1
  std::vector<bool> is_widened;  // by node, whether the value is read in float32 where it is short
  std::vector<int> free_registers;
};

class Compiler {
 public:
  Compiler(const Expr& expr, const BlockTable& table, Program& program, CompileWorkspace& work)
      : expr_(expr), table_(table), program_(program), work_(work) {}

  void run() {
    reset();
    find_lifetimes();
    for (int i = 0; i < count(); ++i) {
      if (work_.last_use[at(i)] >= 0) lower(i);
    }
    finish_outputs();
  }

 private:
  static size_t at(int index) { return static_cast<size_t>(index); }
  int count() const { return static_cast<int>(expr_.nodes().size()); }

  void reset() {
    program_.code.clear();
    program_.reductions.clear();
    program_.leaf_dtypes.clear();
    program_.parameter_dtypes.clear();
    program_.output_dtypes.clear();
    program_.register_count = 0;
    program_.widest = 1;
    program_.cost = 0;
    program_.is_leaf_used.assign(at(expr_.leaf_count()), false);
    program_.is_output_reduced.assign(expr_.outputs().size(), false);
    for (const Node& node : expr_.nodes()) {
      if (node.kind == NodeKind::kLeaf) program_.leaf_dtypes.push_back(node.dtype);
      if (node.kind == NodeKind::kParameter) program_.parameter_dtypes.push_back(node.dtype);
    }
    for (const int output : expr_.outputs()) {
      program_.output_dtypes.push_back(expr_.node(output).dtype);
    }
    work_.last_use.assign(at(count()), -1);
    work_.root.resize(at(count()));
    work_.slot.assign(at(count()), -1);
    work_.output.assign(at(count()), -1);
    work_.is_widened.assign(at(count()), false);
    work_.free_registers.clear();
  }

  /// A cast between float32 and a 16-bit float it came from changes nothing in float32.
  bool is_alias(const Node& node) const {
    return node.kind == NodeKind::kCast && !is_16bit(node.dtype) &&
           compute_dtype(node.compute) == node.dtype;
  }

  /// An operation on the bits of a 16-bit leaf.
  bool is_of_bits(const Node& node) const {
    return node.kind == NodeKind::kOp && is_16bit(node.compute) && node.dtype == node.compute &&
           table_.op(node.code, node.compute) != nullptr &&
           expr_.node(node.arguments[0]).kind == NodeKind::kLeaf;
  }

  /// True when an instruction of its own puts the node's value where it is wanted.
  bool is_computed(int i) const {
    const NodeKind kind = expr_.node(i).kind;
    return kind != NodeKind::kLeaf && kind != NodeKind::kParameter && work_.root[at(i)] == i;
  }

  void find_lifetimes() {
    for (int i = 0; i < count(); ++i) {
      const Node& node = expr_.node(i);
      work_.root[at(i)] = is_alias(node) ? work_.root[at(node.arguments[0])] : i;
    }
    for (size_t k = 0; k < expr_.outputs().size(); ++k) {
      const int node = expr_.outputs()[k];
      int& first = work_.output[at(node)];
      work_.last_use[at(node)] = std::max(work_.last_use[at(node)], node);
      // What is not written where it is computed is copied to its outputs in the end.
      if (first >= 0 || !is_computed(node)) work_.last_use[at(node)] = kForever;
      work_.is_widened[at(work_.root[at(node)])] = true;
      if (first < 0) first = static_cast<int>(k);
    }
    for (int i = count() - 1; i >= 0; --i) {
      if (work_.last_use[at(i)] < 0) continue;
      for (const int argument : expr_.node(i).arguments) {
        if (argument < 0) continue;
        if (!is_of_bits(expr_.node(i))) work_.is_widened[at(work_.root[at(argument)])] = true;
        const int until = expr_.node(i).kind == NodeKind::kReduce ? kForever : i;
        work_.last_use[at(argument)] = std::max(work_.last_use[at(argument)], until);
      }
    }
    for (int i = count() - 1; i >= 0; --i) {
      int& end = work_.last_use[at(work_.root[at(i)])];
      end = std::max(end, work_.last_use[at(i)]);
    }
  }

  void widen(DType dtype) { program_.widest = std::max(program_.widest, itemsize(dtype)); }

  int new_register() {
    if (!work_.free_registers.empty()) {
      const int slot = work_.free_registers.back();
      work_.free_registers.pop_back();
      return slot;
    }
    return program_.output_slot(static_cast<int>(program_.output_dtypes.size())) +
           program_.register_count++;
  }

  /// Gives back the registers of the arguments that node i is the last to read, those whose
  /// elements are as large as the result (which may take their place) before its computation.
  void release_arguments(int i, bool is_before) {
    const Node& node = expr_.node(i);
    const int64_t result = itemsize(compute_dtype(node.dtype));
    const int first_register = program_.slot_count() - program_.register_count;
    for (size_t k = 0; k < node.arguments.size(); ++k) {
      if (node.arguments[k] < 0) continue;
      const int root = work_.root[at(node.arguments[k])];
      int& slot = work_.slot[at(root)];
      if (work_.last_use[at(root)] != i || slot < first_register) continue;
      const bool is_same_size = itemsize(compute_dtype(expr_.node(root).dtype)) == result;
      if (is_same_size != is_before) continue;
      auto& free = work_.free_registers;
      if (std::find(free.begin(), free.end(), slot) == free.end()) free.push_back(slot);
    }
  }

  void emit(BlockKernel kernel, int out, std::array<int16_t, kMaxArity> in, const char* what,
            int arity = 1, const ScalarKernels& with_scalars = {}) {
    if (kernel == nullptr) throw NotImplementedError(cat("jit: no CPU kernel for ", what));
    program_.code.push_back(
        {kernel, static_cast<int16_t>(out), in, static_cast<int16_t>(arity), with_scalars});
  }

  void emit_cast(DType from, DType to, int in, int out) {
    emit(table_.cast(from, to), out, {static_cast<int16_t>(in), 0, 0}, "a cast");
  }

  void lower(int i) {
    const Node& node = expr_.node(i);
    widen(compute_dtype(node.dtype));
    switch (node.kind) {
      case NodeKind::kLeaf:
        return lower_leaf(i);
      case NodeKind::kParameter:
        work_.slot[at(i)] = program_.parameter_slot(node.code);
        return;
      case NodeKind::kReduce:
        return lower_reduce(i);
      default:
        return lower_computation(i);
    }
  }

  void lower_leaf(int i) {
    const Node& node = expr_.node(i);
    program_.is_leaf_used[at(node.code)] = true;
    const int leaf = node.code;
    if (!is_16bit(node.dtype) || !work_.is_widened[at(i)]) {
      work_.slot[at(i)] = leaf;
      return;
    }
    program_.cost += 1;
    work_.slot[at(i)] = new_register();
    emit_cast(node.dtype, DType::kFloat32, leaf, work_.slot[at(i)]);
  }

  void lower_reduce(int i) {
    const Node& node = expr_.node(i);
    const DType dtype = compute_dtype(node.dtype);
    const int output = work_.output[at(i)];
    const auto kind = static_cast<ReduceKind>(node.code);
    ReduceKernel kernel = table_.reduction(kind, dtype);
    if (kernel.run == nullptr) {
      throw NotImplementedError(
          cat("jit: no CPU kernel for the reduction ", name(kind), " of ", node.dtype));
    }
    // Accumulators of float32 are those of float64, from which 16 bits are rounded.
    if (is_16bit(node.dtype)) kernel.finish = table_.reduction(kind, DType::kFloat64).finish;
    const int slot = work_.slot[at(work_.root[at(node.arguments[0])])];
    program_.cost += 1;
    program_.is_output_reduced[at(output)] = true;
    program_.reductions.push_back(
        {static_cast<int16_t>(slot), static_cast<int16_t>(output), dtype, kernel,
         is_16bit(node.dtype) ? table_.cast(DType::kFloat64, node.dtype) : nullptr});
  }

  void lower_computation(int i) {
    const Node& node = expr_.node(i);
    const int output = work_.output[at(i)];
    if (!is_computed(i)) return;  // an alias; as an output it is copied in the end
    std::array<int16_t, kMaxArity> in{};
    for (size_t k = 0; k < node.arguments.size() && node.arguments[k] >= 0; ++k) {
      in[k] = static_cast<int16_t>(work_.slot[at(work_.root[at(node.arguments[k])])]);
    }
    if (is_narrowing(node)) return lower_narrowing(i, in[0]);
    if (is_of_bits(node)) return lower_bits(i);
    release_arguments(i, true);
    const bool is_direct = output >= 0 && !is_16bit(node.dtype);
    const int out = is_direct ? program_.output_slot(output) : new_register();
    work_.slot[at(i)] = out;
    const DType compute = compute_dtype(node.compute), result = compute_dtype(node.dtype);
    if (node.kind == NodeKind::kCast) {
      program_.cost += 1;
      emit_cast(compute, result, in[0], out);
    } else {
      const OpInfo& op = op_table()[at(node.code)];
      program_.cost += op.cost;
      emit(table_.op(node.code, compute), out, in, op.name, op.arity,
           table_.scalar_op(node.code, compute));
    }
    release_arguments(i, false);
    if (is_16bit(node.dtype)) round_to_16bit(i, DType::kFloat32, work_.slot[at(i)]);
  }

  /// A cast to 16 bits of what float32 would have to round as well.
  static bool is_narrowing(const Node& node) {
    return node.kind == NodeKind::kCast && is_16bit(node.dtype) &&
           compute_dtype(node.compute) != DType::kFloat32;
  }
  void lower_narrowing(int i, int in) {
    work_.slot[at(i)] = new_register();
    round_to_16bit(i, expr_.node(i).compute, in);
    release_arguments(i, true);
    release_arguments(i, false);
  }

  void lower_bits(int i) {
    const Node& node = expr_.node(i);
    work_.slot[at(i)] = new_register();
    make_16bit(i, table_.op(node.code, node.dtype), expr_.node(node.arguments[0]).code);
    release_arguments(i, true);
    release_arguments(i, false);
  }

  /// Rounds a value to its own dtype, so that a fused chain returns what its steps would.
  void round_to_16bit(int i, DType from, int in) {
    make_16bit(i, table_.cast(from, expr_.node(i).dtype), in);
  }
  /// By a kernel whose results have 16 bits.
  void make_16bit(int i, BlockKernel kernel, int in) {
    const DType dtype = expr_.node(i).dtype;
    const int slot = work_.slot[at(i)], output = work_.output[at(i)];
    const int rounded = output >= 0 ? program_.output_slot(output) : new_register();
    program_.cost += 2;
    emit(kernel, rounded, {static_cast<int16_t>(in), 0, 0}, "16-bit results");
    if (work_.last_use[at(i)] > i) emit_cast(dtype, DType::kFloat32, rounded, slot);
    if (output < 0) {
      work_.free_registers.push_back(rounded);
    } else if (work_.last_use[at(i)] <= i) {
      work_.free_registers.push_back(slot);
    }
  }

  /// Outputs that no instruction wrote yet: leaves, parameters, aliases and second copies.
  void finish_outputs() {
    for (size_t k = 0; k < expr_.outputs().size(); ++k) {
      const int i = expr_.outputs()[k];
      const Node& node = expr_.node(i);
      widen(node.dtype);
      if (is_computed(i) && work_.output[at(i)] == static_cast<int>(k)) continue;
      if (node.kind == NodeKind::kReduce) {
        throw NotImplementedError("jit: one reduction cannot be written to two outputs");
      }
      const int slot = work_.slot[at(work_.root[at(i)])];
      emit_cast(compute_dtype(node.dtype), node.dtype, slot,
                program_.output_slot(static_cast<int>(k)));
      program_.cost += 1;
    }
  }

  const Expr& expr_;
  const BlockTable& table_;
  Program& program_;
  CompileWorkspace& work_;
};

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

void KernelChoice::choose(const Program& program) {
  needs_block.assign(is_uniform.size(), false);
  kernels.clear();
  const auto is_one = [this](int16_t slot) { return is_uniform[static_cast<size_t>(slot)]; };
  for (const Instruction& step : program.code) {
    const auto& [first, second, third] = step.in;
    BlockKernel kernel = step.kernel;
    if (step.with_scalars.behind != nullptr && !is_one(first) && is_one(second) &&
        (step.arity == 2 || is_one(third))) {
      kernel = step.with_scalars.behind;
    } else if (step.with_scalars.before != nullptr && is_one(first) && !is_one(second)) {
      kernel = step.with_scalars.before;
    } else {
      for (int k = 0; k < step.arity; ++k) {
        needs_block[static_cast<size_t>(step.in[static_cast<size_t>(k)])] = true;
      }
    }
    kernels.push_back(kernel);
  }
  for (const Program::FoldStep& fold : program.reductions) {
    needs_block[static_cast<size_t>(fold.slot)] = true;
  }
}

void compile(const Expr& expr, const BlockTable& table, Program& program) {
  auto& workspace = of_thread([] { return new CompileWorkspace; });
  Compiler(expr, table, program, workspace).run();
}

const Program& compiled(const Expr& expr, const BlockTable& table) {
  auto& cache = of_thread([] { return new Cache; });
  return compiled_in(cache, expr, table);
}

}  // namespace cuop::jit
