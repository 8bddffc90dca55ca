// The blocked interpreter: each thread takes whole blocks, runs all instructions over one while it
// is in the first-level cache, and writes only the outputs to memory.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/of_thread.h"
#include "cuop/jit/cpu/access.h"
#include "cuop/jit/cpu/arrangement.h"
#include "cuop/jit/cpu/program.h"
#include "cuop/jit/parameter.h"
#include "cuop/jit/run.h"

namespace cuop::jit {

namespace {

/// Slots that are scratch memory should stay in the first-level cache together.
constexpr int64_t kScratchBytes = 16 * 1024;
constexpr int64_t kMinBlockBytes = 2 * 1024, kMaxBlockBytes = 64 * 1024;  ///< of the widest slot
/// Elements of a plane (arrangement.h), of the widest slot: with fewer the rows that are read and
/// written in order are short, with more they leave the second-level cache.
constexpr int64_t kPlaneBytes = 16 * 1024;
// Slots start at different places of a page, so that loads do not wait for unrelated stores.
constexpr int64_t kSlotPadding = 192;
/// Elements of cost 1 that are worth the waking of another thread.
constexpr int64_t kGrainCost = 64 * 1024;

/// How the iteration space is cut into blocks. With reductions a block is a piece of one row or
/// some whole rows, a row being what one result is made of. Without them the last elements, which
/// fill no vectors and are computed aside, are a block by themselves.
struct Blocks {
  int64_t total = 0;
  int64_t even = 0;  ///< elements before those; all, with reductions
  int64_t size = 0;  ///< most elements of a block
  int64_t row = 0;   ///< elements of a row, 0 without reductions
  int64_t rows = 0;
  int64_t per_row = 0;         ///< blocks of one row; 0 where a block holds whole rows
  int64_t rows_per_block = 0;  ///< where it does
  int64_t count = 0;

  struct Range {
    int64_t start;
    int64_t size;
  };
  Range range(int64_t block) const {
    if (per_row > 0) {
      const int64_t start = (block % per_row) * size;
      return {(block / per_row) * row + start, std::min(size, row - start)};
    }
    const int64_t step = row > 0 ? rows_per_block * row : size, start = block * step;
    if (start >= even) return {even, total - even};
    return {start, std::min(step, even - start)};
  }
};

/// Large blocks cost less to start; many scratch slots ask for smaller ones. Only what the program
/// and the layouts say decides, so that sums do not depend on anything else.
int64_t block_size(const Program& program, const KernelChoice& choice,
                   const std::vector<Access>& leaves, const std::vector<Access>& outputs,
                   int64_t least_bytes) {
  int64_t slots = program.register_count;
  for (size_t i = 0; i < program.parameter_dtypes.size(); ++i) {
    slots += choice.needs_block[static_cast<size_t>(program.parameter_slot(static_cast<int>(i)))];
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    const bool is_one = choice.is_uniform[i] && !choice.needs_block[i];
    slots += leaves[i].mode() != Access::Mode::kInPlace && !is_one;
  }
  for (const Access& output : outputs) slots += output.mode() == Access::Mode::kStrided;
  int64_t bytes = kMaxBlockBytes;
  while (bytes > least_bytes && bytes * slots > kScratchBytes) bytes /= 2;
  return bytes / program.widest;
}

Blocks cut(const Program& program, const Bindings& bindings, int64_t size) {
  Blocks blocks;
  blocks.total = element_count(bindings.shape);
  blocks.size = size;
  blocks.even = blocks.total;
  if (program.reductions.empty()) {
    blocks.even = round_down(blocks.total, kBlockMultiple);
    blocks.count = divide_up(blocks.even, blocks.size) + (blocks.even < blocks.total ? 1 : 0);
    return blocks;
  }
  const int first = bindings.shape.ndim() - bindings.reduced_axes;
  blocks.row = 1;
  blocks.rows = 1;
  for (int axis = 0; axis < bindings.shape.ndim(); ++axis) {
    (axis < first ? blocks.rows : blocks.row) *= bindings.shape[axis];
  }
  if (blocks.row > blocks.size) {
    blocks.per_row = divide_up(blocks.row, blocks.size);
    blocks.count = blocks.rows * blocks.per_row;
  } else if (blocks.row > 0) {
    blocks.rows_per_block = blocks.size / blocks.row;
    blocks.count = divide_up(blocks.rows, blocks.rows_per_block);
  }
  return blocks;
}

/// Memory for the slots of one thread, kept for its next call.
std::byte* scratch(int64_t bytes) {
  struct Free {
    void operator()(std::byte* data) const { ::operator delete[](data, std::align_val_t{64}); }
  };
  struct Kept {
    std::unique_ptr<std::byte[], Free> data;
    int64_t capacity = 0;
  };
  Kept& kept = of_thread([] { return new Kept; });
  if (bytes > kept.capacity) {
    kept.data.reset(static_cast<std::byte*>(
        ::operator new[](static_cast<size_t>(bytes), std::align_val_t{64})));
    kept.capacity = bytes;
  }
  return kept.data.get();
}

/// One run: everything that its threads share.
struct Launch {
  const Program& program;
  const Bindings& bindings;
  Blocks blocks;
  std::vector<Access>& leaves;
  std::vector<Access>& outputs;
  std::vector<Accumulator>& partials;  // [reduction][block], where a row has several blocks
  const KernelChoice& choice;

