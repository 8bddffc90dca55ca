#include "cuop/jit/cuda/expr_cuda.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "cuop/core/text.h"
#include "cuop/jit/build_options.h"
#include "cuop/jit/cuda/kernel_fields.h"
#include "cuop/jit/cuda/reduction_text.h"
#include "cuop/jit/kernel_text.h"
#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

namespace {

using detail::accumulator_dtype;
using detail::accumulator_type;
using detail::functor_of;
using detail::has_moments;
using detail::start_of;
using detail::state_of;
using detail::state_type;
using detail::states_abreast;
using detail::text_of;
using detail::type_name;
using detail::value_type;

/// Count and Index are types of the source, see Generator::run.
struct FieldWriter {
  bool is_wide;
  std::string text = {};

  template <class... Parts>
  void field(const Parts&... parts) {
    text += cat("  ", parts..., ";\n");
  }
  void count() { field("Count count"); }
  void size() { field("Count size"); }
  void axis(int i) { field(is_wide ? "Count n" : "Divisor n", i); }
  void pointer(size_t k, const Walker& walker) {
    field(walker.role == Walker::Role::kLeaf ? "const " : "", type_name(walker.dtype), "* p", k);
  }
  void stride(size_t k, const Walker&, size_t axis) { field("Index s", k, "_", axis); }
  void parameter(const Node& node) { field(value_type(node.dtype), " c", node.code); }
  void share() { field("RowShare<Count> share"); }
};

/// Writes one source. Names: p pointers, s strides, n sizes, c numbers, i indices, x elements of
/// leaves, y elements of outputs, v values of nodes.
class Generator {
 public:
  Generator(const Expr& expr, const Loops& loops)
      : expr_(expr), loops_(loops), is_needed_(needed_nodes(expr)), width_(loops.width) {}

  std::string run() {
    write_includes();
    line("namespace cuop::jit {");
    line("using Count = ", loops_.is_wide ? "uint64_t;" : "uint32_t;");
    line("using Index = ", loops_.is_wide ? "int64_t;" : "int32_t;");
    FieldWriter fields{loops_.is_wide};
    detail::visit_fields(expr_, loops_, fields);
    out_ += cat("struct Arguments {\n", fields.text, "};\n");
    if (loops_.is_reduction) {
      write_program();
    } else {
      write_elementwise();
    }
    line("}  // namespace cuop::jit");
    return std::move(out_);
  }

 private:
  template <class... Parts>
  void line(const Parts&... parts) {
    out_ += cat(parts..., "\n");
  }

  /// Only what is needed: reading text takes longer than compiling most kernels does.
  void write_includes() {
    std::set<std::string_view> names{"cuop/jit/kernels/elementwise.cuh"};
    bool is_real = true;
    if (loops_.is_reduction) names.insert("cuop/jit/kernels/reduce.cuh");
    for (size_t i = 0; i < expr_.nodes().size(); ++i) {
      const Node& node = expr_.nodes()[i];
      if (!is_needed_[i]) continue;
      is_real = is_real && !is_complex(node.dtype) && !is_complex(node.compute);
      if (node.kind == NodeKind::kOp) {
        names.insert(text_defining(op_table()[static_cast<size_t>(node.code)].functor).name);
      } else if (node.kind == NodeKind::kReduce) {
        names.insert(has_moments(node)
                         ? "cuop/jit/kernels/moments.h"
                         : text_defining(functor_of(static_cast<ReduceKind>(node.code))).name);
      }
    }
    if (is_real) line("#define CUOP_REAL_ONLY");
    for (const std::string_view name : names) line("#include \"", name, "\"");
  }

  void open_kernel(int threads) {
    line("extern \"C\" __global__ void ", launch_bounds(threads), kEntry,
         "(const __grid_constant__ Arguments a) {");
  }

