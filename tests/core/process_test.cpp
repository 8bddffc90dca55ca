// What a process is told and tells: environment, devices, libraries, traces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cuop/core/device.h"
#include "cuop/core/dynlib.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;

TEST(Env, TableNamesEveryVariableOnce) {
  std::set<std::string> names;
  for (const EnvRow& row : env_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    const bool is_drivers = row.name == "CUDA_VISIBLE_DEVICES";
    EXPECT_TRUE(is_drivers || row.name.starts_with("CUOP_")) << row.name;
    EXPECT_FALSE(row.what.empty());
  }
  EXPECT_TRUE(names.count("CUOP_COMM_TIMEOUT"));
  EXPECT_TRUE(names.count("CUDA_VISIBLE_DEVICES"));
}

TEST(Device, ParsesItsOwnNames) {
  EXPECT_EQ(parse_device("cpu"), kCpu);
  EXPECT_EQ(parse_device("cuda"), (Device{DeviceType::kCuda, 0}));
  EXPECT_EQ(parse_device("cuda:3"), (Device{DeviceType::kCuda, 3}));
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cpu:1"}) {
    EXPECT_THROW(parse_device(text), DeviceError) << text;
  }
}

TEST(DynLib, AbsenceIsAStateWithAReason) {
  const DynLib absent("Nothing", {"libcuop-no-such-library.so.1"});
  EXPECT_FALSE(absent.is_loaded());
  EXPECT_THAT(absent.reason(), HasSubstr("libcuop-no-such-library"));
  EXPECT_EQ(absent.find("anything"), nullptr);
  EXPECT_THROW(absent.require("anything"), DeviceError);
  const DynLib c("C library", {"libcuop-no-such-library.so.1", "libc.so.6"});
  EXPECT_TRUE(c.is_loaded());
  EXPECT_EQ(c.path(), "libc.so.6");
  EXPECT_EQ(c.reason(), "");
  EXPECT_NE(c.find("malloc"), nullptr);
  EXPECT_THROW(c.require("cuop_no_such_symbol"), DeviceError);
}

TEST(DynLib, ErrorsEndWithTheAdvice) {
  using ::testing::EndsWith, ::testing::ThrowsMessage;
  const DynLib absent("Nothing", {"libcuop-no-such-library.so.1"}, "install it");
  EXPECT_EQ(absent.advice(), "install it");
  EXPECT_THAT([&] { absent.require("anything"); },
              ThrowsMessage<DeviceError>(EndsWith("; install it")));
  const DynLib c("C library", {"libc.so.6"}, "install a newer one");
  EXPECT_THAT([&] { c.require("cuop_no_such_symbol"); },
              ThrowsMessage<DeviceError>(EndsWith("cuop_no_such_symbol; install a newer one")));
}

}  // namespace
}  // namespace cuop