  void run_blocks(int64_t begin, int64_t end);
  void choose_for(Blocks::Range range, KernelChoice& of_block) const;
  void reduce_block(size_t reduction, int64_t block, Blocks::Range range, const std::byte* values);
  void finish(size_t reduction, int64_t row, const Accumulator& accumulator) const;
  void combine_partials();
  void finish_empty_rows() const;
};

void Launch::finish(size_t reduction, int64_t row, const Accumulator& accumulator) const {
  const Program::FoldStep& wanted = program.reductions[reduction];
  const Access& output = outputs[static_cast<size_t>(wanted.output)];
  if (wanted.to_16bit == nullptr && output.mode() != Access::Mode::kStrided) {
    wanted.kernel.finish(output.at(row), accumulator.bytes, blocks.row);
    return;
  }
  alignas(64) std::byte result[16 * kBlockMultiple] = {}, narrow[16 * kBlockMultiple];
  wanted.kernel.finish(result, accumulator.bytes, blocks.row);
  if (wanted.to_16bit != nullptr) {
    wanted.to_16bit(narrow, result, nullptr, nullptr, kBlockMultiple);
  }
  output.scatter(row, 1, wanted.to_16bit != nullptr ? narrow : result);
}

void Launch::reduce_block(size_t reduction, int64_t block, Blocks::Range range,
                          const std::byte* values) {
  const Program::FoldStep& wanted = program.reductions[reduction];
  if (blocks.per_row > 0) {
    const auto place = reduction * static_cast<size_t>(blocks.count) + static_cast<size_t>(block);
    wanted.kernel.run(partials[place].bytes, values, range.size);
    return;
  }
  const int64_t width = blocks.row * itemsize(wanted.dtype);
  for (int64_t done = 0; done < range.size; done += blocks.row, values += width) {
    Accumulator accumulator;
    wanted.kernel.run(accumulator.bytes, values, blocks.row);
    finish(reduction, (range.start + done) / blocks.row, accumulator);
  }
}

/// Adds up each row's blocks as a tree: the error does not grow with their number, and the result
/// is the same for any thread count.
void Launch::combine_partials() {
  constexpr int64_t kShort = 1 << 16;
  int64_t combined = 0;
  for (size_t reduction = 0; reduction < program.reductions.size(); ++reduction) {
    for (int64_t row = 0; row < blocks.rows; ++row) {
      Accumulator* first =
          partials.data() + static_cast<int64_t>(reduction) * blocks.count + row * blocks.per_row;
      for (int64_t step = 1; step < blocks.per_row; step *= 2) {
        for (int64_t k = 0; k + step < blocks.per_row; k += 2 * step) {
          program.reductions[reduction].kernel.combine(first[k].bytes, first[k + step].bytes);
          if (++combined % kShort == 0) check_interrupt();
        }
      }
      finish(reduction, row, *first);
    }
  }
}

/// The sum of nothing is 0 and its product 1, which runs of no elements say.
void Launch::finish_empty_rows() const {
  for (size_t reduction = 0; reduction < program.reductions.size(); ++reduction) {
    Accumulator accumulator;
    program.reductions[reduction].kernel.run(accumulator.bytes, nullptr, 0);
    for (int64_t row = 0; row < blocks.rows; ++row) finish(reduction, row, accumulator);
  }
}

/// The kernels of one block.
void Launch::choose_for(Blocks::Range range, KernelChoice& of_block) const {
  bool is_other = false;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!program.is_leaf_used[i] || !leaves[i].has_constant_runs()) continue;
    const bool is_one = leaves[i].run_at(range.start, range.size) != nullptr;
    is_other = is_other || of_block.is_uniform[i] != is_one;
    of_block.is_uniform[i] = is_one;
  }
  if (is_other) of_block.choose(program);
}