  void write_elementwise() {
    const int threads = block_threads(kElementwiseThreads);
    open_kernel(threads);
    line("  const Count step = Count(gridDim.x) * ", threads, ";");
    line("  for (Count i = Count(blockIdx.x) * ", threads,
         " + threadIdx.x; i < a.count; i += step) {");
    write_indices(0, loops_.axes, "i");
    if (loops_.has_tail) {
      line("    const Count left = a.size - i * ", loops_.width, ";");
      line("    const int valid = left < ", loops_.width, " ? int(left) : ", loops_.width, ";");
    }
    write_loads();
    write_values();
    write_stores();
    line("  }");
    line("}");
  }

  void write_program() {
    line("struct Program {");
    line("  struct alignas(16) State {");
    const std::string abreast = cat("[", states_abreast(loops_), "];");
    for_each_reduction([&](size_t output, ReduceKind kind, const Node& node) {
      line("    ", state_type(node), " r", output, abreast);
      if (is_position(kind)) line("    int64_t at", output, abreast);
    });
    line("  };");
    line("  const Arguments& a;");
    for (int i = 0; i < loops_.kept; ++i) line("  Index i", i, ";");
    if (loops_.is_ragged) {
      line("  Count head;");
      line("  static constexpr int kWidth = ", loops_.width, ";");
    }
    line("  CUOP_FN static State start() {");
    line("    State state;");
    open_loop(states_abreast(loops_));
    for_each_reduction([&](size_t output, ReduceKind kind, const Node& node) {
      line("      state.r", output, "[k] = ", start_of(kind, state_type(node)), ";");
      if (is_position(kind)) line("      state.at", output, "[k] = kNowhere;");
    });
    line("    }");
    line("    return state;");
    line("  }");
    line("  CUOP_FN static void merge(State& into, const State& other) {");
    open_loop(states_abreast(loops_));
    for_each_reduction([&](size_t output, ReduceKind kind, const Node& node) {
      if (has_moments(node)) {
        line("      into.r", output, "[k].merge(other.r", output, "[k]);");
        return;
      }
      write_fold(output, kind, "take_better<", "into", "[k]", cat("other.r", output, "[k]"),
                 cat("other.at", output, "[k]"));
    });
    line("    }");
    line("  }");
    write_prepare();
    line("  CUOP_FN Program(const Arguments& arguments, Count row) : a(arguments) {");
    write_indices(0, loops_.kept, "row", false);
    if (loops_.is_ragged) write_head();
    line("  }");
    line("  CUOP_FN void take(State& state, Count step) {");
    write_take();
    if (loops_.is_ragged) {
      line("  CUOP_FN void take_one(State& state, Count step) {");
      width_ = 1;
      write_take();
      width_ = loops_.width;
    }
    line("  CUOP_FN void finish(const State& state) const {");
    for (size_t k = 0; k < loops_.walkers.size(); ++k) {
      if (loops_.walkers[k].role == Walker::Role::kReduced) write_result(k);
    }
    line("  }");
    line("};");
    open_kernel(kElementwiseThreads);
    line("  reduce_rows<Program, ", loops_.team, ", ", loops_.is_column ? "true" : "false", ", ",
         steps_together(expr_, loops_), ">(a, a.share);");
    line("}");
  }

  void write_take() {
    write_indices(loops_.kept, loops_.axes, "step");
    write_loads();
    write_values();
    write_stores();
    line("  }");
  }

  /// The elements of a row before the first whole pack: the same of all tensors (Loops).
  void write_head() {
    const auto along =
        std::find_if(loops_.walkers.begin(), loops_.walkers.end(), [this](const Walker& walker) {
          return walker.role == Walker::Role::kLeaf && inner_letter(walker) == 'v';
        });
    const auto k = static_cast<size_t>(along - loops_.walkers.begin());
    line("    const auto place = reinterpret_cast<uint64_t>(", row_address(k), ") / ",
         itemsize(along->dtype), ";");
    line("    head = Count(-place & (kWidth - 1));");
  }

