#include "cuop/core/nvtx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cuop/core/trace.h"
#include "tests/own_process.h"

namespace cuop {
namespace {

std::string told(const DynLib& library) {
  const char* (*const told_ranges)() = library.require("told_ranges");
  return told_ranges();
}

TEST(Nvtx, LibrariesThatDoNotSpeakTheProtocolAreDeclined) {
  EXPECT_FALSE(nvtx::attach(DynLib("C library", {"libc.so.6"})));
  EXPECT_FALSE(nvtx::attach(DynLib("nothing", {"libcuop-no-such-library.so"})));
}

TEST(Nvtx, WithoutAProfilerThereAreNoRanges) {
  ASSERT_EQ(test::run_in_process("NvtxProcess.DISABLED_SpansCostNothing", "CUOP_NVTX_LIBRARY=off"),
            0);
  ASSERT_EQ(test::run_in_process("NvtxProcess.DISABLED_SpansCostNothing",
                                 "CUOP_LOG=off CUOP_NVTX_LIBRARY=/nowhere/libprofiler.so"),
            0);
}

TEST(Nvtx, EverySpanIsARangeOfTheProfilerThatIsAttached) {
  for (const char* name : {"CUOP_NVTX_LIBRARY", "NVTX_INJECTION64_PATH"}) {
    EXPECT_EQ(test::run_in_process("NvtxProcess.DISABLED_SpansAreRanges",
                                   std::string(name) + "='" CUOP_FAKE_NVTX "'"),
              0)
        << name;
  }
}

TEST(NvtxProcess, DISABLED_SpansCostNothing) {
  const trace::Span span("add", "op");
  EXPECT_FALSE(span.is_open());
  EXPECT_FALSE(nvtx::is_attached());
}

TEST(NvtxProcess, DISABLED_SpansAreRanges) {
  {
    const trace::Span outer("softmax", "op");
    const trace::Span inner("copy", "op");
  }
  { const trace::Span span("add", "op"); }
  const auto launch = [](const char* name) {
    trace::Work work(name, {{DeviceType::kCuda, 0}, nullptr});
    work.started();
  };
  launch("fill");  // work outside of all spans
  {
    const trace::Span span("exp", "op");
    launch("exp");
  }
  EXPECT_TRUE(nvtx::is_attached());
  EXPECT_EQ(told(DynLib("fake", {CUOP_FAKE_NVTX})), "<softmax<copy>><add><fill><exp>");
  EXPECT_TRUE(trace::events().empty()) << "ranges are not a recording";
}

}  // namespace
}  // namespace cuop
