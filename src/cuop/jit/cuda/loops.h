// How a GPU kernel walks the tensors of one run: the iteration's axes, merged where all tensors
// allow it, and how each tensor is reached along them. What a kernel is generated from is the
// pattern; sizes and strides are its arguments.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cuop/jit/bindings.h"
#include "cuop/jit/expr.h"

namespace cuop::jit {

/// A tensor of one run. Strides are those along the loops' axes.
struct Walker {
  enum class Role : uint8_t { kLeaf, kOutput, kReduced };
  Role role = Role::kLeaf;
  int16_t number = 0;  ///< which leaf or which output
  DType dtype = DType::kFloat32;
  void* data = nullptr;  ///< of the first element
  std::array<int64_t, kMaxDims> strides{};
  /// One letter an axis: '0' not along it, 'x' by its stride; of the inner axis 'v' one after the
  /// other, 'b' not along it, 's' by its stride. Of results of reductions only the kept axes.
  std::string pattern;
};

struct Loops {
  int axes = 0;  ///< at least 1
  int kept = 0;  ///< the first of them; the others are reduced. All, without reductions
  std::array<int64_t, kMaxDims> sizes{};
  std::vector<Walker> walkers;  ///< the leaves that are needed, then the outputs
  bool is_reduction = false;
  int width = 1;          ///< elements along the inner axis that one thread takes at once
  bool has_tail = false;  ///< the inner axis is no multiple of the width
  bool is_wide = false;   ///< 64-bit indices
  /// Reductions of rows that begin at any address: what lies before a row's first aligned pack and
  /// behind its last one is taken one by one.
  bool is_ragged = false;
  /// Reductions: neighbouring threads read neighbouring rows, not neighbouring elements of a row.
  bool is_column = false;
  int team = 1;  ///< threads that share a row

  /// The axis along which a thread's elements lie: the last, or by columns the last kept one.
  int inner() const { return is_column ? kept - 1 : axes - 1; }
  int64_t inner_size() const { return sizes[static_cast<size_t>(inner())]; }
  /// Of the axes [from, to).
  int64_t size_of(int from, int to) const;
  int64_t kept_size() const { return size_of(0, kept); }
  int64_t reduced_size() const { return size_of(kept, axes); }
  /// What is taken at once, all in all.
  int64_t packs() const;
  /// Of a reduction: groups of `width` rows by columns, else rows; and steps of each.
  int64_t rows() const { return is_column ? kept_size() / width : kept_size(); }
  int64_t steps() const { return is_column ? reduced_size() : reduced_size() / width; }
  /// Steps, or where rows are ragged elements.
  int64_t row_length() const { return is_ragged ? reduced_size() : steps(); }
  /// Adds to the expression's key what else a kernel depends on.
  void add_key_to(std::string& key) const;
};

/// `cost` is the price of one element, an addition being 1: dear ones are not taken many at once.
Loops plan_loops(const Expr& expr, const Bindings& bindings, int cost);

/// The rough price of one element, an addition being 1.
int element_cost(const Expr& expr);

/// Steps of a reduction whose loads a thread has on the way together: one where arithmetic that
/// keeps a multiprocessor busy hides them. Moments by columns leave room for few threads, each of
/// which reads one element at a time, so that they take more (10000 x 10000 float32 on an H200: 108
/// us instead of 205).
int steps_together(const Expr& expr, const Loops& loops);

/// Which nodes are needed for the outputs.
std::vector<bool> needed_nodes(const Expr& expr);

}  // namespace cuop::jit
