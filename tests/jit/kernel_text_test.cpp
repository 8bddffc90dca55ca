// Which texts the compiler of a kernel reads.
#include "cuop/jit/kernel_text.h"

#include <gmock/gmock.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cuop/core/text.h"
#include "cuop/jit/op_table.h"

namespace cuop::jit {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

std::string_view text_named(const std::string& name) {
  for (const KernelText& text : kernel_texts()) {
    if (name == text.name) return text.text;
  }
  ADD_FAILURE() << name << " is no text";
  return "";
}

/// What a compiler for GPUs reads of a text in a kernel of real numbers: the names of all that it
/// includes, directly or not, outside of what the two macros leave out.
void collect_read(std::string_view text, std::set<std::string>& names) {
  std::istringstream lines{std::string(text)};
  std::vector<bool> is_read{true};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string directive, argument;
    words >> directive >> argument;
    const bool is_defined = argument == "CUOP_REAL_ONLY" || argument == "__CUDACC_RTC__";
    if (directive == "#ifdef") is_read.push_back(is_read.back() && is_defined);
    if (directive == "#ifndef") is_read.push_back(is_read.back() && !is_defined);
    if (directive == "#if") is_read.push_back(is_read.back());
    if (directive == "#else") {
      const bool was = is_read.back();
      is_read.pop_back();
      is_read.push_back(is_read.back() && !was);
    }
    if (directive == "#endif") is_read.pop_back();
    if (directive != "#include" || !is_read.back() || argument[0] != '"') continue;
    const std::string name = argument.substr(1, argument.size() - 2);
    if (names.insert(name).second) collect_read(text_named(name), names);
  }
}

std::set<std::string> read_for(std::string_view functor) {
  std::set<std::string> names;
  collect_read(cat("#include \"", text_defining(functor).name, "\"\n"), names);
  return names;
}

TEST(IncludedTexts, NoKernelReadsWhatHostsTryFirst) {
  for (const auto& op : op_table()) {
    const std::set<std::string> names = read_for(op.functor);
    for (const char* of_hosts : {"attempts", "fused", "single.h", "in_double"}) {
      EXPECT_THAT(names, Each(Not(HasSubstr(of_hosts)))) << op.name;
    }
  }
}

TEST(IncludedTexts, AKernelReadsTheFunctionsThatItNeeds) {
  for (const char* plain : {"fn::Add", "fn::Where", "fn::Relu", "fn::Less", "fn::Sqrt"}) {
    EXPECT_THAT(read_for(plain), Each(Not(HasSubstr("accurate/")))) << plain;
  }
  const auto expect = [](const char* functor, const char* needed, const char* other) {
    EXPECT_THAT(read_for(functor), Contains(HasSubstr(needed))) << functor;
    EXPECT_THAT(read_for(functor), Each(Not(HasSubstr(other)))) << functor;
  };
  expect("fn::Exp", "accurate/exponential.h", "logarithm");
  expect("fn::Sin", "accurate/circular.h", "exponential");
  expect("fn::Atan", "accurate/inverse_circular.h", "exponential");
  expect("fn::Log", "accurate/logarithm.h", "circular");
  expect("fn::Sigmoid", "accurate/quick.h", "error_function");
  expect("fn::Gelu", "accurate/error_function.h", "circular");
}

}  // namespace
}  // namespace cuop::jit