  void write_prepare() {
    std::vector<size_t> moments;
    for_each_reduction([&](size_t output, ReduceKind, const Node& node) {
      if (has_moments(node)) moments.push_back(output);
    });
    if (moments.empty()) return;
    line("  CUOP_FN static void prepare(State& state) {");
    open_loop(states_abreast(loops_));
    for (const size_t output : moments) line("      state.r", output, "[k].recenter_if_due();");
    line("    }");
    line("  }");
  }

  /// Until a line that closes it, k goes through so many numbers.
  void open_loop(int count) {
    line("#pragma unroll");
    line("    for (int k = 0; k < ", count, "; ++k) {");
  }

  /// Folds a value (and its position, by `take`) into one of the results of the state `into`.
  void write_fold(size_t output, ReduceKind kind, const char* take, const char* into,
                  const char* which, const std::string& value, const std::string& position) {
    const std::string result = cat(into, ".r", output, which);
    if (is_position(kind)) {
      line("      ", take, kind == ReduceKind::kArgMax ? "true" : "false", ">(", result, ", ", into,
           ".at", output, which, ", ", value, ", ", position, ");");
    } else {
      line("      ", result, " = ", functor_of(kind), "::apply(", result, ", ", value, ");");
    }
  }

  /// Those that have a state of their own.
  template <class Visit>
  void for_each_reduction(Visit&& visit) const {
    for (size_t i = 0; i < expr_.outputs().size(); ++i) {
      const Node& node = expr_.node(expr_.outputs()[i]);
      if (node.kind != NodeKind::kReduce || state_of(expr_, i) != i) continue;
      visit(i, static_cast<ReduceKind>(node.code), node);
    }
  }

  /// The index along each axis from `begin` to `end`, from the number of the step along them.
  void write_indices(int begin, int end, const char* linear, bool is_declared = true) {
    if (begin == end) return;
    const char* type = is_declared ? "const Index " : "";
    if (end - begin > 1) line("    Count rest = ", linear, ";");
    const std::string rest = end - begin > 1 ? "rest" : linear;
    for (int i = end - 1; i > begin; --i) {
      const std::string size = cat("a.n", i, loops_.is_wide ? "" : ".by");
      const std::string left =
          loops_.is_wide ? cat("rest / ", size) : cat("quotient(rest, a.n", i, ")");
      line("    const Count left", i, " = ", left, ";");
      line("    ", type, "i", i, " = Index(rest - left", i, " * ", size, ");");
      line("    rest = left", i, ";");
    }
    line("    ", type, "i", begin, " = Index(", rest, ");");
  }

  /// The address of a tensor's element where the thread's begin.
  std::string address(size_t k) const { return address(k, loops_.walkers[k].pattern.size()); }
  /// Where the row begins.
  std::string row_address(size_t k) const { return address(k, static_cast<size_t>(loops_.kept)); }
  std::string address(size_t k, size_t axes) const {
    const Walker& walker = loops_.walkers[k];
    std::string text = cat("a.p", k);
    for (size_t i = 0; i < axes; ++i) {
      const char letter = walker.pattern[i];
      const bool is_inner = static_cast<int>(i) == loops_.inner();
      const std::string at = is_inner && width_ > 1 ? cat("i", i, " * ", width_) : cat("i", i);
      if (letter == 'v') text += cat(" + ", at);
      if (letter == 'x' || letter == 's') text += cat(" + ", at, " * a.s", k, "_", i);
      if (letter == 'v' && is_inner && is_behind_head()) text += " + head";
    }
    return text;
  }
  bool is_behind_head() const { return loops_.is_ragged && width_ > 1; }

  /// How a tensor that goes along the inner axis does.
  char inner_letter(const Walker& walker) const {
    return walker.pattern[static_cast<size_t>(loops_.inner())];
  }
  std::string inner_stride(size_t k) const { return cat("a.s", k, "_", loops_.inner()); }

