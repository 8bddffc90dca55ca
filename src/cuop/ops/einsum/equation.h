// The equations of einsum, by NumPy's grammar: "ij,jk->ik".
//
//   equation  = terms [ "->" term ]        terms = term { "," term }
//   term      = { letter } [ "..." { letter } ]
//
// A letter, a-z, A-Z or a character from U+00C0 on, is an index; "..." stands for the dimensions
// that have none, which broadcast. Without "->" the result has the dimensions of "..." and then, in
// order of the alphabet (capitals first), the letters that stand once. Spaces do not matter outside
// of "..." and "->".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/core/contraction.h"

namespace cuop {

inline constexpr int kMostEinsumOperands = 256;
inline constexpr int kMostEinsumIndices = 512;

/// An equation beside operands of so many dimensions each.
struct Equation {
  std::string text;
  std::vector<Indices> operands;   ///< an index for each dimension; twice the same is a diagonal
  Indices output;                  ///< no index twice
  std::vector<std::string> names;  ///< of the indices, for messages: "i", "dimension 0 of ..."
};

/// What stands for an index of this number, from 0 on: A-Z, a-z, then the characters from U+00C0
/// on, so that letters are in the order of their numbers.
std::string index_letter(int number);

/// The indices one after the other by their names; "<3>" for a dimension of "...".
std::string term_of(const Equation& equation, const Indices& indices);

/// ExecutionError for what is no equation or has more operands or indices than allowed, ShapeError
/// for terms that do not fit the numbers of dimensions.
Equation parse_equation(std::string_view text, std::span<const int> ndims);

/// How many operands a text asks for, right or wrong.
int operand_count(std::string_view text);

/// An equation beside shapes.
struct EinsumProblem {
  Equation equation;
  std::vector<Shape> shapes;
  std::vector<int64_t> sizes;  ///< of each index
  Shape shape;                 ///< of the result
  /// What is left of it when diagonals are taken and what has size 1, though it may be stretched by
  /// other operands, is dropped: its inputs are operands in their order.
  Contraction contraction;
};

/// ShapeError where operands disagree: an index has one size in all of them, or 1, which is
/// stretched, but not beside another size in one operand.
EinsumProblem einsum_problem(std::string_view text, std::span<const Shape> shapes);

}  // namespace cuop
