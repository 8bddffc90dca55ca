// Messages made of parts are what a stream would write.
#include "cuop/core/text.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/core/dims.h"

namespace cuop {
namespace {

template <class Value>
std::string streamed(const Value& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

template <class Number>
void check_number() {
  using Limits = std::numeric_limits<Number>;
  for (const Number each : {Limits::lowest(), Limits::min(), Limits::max(), Number(0), Number(1),
                            Number(42), static_cast<Number>(-1)}) {
    EXPECT_EQ(cat(each), streamed(each));
  }
}

TEST(Text, NumbersAreWhatAStreamWrites) {
  check_number<bool>();
  check_number<char>();
  check_number<int8_t>();
  check_number<uint8_t>();
  check_number<int16_t>();
  check_number<uint16_t>();
  check_number<int>();
  check_number<uint32_t>();
  check_number<int64_t>();
  check_number<uint64_t>();
  check_number<float>();
  check_number<double>();
}

TEST(Text, FractionsAreWhatAStreamWrites) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double each : {0.1, -0.0, 1e-5, 123456.0, 1234567.0, 1.0 / 3, 2.5e300, 5e-324, 1e15,
                            kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(cat(each), streamed(each));
    EXPECT_EQ(cat(static_cast<float>(each)), streamed(static_cast<float>(each)));
  }
}

TEST(Text, TextOfEveryKindIsTakenAsItIs) {
  const char* pointer = "pointer";
  char array[8] = "array";  // which ends at its 0
  EXPECT_EQ(cat("a literal, ", pointer, ", ", array, ", ", std::string("a string"), ", ",
                std::string_view("a view").substr(2), 'c'),
            "a literal, pointer, array, a string, viewc");
  EXPECT_EQ(cat(std::string("with\0zero", 9)).size(), 9u);
  EXPECT_EQ(cat(static_cast<const char*>(nullptr)), "");
  EXPECT_EQ(cat(), "");
}

TEST(Text, WhatHasAStreamOperatorIsStreamed) {
  EXPECT_EQ(cat("of ", Shape{2, 3}), "of " + streamed(Shape{2, 3}));
}

TEST(Text, RangesAreJoined) {
  EXPECT_EQ(join(std::vector<int>{1, 2, 3}), "1, 2, 3");
  EXPECT_EQ(join(std::vector<std::string>{"a", "b"}, " x "), "a x b");
  EXPECT_EQ(join(std::vector<int>{}), "");
}

TEST(Text, SystemErrorsAreWorded) {
  errno = ENOENT;
  EXPECT_EQ(errno_text(), "No such file or directory");
  EXPECT_EQ(errno_text(EACCES), "Permission denied");
}

}  // namespace
}  // namespace cuop