  void write_loads() {
    for (size_t k = 0; k < loops_.walkers.size(); ++k) {
      const Walker& walker = loops_.walkers[k];
      if (walker.role != Walker::Role::kLeaf) continue;
      line("    ", type_name(walker.dtype), " x", walker.number, "[", width_, "];");
      const std::string call = cat("(x", walker.number, ", ", address(k));
      const char letter = inner_letter(walker);
      if (letter == 'b') {
        line("    load_same", call, ");");
      } else if (letter == 's') {
        line("    load_strided", call, ", ", inner_stride(k), ");");
      } else if (loops_.has_tail) {
        line("    if (valid == ", width_, ") load_pack", call, ");");
        line("    else load_part", call, ", valid);");
      } else {
        line("    load_pack", call, ");");
      }
    }
    for (const Walker& walker : loops_.walkers) {
      if (walker.role != Walker::Role::kOutput) continue;
      line("    ", type_name(walker.dtype), " y", walker.number, "[", width_, "];");
    }
  }

  void write_values() {
    open_loop(width_);
    for (size_t i = 0; i < expr_.nodes().size(); ++i) {
      if (is_needed_[i]) write_value(i);
    }
    for (size_t i = 0; i < expr_.outputs().size(); ++i) {
      const int index = expr_.outputs()[i];
      const Node& node = expr_.node(index);
      if (node.kind == NodeKind::kReduce && state_of(expr_, i) != i) continue;
      if (node.kind == NodeKind::kReduce && has_moments(node)) {
        line("      state.r", i, loops_.is_column ? "[k]" : "[0]", ".take(convert<",
             accumulator_type(node), ">(v", node.arguments[0], "), ",
             loops_.is_column ? "true" : "k == 0", ");");
      } else if (node.kind == NodeKind::kReduce) {
        // A pack is behind all that its thread has taken, an element beside the packs is not.
        const char* const take = loops_.is_ragged && width_ == 1 ? "take_better<" : "take_next<";
        write_fold(
            i, static_cast<ReduceKind>(node.code), take, "state", loops_.is_column ? "[k]" : "[0]",
            cat("convert<", accumulator_type(node), ">(v", node.arguments[0], ")"), position());
      } else {
        line("      y", i, "[k] = ", stored(node.dtype, cat("v", index)), ";");
      }
    }
    line("    }");
  }

  /// Of a value among its row's.
  std::string position() const {
    if (loops_.is_column || width_ == 1) return "int64_t(step)";
    return cat("int64_t(step) * ", width_, " + k", is_behind_head() ? " + head" : "");
  }

  /// A value as it lies in memory.
  static std::string stored(DType dtype, const std::string& value) {
    return is_16bit(dtype) ? cat("narrowed<", type_name(dtype), ">(", value, ")") : value;
  }

  void write_value(size_t i) {
    const Node& node = expr_.nodes()[i];
    std::string value;
    switch (node.kind) {
      case NodeKind::kLeaf:
        value = cat("x", node.code, "[k]");
        break;
      case NodeKind::kParameter:
        value = cat("a.c", node.code);
        break;
      case NodeKind::kReduce:
        return;
      case NodeKind::kCast:
        value = cat("v", node.arguments[0]);
        if (!is_16bit(node.dtype))
          value = cat("convert<", value_type(node.dtype), ">(", value, ")");
        break;
      case NodeKind::kOp: {
        const OpInfo& op = op_table()[static_cast<size_t>(node.code)];
        value = cat(op.functor, "::apply<", value_type(node.compute), ">(v", node.arguments[0]);
        for (int k = 1; k < op.arity; ++k) {
          value += cat(", v", node.arguments[static_cast<size_t>(k)]);
        }
        value += ")";
        break;
      }
    }
    const bool is_made = node.kind == NodeKind::kOp || node.kind == NodeKind::kCast;
    // As memory would hold it, so that a fused chain returns what its steps would.
    if (is_made && is_16bit(node.dtype))
      value = cat("rounded<", type_name(node.dtype), ">(", value, ")");
    line("      const ", value_type(node.dtype), " v", i, " = ", value, ";");
  }

