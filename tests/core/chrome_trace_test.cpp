#include "cuop/core/chrome_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace cuop::trace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Event host(const std::string& name, int64_t start_ns, int64_t duration_ns) {
  Event event;
  event.name = name;
  event.category = "op";
  event.start_ns = start_ns;
  event.duration_ns = duration_ns;
  return event;
}

Event on_stream(Event event, const std::string& stream, int64_t start_ns, int64_t duration_ns) {
  event.category = "gpu";
  event.stream = stream;
  event.start_ns = start_ns;
  event.duration_ns = duration_ns;
  return event;
}

TEST(ChromeTrace, ThreadsAndStreamsAreTracksOfTheirRank) {
  Event matmul = host("mat\"mul", 1000, 2000);
  matmul.rank = 3;
  matmul.thread = 1;
  matmul.gpu_ns = 5000;
  const std::string json =
      to_chrome_json({matmul, on_stream(matmul, "cuda:0 stream 1", 2500, 5000)});
  EXPECT_THAT(json, HasSubstr(R"({"ph":"M","name":"process_name","pid":3,"tid":0,)"
                              R"("args":{"name":"rank 3"}})"));
  EXPECT_THAT(json, HasSubstr(R"({"ph":"M","name":"thread_name","pid":3,"tid":1,)"
                              R"("args":{"name":"thread 1"}})"));
  EXPECT_THAT(json, HasSubstr(R"("pid":3,"tid":1001,"args":{"name":"cuda:0 stream 1"}})"));
  EXPECT_THAT(json, HasSubstr(R"({"ph":"X","name":"mat\"mul","pid":3,"cat":"op","tid":1,)"
                              R"("ts":1.000,"dur":2.000,"args":{"bytes":0,"flops":0.000,)"
                              R"("gpu_us":5.000}})"));
  EXPECT_THAT(json, HasSubstr(R"("cat":"gpu","tid":1001,"ts":2.500,"dur":5.000)"));
  EXPECT_THAT(json, HasSubstr(R"("stream":"cuda:0 stream 1"}})"));
}

TEST(ChromeTrace, CountersAreTheSumOfWhatGoesOn) {
  Event first = host("copy", 1000, 100), second = host("copy", 1050, 100);
  first.bytes = 200;   // 2 GB/s
  second.bytes = 400;  // 4 GB/s
  second.flops = 1000.0;
  Event part = host("part", 1000, 100);
  part.bytes = 999;
  part.is_outermost = false;
  const std::string json = to_chrome_json({first, part, second});
  const auto counter = [](const char* name, const char* time, const char* value) {
    return std::string(R"({"ph":"C","name":")") + name + R"(","pid":0,"tid":0,"ts":)" + time +
           R"(,"args":{")" + name + R"(":)" + value + "}}";
  };
  EXPECT_THAT(json, HasSubstr(counter("GB/s", "1.000", "2.000")));
  EXPECT_THAT(json, HasSubstr(counter("GB/s", "1.050", "6.000")));
  EXPECT_THAT(json, HasSubstr(counter("GB/s", "1.100", "4.000")));
  EXPECT_THAT(json, HasSubstr(counter("GB/s", "1.150", "0.000")));
  EXPECT_THAT(json, HasSubstr(counter("GFLOP/s", "1.050", "10.000")));
}

TEST(ChromeTrace, WorkOnAGpuCountsInItsStreamsTime) {
  Event call = host("add", 0, 10);
  call.bytes = 1000;
  call.gpu_ns = 500;
  const std::string json =
      to_chrome_json({call, on_stream(call, "cuda:0 default stream", 100, 500)});
  EXPECT_THAT(json, HasSubstr(R"("ts":0.100,"args":{"GB/s":2.000}})"));
  EXPECT_THAT(json, HasSubstr(R"("ts":0.600,"args":{"GB/s":0.000}})"));
  EXPECT_THAT(json, Not(HasSubstr(R"("ts":0.000,"args":{"GB/s")")));
}

TEST(ChromeTrace, AnyNameIsAJsonString) {
  Event event = host(std::string("a\nb\xff\0", 5), 1, 2);
  event.category = "\\";
  event.stream = "\"}";
  event.flops = std::numeric_limits<double>::infinity();
  const std::string json = to_chrome_json({event});
  EXPECT_THAT(json, HasSubstr("\"name\":\"a\\u000ab\xef\xbf\xbd\\u0000\""));
  EXPECT_THAT(json, HasSubstr(R"("cat":"\\",)"));
  EXPECT_THAT(json, HasSubstr(R"("flops":null,"stream":"\"}"}})"));
}

TEST(ChromeTrace, NothingIsAnEmptyTrace) {
  EXPECT_EQ(to_chrome_json({}), "{\"traceEvents\":[\n]}\n");
}

}  // namespace
}  // namespace cuop::trace
