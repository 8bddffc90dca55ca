#include <gmock/gmock.h>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/einsum/equation.h"
#include "tests/error_of.h"

namespace cuop {
namespace {

using test::error_of;
using ::testing::HasSubstr;

std::string parsed(std::string_view text, std::vector<int> ndims) {
  const Equation equation = parse_equation(text, ndims);
  std::string result;
  for (const Indices& operand : equation.operands) result += cat('[', join(operand), "] ");
  return cat(result, "-> [", join(equation.output), ']');
}

TEST(EinsumEquation, GivesIndicesNumbersInTheOrderInWhichTheyAppear) {
  EXPECT_EQ(parsed("ij,jk->ik", {2, 2}), "[0, 1] [1, 2] -> [0, 2]");
  EXPECT_EQ(parsed("  i j , jk ->k i", {2, 2}), "[0, 1] [1, 2] -> [2, 0]");
  EXPECT_EQ(parsed("iij->ji", {3}), "[0, 0, 1] -> [1, 0]");
  EXPECT_EQ(parsed("", {0}), "[] -> []");
  EXPECT_EQ(parsed(",->", {0, 0}), "[] [] -> []");
  EXPECT_EQ(parsed("iI,é->éI", {2, 1}), "[0, 1] [2] -> [2, 1]");
  EXPECT_EQ(parsed("\xF0\x9D\x9B\xBC,\xE2\x84\x93->\xE2\x84\x93", {1, 1}), "[0] [1] -> [1]");
}

TEST(EinsumEquation, WithoutAnArrowTheResultHasTheLettersThatStandOnceByTheAlphabet) {
  EXPECT_EQ(parsed("ba", {2}), "[0, 1] -> [1, 0]");
  EXPECT_EQ(parsed("bA", {2}), "[0, 1] -> [1, 0]");
  EXPECT_EQ(parsed("ij,jk", {2, 2}), "[0, 1] [1, 2] -> [0, 2]");
  EXPECT_EQ(parsed("ii", {2}), "[0, 0] -> []");
  EXPECT_EQ(parsed("b...a", {4}), "[0, 1, 2, 3] -> [1, 2, 3, 0]");
}

TEST(EinsumEquation, DotsStandForDimensionsCountedFromTheBack) {
  EXPECT_EQ(parsed("...i,...i->...", {2, 3}), "[0, 1] [2, 0, 1] -> [2, 0]");
  EXPECT_EQ(parsed("i...j,...->j...", {2, 0}), "[0, 1] [] -> [1]");
  EXPECT_EQ(parsed("i->...i", {1}), "[0] -> [0]");
  EXPECT_EQ(parsed("...,...", {1, 2}), "[0] [1, 0] -> [1, 0]");
}

TEST(EinsumEquation, RefusesWhatIsNoEquation) {
  const auto refused = [](std::string_view text, std::vector<int> ndims) {
    return error_of<ExecutionError>([&] { parse_equation(text, ndims); });
  };
  EXPECT_THAT(refused("i$,j", {2, 1}), HasSubstr("the character \"$\", which is no index"));
  EXPECT_THAT(refused("i1", {2}), HasSubstr("the character \"1\""));
  EXPECT_THAT(refused("i\xC2\xB5", {2}), HasSubstr("the character \"\xC2\xB5\""));
  EXPECT_THAT(refused("i\xC3", {2}), HasSubstr("which is no index"));
  EXPECT_THAT(refused("i\xC1\xA1", {2}), HasSubstr("which is no index"));  // an overlong "a"
  EXPECT_THAT(refused("i..", {2}), HasSubstr("not part of an ellipsis"));
  EXPECT_THAT(refused(". . .i", {2}), HasSubstr("not part of an ellipsis"));
  EXPECT_THAT(refused("...i...", {2}), HasSubstr("of which a term may have one"));
  EXPECT_THAT(refused("i->i->i", {1}), HasSubstr("a second \"->\" in \"i->i->i\""));
  EXPECT_THAT(refused("i->i,i", {1}), HasSubstr("a comma behind \"->\""));
  EXPECT_THAT(refused("i - > i", {1}), HasSubstr("not part of \"->\""));
  EXPECT_THAT(refused("i>i", {1}), HasSubstr("not part of \"->\""));
  EXPECT_THAT(refused("i->ij", {1}), HasSubstr("index j of the result, which no operand has"));
  EXPECT_THAT(refused("ij->iji", {2}), HasSubstr("index i twice in the result"));
  EXPECT_THAT(refused("...i->i", {2}), HasSubstr("no ... behind \"->\""));
  EXPECT_THAT(refused("i,j", {1}), HasSubstr("2 terms, 1 operand was given"));
  EXPECT_THAT(refused("i", {1, 1}), HasSubstr("1 term, 2 operands were given"));
  EXPECT_THAT(refused("", {}), HasSubstr("0 operands were given; allowed are 1 to 256"));
  EXPECT_THAT(refused("", std::vector<int>(257)), HasSubstr("257 operands"));
}

TEST(EinsumEquation, RefusesTermsOfAnotherNumberOfDimensions) {
  const auto refused = [](std::string_view text, std::vector<int> ndims) {
    return error_of<ShapeError>([&] { parse_equation(text, ndims); });
  };
  EXPECT_THAT(refused("i,jk", {1, 1}),
              HasSubstr("operand 1 has 1 dimensions, its term in \"i,jk\" has 2 indices"));
  EXPECT_THAT(refused("i", {2}), HasSubstr("... stands for dimensions without an index"));
  EXPECT_THAT(refused("i...j", {1}), HasSubstr("2 indices beside ..."));
  EXPECT_THAT(refused("...,...a->...a", {32, 2}),
              HasSubstr("33 dimensions; tensors have up to 32"));
}

TEST(EinsumEquation, HasAMostNumberOfIndices) {
  std::string text;
  std::vector<int> ndims;
  for (int operand = 0; operand < 18; ++operand) {
    if (operand > 0) text += ',';
    for (int dim = 0; dim < 32; ++dim) {  // two bytes each, from U+0100 on
      const int code = 0x100 + operand * 32 + dim;
      text += static_cast<char>(0xC0 | (code >> 6));
      text += static_cast<char>(0x80 | (code & 0x3F));
    }
    ndims.push_back(32);
  }
  text += "->";
  EXPECT_THAT(error_of<ExecutionError>([&] { parse_equation(text, ndims); }),
              HasSubstr("more than 512 indices"));
}

std::string contracted(std::string_view text, std::vector<Shape> shapes) {
  const EinsumProblem problem = einsum_problem(text, shapes);
  std::string result;
  for (const Indices& input : problem.contraction.inputs) result += cat('[', join(input), "] ");
  return cat(result, "-> [", join(problem.contraction.output), "] ", problem.shape);
}

TEST(EinsumEquation, WhatIsStretchedOrHasSizeOneIsDropped) {
  EXPECT_EQ(contracted("ij,jk->ik", {{2, 3}, {3, 4}}), "[0, 1] [1, 2] -> [0, 2] (2, 4)");
  EXPECT_EQ(contracted("ij,jk->ik", {{2, 1}, {3, 4}}), "[0] [1, 2] -> [0, 2] (2, 4)");
  EXPECT_EQ(contracted("ij,jk->ik", {{1, 3}, {3, 4}}), "[1] [1, 2] -> [2] (1, 4)");
  EXPECT_EQ(contracted("ii->i", {{3, 3}}), "[0] -> [0] (3,)");
  EXPECT_EQ(contracted("i,i->i", {{0}, {1}}), "[0] [] -> [0] (0,)");
  EXPECT_EQ(contracted("...i,...i->...", {{1, 5}, {4, 1}}), "[1] [0] -> [0] (4,)");
}

TEST(EinsumEquation, RefusesSizesThatDisagree) {
  const auto refused = [](std::string_view text, std::vector<Shape> shapes) {
    return error_of<ShapeError>([&] { einsum_problem(text, shapes); });
  };
  EXPECT_THAT(refused("ij,jk", {{2, 3}, {4, 2}}),
              HasSubstr("index j of \"ij,jk\" has size 3 in operand 0 of shape (2, 3) and size 4 "
                        "in operand 1 of shape (4, 2)"));
  EXPECT_THAT(refused("ii", {{1, 3}}), HasSubstr("a diagonal needs equal sizes"));
  EXPECT_THAT(refused("i,i", {{0}, {2}}), HasSubstr("has size 0 in operand 0"));
  EXPECT_THAT(refused("...,...", {{2, 3}, {4}}), HasSubstr("dimension -1 of ..."));
}

TEST(EinsumEquation, CountsTheOperandsThatATextAsksFor) {
  EXPECT_EQ(operand_count(""), 1);
  EXPECT_EQ(operand_count("i,j,k->i"), 3);
  EXPECT_EQ(operand_count("i->i,j"), 1);
}

}  // namespace
}  // namespace cuop
