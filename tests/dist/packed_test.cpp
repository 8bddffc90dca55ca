// What ranks tell each other as bytes: it comes back as it was, and nothing wrong is taken.
#include "cuop/dist/packed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuop/dist/cost/machine_figures.h"
#include "cuop/dist/exec/root_note.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;

template <class Work>
std::string unpacking_error(Work&& work) {
  try {
    work();
  } catch (const CommunicationError& error) {
    return error.what();
  }
  return "";
}

TEST(Packed, ComesBack) {
  Packer packed;
  packed.put(-5);
  packed.put(0.1);
  packed.put(~uint64_t{0});
  packed.put(Dims{7, 0, 3});
  packed.append("rest");
  Unpacker bytes("packed", packed.bytes());
  EXPECT_EQ(bytes.number(), -5);
  EXPECT_EQ(bytes.number<double>(), 0.1);
  EXPECT_EQ(bytes.number<uint64_t>(), ~uint64_t{0});
  EXPECT_EQ(bytes.dims(), (Dims{7, 0, 3}));
  EXPECT_EQ(bytes.rest(), "rest");
}

TEST(Packed, TextsThatEndElsewhereDiffer) {
  const auto pair = [](std::string_view a, std::string_view b) {
    Packer packed;
    packed.put(a);
    packed.put(b);
    return packed.take();
  };
  EXPECT_NE(pair("ab", "c"), pair("a", "bc"));
  EXPECT_NE(pair("", "x"), pair("x", ""));
}

TEST(Packed, RefusesWhatCannotBe) {
  Packer many;
  many.put(kMaxDims + 1);
  EXPECT_THAT(unpacking_error([&] { Unpacker("header", many.bytes()).dims(); }),
              HasSubstr("header: a message says 33 where 0 to 32 are possible"));
  Packer negative;
  negative.put(-1);
  EXPECT_THAT(unpacking_error([&] { Unpacker("header", negative.bytes()).number_to(14); }),
              HasSubstr("says -1 where 0 to 14"));
  Packer shape;
  shape.put(Dims{2, 3});
  const std::string cut = shape.bytes().substr(0, shape.bytes().size() - 1);
  EXPECT_THAT(unpacking_error([&] { Unpacker("header", cut).dims(); }),
              HasSubstr("ended too early"));
}

TEST(RootNote, ComesBack) {
  RootNote note{Machine::host(3), 0x8123456789abcdefu, true, false};
  note.machine.latency = 0.1;
  note.machine.network_bandwidth = 0.3;
  note.machine.call_overhead = 0.2;
  note.machine.sharded_call_overhead = 0.4;
  note.machine.overlap = 0.9;
  note.machine.recurrence_speed = 0;
  note.machine.ranks_per_host = 8;
  note.machine.memory = int64_t{1} << 40;
  const RootNote read = read_note(write_note(note));
  EXPECT_EQ(to_text(read.machine), to_text(note.machine));
  EXPECT_EQ(read.hash, note.hash);
  EXPECT_TRUE(read.is_on_gpu);
  EXPECT_FALSE(read.is_to_measure);
}

TEST(RootNote, RefusesWhatIsNone) {
  const RootNote good;
  const std::string bytes = write_note(good);
  EXPECT_THAT(unpacking_error([&] { read_note(bytes.substr(0, bytes.size() - 8)); }),
              HasSubstr("the root's note: a message ended too early"));
  EXPECT_THAT(unpacking_error([&] { read_note(bytes + "x"); }), HasSubstr("too long"));
  std::string flag = bytes;
  flag[8] = 2;
  EXPECT_THAT(unpacking_error([&] { read_note(flag); }), HasSubstr("says 2 where 0 to 1"));
  RootNote slow;
  slow.machine.flops = 0;
  EXPECT_THAT(unpacking_error([&] { read_note(write_note(slow)); }),
              HasSubstr("the root's note: flops is 0; it must be a number above 0"));
  RootNote no_memory;
  no_memory.machine.memory = 0;
  EXPECT_THAT(unpacking_error([&] { read_note(write_note(no_memory)); }),
              HasSubstr("memory is 0; it must be above 0"));
}

}  // namespace
}  // namespace cuop::dist
