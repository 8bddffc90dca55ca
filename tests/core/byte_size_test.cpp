#include "cuop/core/byte_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ByteSize, ReadsWhatPeopleWrite) {
  EXPECT_EQ(parse_bytes("0", "test"), 0);
  EXPECT_EQ(parse_bytes("4096", "test"), 4096);
  EXPECT_EQ(parse_bytes("64B", "test"), 64);
  EXPECT_EQ(parse_bytes("512MB", "test"), int64_t{512} << 20);
  EXPECT_EQ(parse_bytes("2GB", "test"), int64_t{2} << 30);
  EXPECT_EQ(parse_bytes("1.5 GiB", "test"), int64_t{3} << 29);
  EXPECT_EQ(parse_bytes(" 3 kb ", "test"), 3072);
  EXPECT_EQ(parse_bytes("1T", "test"), int64_t{1} << 40);
}

TEST(ByteSize, RefusesWhatIsNoSize) {
  for (const char* text :
       {"", "GB", "-1", "2 elephants", "2GB more", "1e30", "2XB", "nan", "2GBB"}) {
    EXPECT_THROW(parse_bytes(text, "test"), ExecutionError) << text;
  }
}

TEST(ByteSize, SaysWhichSizesAreTooLarge) {
  EXPECT_EQ(parse_bytes("8388607TB", "test"), int64_t{8388607} << 40);
  for (const char* text : {"8388608TB", "99999999999GB", "9223372036854775808", "1e30"}) {
    EXPECT_THAT([&] { parse_bytes(text, "test"); },
                ThrowsMessage<ExecutionError>(
                    HasSubstr(cat("test: '", text, "' is more bytes than 64 bits count"))));
  }
}

TEST(ByteSize, WritesThreeFigures) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(1000), "1000 B");
  EXPECT_EQ(format_bytes(int64_t{1} << 34), "16 GiB");
}

}  // namespace
}  // namespace cuop