  void write_stores() {
    for (size_t k = 0; k < loops_.walkers.size(); ++k) {
      const Walker& walker = loops_.walkers[k];
      if (walker.role != Walker::Role::kOutput) continue;
      write_store(k);
    }
  }

  void write_store(size_t k) {
    const Walker& walker = loops_.walkers[k];
    const std::string call = cat("(", address(k), ", y", walker.number);
    const char letter = inner_letter(walker);
    if (letter != 'v') {
      // An output never repeats an element; an axis of one element has no stride to go by.
      line("    store_strided", call, ", ", letter == 'b' ? "Index(0)" : inner_stride(k), ");");
    } else if (loops_.has_tail) {
      line("    if (valid == ", loops_.width, ") store_pack", call, ");");
      line("    else store_part", call, ", valid);");
    } else {
      line("    store_pack", call, ");");
    }
  }

  /// The results of a reduction, which lie along the inner axis where there are several.
  void write_result(size_t k) {
    const Walker& walker = loops_.walkers[k];
    const auto output = static_cast<size_t>(walker.number);
    const Node& node = expr_.node(expr_.outputs()[output]);
    const auto kind = static_cast<ReduceKind>(node.code);
    std::string value =
        cat("state.", is_position(kind) ? "at" : "r", state_of(expr_, output), "[k]");
    if (has_moments(node)) value += text_of(node.part);
    if (kind == ReduceKind::kMean) {
      value = cat("mean_of(", value, ", ", type_name(real_dtype(accumulator_dtype(node))),
                  "(a.share.length)",
                  loops_.is_column || loops_.is_ragged ? "" : cat(" * ", loops_.width), ")");
    }
    if (!is_position(kind)) {
      value = cat("convert<", type_name(node.dtype), ">(", value, ")");
    }
    line("    ", type_name(walker.dtype), " y", output, "[", states_abreast(loops_), "];");
    open_loop(states_abreast(loops_));
    line("      y", output, "[k] = ", value, ";");
    line("    }");
    if (loops_.is_column) {
      write_store(k);
    } else {
      line("    *(", address(k), ") = y", output, "[0];");
    }
  }

  const Expr& expr_;
  const Loops& loops_;
  const std::vector<bool> is_needed_;
  int width_;  ///< elements along the inner axis that are taken at once where text is written
  std::string out_;
};

}  // namespace

std::string cuda_source(const Expr& expr, const Loops& loops) {
  return Generator(expr, loops).run();
}

CompileRequest kernel_request(const Expr& expr, const Loops& loops) {
  const int threads = loops.is_reduction ? kElementwiseThreads : block_threads(kElementwiseThreads);
  return with_build_options({kernel_title(expr), cuda_source(expr, loops), ""}, threads);
}

std::string kernel_title(const Expr& expr) {
  constexpr size_t kLongest = 60;
  const std::vector<bool> is_needed = needed_nodes(expr);
  std::string title;
  for (size_t i = 0; i < expr.nodes().size(); ++i) {
    const Node& node = expr.nodes()[i];
    const char* part = nullptr;
    if (node.kind == NodeKind::kOp) part = op_table()[static_cast<size_t>(node.code)].name;
    if (node.kind == NodeKind::kReduce) part = name(static_cast<ReduceKind>(node.code));
    if (part == nullptr || !is_needed[i]) continue;
    if (title.size() + std::strlen(part) > kLongest) return title + "_etc";
    if (!title.empty()) title += '_';
    title += part;
  }
  return title.empty() ? "copy" : title;
}

}  // namespace cuop::jit