void Launch::run_blocks(int64_t begin, int64_t end) {
  const int64_t slot_bytes = round_up(blocks.size * program.widest, 64) + kSlotPadding;
  std::byte* memory = scratch(slot_bytes * program.slot_count());
  constexpr size_t kInlineSlots = 64;
  std::byte* inline_slots[kInlineSlots];
  std::vector<std::byte*> many_slots;
  std::byte** slots = inline_slots;
  if (static_cast<size_t>(program.slot_count()) > kInlineSlots) {
    many_slots.resize(static_cast<size_t>(program.slot_count()));
    slots = many_slots.data();
  }
  for (int slot = 0; slot < program.slot_count(); ++slot) slots[slot] = memory + slot * slot_bytes;

  bool has_runs = false;
  for (size_t i = 0; i < leaves.size(); ++i) {
    has_runs = has_runs || (program.is_leaf_used[i] && leaves[i].has_constant_runs());
  }
  const int64_t most = round_up(std::min(blocks.size, blocks.total), kBlockMultiple);
  // Where a leaf is one element in some blocks, these choose kernels anew, that may read blocks.
  const auto filled = [&](size_t slot) { return has_runs || choice.needs_block[slot] ? most : 1; };
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!program.is_leaf_used[i] || leaves[i].mode() != Access::Mode::kUniform) continue;
    fill(slots[i], leaves[i].at(0), leaves[i].itemsize(), filled(i));
  }
  for (size_t i = 0; i < program.parameter_dtypes.size(); ++i) {
    alignas(16) std::byte value[16];
    store_parameter(bindings.parameters[i], program.parameter_dtypes[i], value);
    const auto slot = static_cast<size_t>(program.parameter_slot(static_cast<int>(i)));
    fill(slots[slot], value, itemsize(compute_dtype(program.parameter_dtypes[i])), filled(slot));
  }
  std::optional<KernelChoice> of_block;  // where a leaf may be one element in some blocks
  if (has_runs) of_block = choice;

  for (int64_t block = begin; block < end; ++block) {
    const Blocks::Range range = blocks.range(block);
    const int64_t whole = round_up(range.size, kBlockMultiple);
    if (of_block) choose_for(range, *of_block);
    const KernelChoice& chosen = of_block ? *of_block : choice;
    for (size_t i = 0; i < leaves.size(); ++i) {
      const Access& leaf = leaves[i];
      if (!program.is_leaf_used[i] || leaf.mode() == Access::Mode::kUniform) continue;
      if (chosen.is_uniform[i] && !chosen.needs_block[i]) {
        slots[i] = leaf.run_at(range.start, range.size);
        continue;
      }
      if (leaf.has_packed_runs()) {
        slots[i] = leaf.run_at(range.start, whole);
        if (slots[i] != nullptr) continue;
      }
      std::byte* staged = memory + static_cast<int64_t>(i) * slot_bytes;
      if (leaf.mode() == Access::Mode::kInPlace && range.start + whole <= blocks.total) {
        slots[i] = leaf.at(range.start);
        continue;
      }
      leaf.gather(range.start, range.size, staged);
      // The lanes beyond the end compute on zeros, which nobody reads.
      std::memset(staged + range.size * leaf.itemsize(), 0,
                  static_cast<size_t>((whole - range.size) * leaf.itemsize()));
      slots[i] = staged;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (program.is_output_reduced[i]) continue;
      const int slot = program.output_slot(static_cast<int>(i));
      const bool is_direct = outputs[i].mode() != Access::Mode::kStrided && whole == range.size;
      slots[slot] = is_direct ? outputs[i].at(range.start) : memory + slot * slot_bytes;
    }
    for (size_t i = 0; i < program.code.size(); ++i) {
      const Instruction& step = program.code[i];
      chosen.kernels[i](slots[step.out], slots[step.in[0]], slots[step.in[1]], slots[step.in[2]],
                        whole);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int slot = program.output_slot(static_cast<int>(i));
      const std::byte* staged = memory + slot * slot_bytes;
      if (program.is_output_reduced[i] || slots[slot] != staged) continue;
      outputs[i].scatter(range.start, range.size, staged);
    }
    for (size_t i = 0; i < program.reductions.size(); ++i) {
      reduce_block(i, block, range, slots[program.reductions[i].slot]);
    }
  }
}

