// How algorithms of libraries are written down, and what makes two problems different.
#include <gtest/gtest.h>

#include <set>

#include "cuop/backend/cuda/cublaslt.h"
#include "cuop/backend/cuda/cudnn.h"
#include "cuop/backend/cuda/cudnn_plan.h"

namespace cuop::backend::cuda {
namespace {

TEST(GemmAlgorithm, IsReadAsItWasWritten) {
  GemmAlgorithm algorithm;
  for (size_t i = 0; i < 8; ++i) algorithm.words[i] = 0xfedcba9876543210u >> i;
  algorithm.workspace_bytes = 65536;
  const std::string text = gemm_text(algorithm);
  EXPECT_EQ(parse_gemm_algorithm(text), algorithm);
  EXPECT_EQ(text.substr(text.rfind(' ')), " 65536");
  for (const std::string& wrong : {std::string(), text + " 1", text.substr(0, text.rfind(' ')),
                                   "x" + text, text.substr(0, text.rfind(' ')) + " -1"}) {
    EXPECT_FALSE(parse_gemm_algorithm(wrong).has_value()) << wrong;
  }
}

TEST(GemmProblem, EveryFieldIsInItsText) {
  std::set<std::string> texts;
  const auto add = [&](auto&& change) {
    GemmProblem problem{.shape = {.m = 2, .n = 3, .k = 4, .lda = 4, .ldb = 3, .ldc = 3}};
    change(problem);
    texts.insert(gemm_text(problem));
  };
  add([](GemmProblem&) {});
  add([](GemmProblem& p) { p.shape.dtype = DType::kFloat16; });
  add([](GemmProblem& p) { p.shape.trans_a = Trans::kTrans; });
  add([](GemmProblem& p) { p.shape.trans_b = Trans::kConjTrans; });
  add([](GemmProblem& p) { p.shape.m = 5; });
  add([](GemmProblem& p) { p.shape.n = 5; });
  add([](GemmProblem& p) { p.shape.k = 5; });
  add([](GemmProblem& p) { p.shape.lda = 5; });
  add([](GemmProblem& p) { p.shape.ldb = 5; });
  add([](GemmProblem& p) { p.shape.ldc = 5; });
  add([](GemmProblem& p) { p.shape.batch = 5; });
  add([](GemmProblem& p) { p.shape.stride_a = 5; });
  add([](GemmProblem& p) { p.shape.stride_b = 5; });
  add([](GemmProblem& p) { p.shape.stride_c = 5; });
  add([](GemmProblem& p) { p.align_a = 16; });
  add([](GemmProblem& p) { p.align_b = 16; });
  add([](GemmProblem& p) { p.align_c = 16; });
  add([](GemmProblem& p) { p.units = MatrixUnits::kForbidden; });
  add([](GemmProblem& p) { p.units = MatrixUnits::kRequired; });
  add([](GemmProblem& p) { p.most_workspace = 0; });
  EXPECT_EQ(texts.size(), 20U);
}

TEST(ConvProblem, EveryFieldIsInItsText) {
  std::set<std::string> texts;
  const auto add = [&](auto&& change) {
    ConvShape shape{{.batch = 2, .in_channels = 4, .out_channels = 4}};
    change(shape);
    texts.insert(conv_text(shape));
  };
  add([](ConvShape&) {});
  add([](ConvShape& s) { s.dtype = DType::kFloat64; });
  add([](ConvShape& s) { s.batch = 3; });
  add([](ConvShape& s) { s.in_channels = 8; });
  add([](ConvShape& s) { s.out_channels = 8; });
  add([](ConvShape& s) { s.groups = 2; });
  add([](ConvShape& s) { s.in[1] = 9; });
  add([](ConvShape& s) { s.kernel[1] = 9; });
  add([](ConvShape& s) { s.out[1] = 9; });
  add([](ConvShape& s) { s.stride[1] = 9; });
  add([](ConvShape& s) { s.padding[1] = 9; });
  add([](ConvShape& s) { s.dilation[1] = 9; });
  add([](ConvShape& s) { s.has_bias = true; });
  add([](ConvShape& s) { s.has_relu = true; });
  add([](ConvShape& s) { s.adds_to_y = true; });
  EXPECT_EQ(texts.size(), 15U);
}

TEST(EngineChoice, IsReadAsItWasWritten) {
  for (const dnn::EngineChoice& choice :
       {dnn::EngineChoice{34, {{2, 1}, {7, -64}}}, dnn::EngineChoice{0, {}}}) {
    EXPECT_EQ(dnn::EngineChoice::parse(choice.text()), choice);
  }
  EXPECT_EQ((dnn::EngineChoice{34, {{2, 1}, {7, 64}}}).text(), "34 2=1 7=64");
  for (const char* wrong : {"", "x", "34 2", "34 2:1", "34 2=", "34 2=1 x"}) {
    EXPECT_FALSE(dnn::EngineChoice::parse(wrong).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace cuop::backend::cuda
