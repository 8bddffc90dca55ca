// What a process is told and tells: environment and devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cuop/core/device.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"

namespace cuop {
namespace {

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

}  // namespace
}  // namespace cuop