/// The caller's working memory, kept so that small runs allocate nothing.
struct RunWorkspace {
  std::vector<Access> leaves;
  std::vector<Access> outputs;
  std::vector<Accumulator> partials;
  KernelChoice choice;
};

/// In steps, because memory that is touched for the first time takes its time.
void make_room(std::vector<Accumulator>& partials, size_t count) {
  constexpr size_t kShort = 1 << 18;
  partials.reserve(count);
  while (partials.size() < count) {
    partials.resize(std::min(count, partials.size() + kShort));
    if (partials.size() < count) check_interrupt();
  }
  partials.resize(count);
}

/// Deferred values are computed first: that may run the interpreter on this very thread.
void settle(const Bindings& bindings) {
  for (const Tensor* leaf : bindings.leaves) leaf->data();
  for (const Tensor* output : bindings.outputs) output->data();
}

void choose_kernels(const Program& program, const std::vector<Access>& leaves,
                    KernelChoice& choice) {
  choice.is_uniform.assign(static_cast<size_t>(program.slot_count()), false);
  for (size_t i = 0; i < leaves.size(); ++i) {
    choice.is_uniform[i] = leaves[i].mode() == Access::Mode::kUniform;
  }
  for (size_t i = 0; i < program.parameter_dtypes.size(); ++i) {
    choice.is_uniform[static_cast<size_t>(program.parameter_slot(static_cast<int>(i)))] = true;
  }
  choice.choose(program);
}

// Not inlined: the address of thread-local memory is asked for once.
[[gnu::noinline]] void run_program(const Program& program, const Bindings& bindings,
                                   RunWorkspace& work, bool is_in_planes = false) {
  work.leaves.clear();
  for (const Tensor* leaf : bindings.leaves) {
    work.leaves.emplace_back(*leaf, bindings.shape, is_in_planes);
  }
  work.outputs.clear();
  for (size_t i = 0; i < bindings.outputs.size(); ++i) {
    const Tensor& output = *bindings.outputs[i];
    work.outputs.emplace_back(
        output, program.is_output_reduced[i] ? output.shape() : bindings.shape, is_in_planes);
  }
  choose_kernels(program, work.leaves, work.choice);
  const int64_t size = block_size(program, work.choice, work.leaves, work.outputs,
                                  is_in_planes ? kPlaneBytes : kMinBlockBytes);
  Launch launch{program,       bindings,   cut(program, bindings, size), work.leaves, work.outputs,
                work.partials, work.choice};
  const auto cells = static_cast<size_t>(launch.blocks.count) * program.reductions.size();
  make_room(work.partials, launch.blocks.per_row > 0 ? cells : 0);

  const int64_t grain = kGrainCost / (1 + program.cost / 4) / launch.blocks.size;
  backend::parallel_for(launch.blocks.count, grain,
                        [&launch](int64_t begin, int64_t end) { launch.run_blocks(begin, end); });
  if (launch.blocks.per_row > 0) launch.combine_partials();
  if (launch.blocks.row == 0) launch.finish_empty_rows();
}

}  // namespace

void run_cpu(const Expr& expr, const Bindings& bindings, const BlockTable& table) {
  auto& work = of_thread([] { return new RunWorkspace; });
  settle(bindings);
  const Program& program = compiled(expr, table);
  // The order of sums decides their last bits.
  if (!program.reductions.empty()) return run_program(program, bindings, work);
  if (const auto line = as_one_line(bindings)) {
    return run_program(program, line->bindings(), work);
  }
  if (!is_worth_arranging(bindings)) return run_program(program, bindings, work);
  for (const Part& part : arranged(bindings, kPlaneBytes, program.widest)) {
    run_program(program, part.bindings(), work, part.is_in_planes());
  }
}

}  // namespace cuop::jit
