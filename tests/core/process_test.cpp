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
    EXPECT_THAT(row.name, ::testing::StartsWith("CUOP_"));
    EXPECT_FALSE(row.what.empty());
  }
  EXPECT_TRUE(names.count("CUOP_COMM_TIMEOUT"));
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

}  // namespace
}  // namespace cuop
