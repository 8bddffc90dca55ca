// The figures of a machine by name: texts read back, and what no machine has is told.
#include "cuop/dist/cost/machine_figures.h"

#include <gmock/gmock.h>

#include <limits>

#include "cuop/core/text.h"

namespace cuop::dist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MachineFigures, AreReadBack) {
  Machine machine;
  double value = 1;
  for (const MachineFigure& figure : kMachineFigures) machine.*figure.member = 1 / ++value;
  machine.ranks_per_host = 8;
  machine.memory = int64_t{1} << 40;
  const std::optional<Machine> read = machine_from(to_text(machine));
  ASSERT_TRUE(read);
  value = 1;
  for (const MachineFigure& figure : kMachineFigures) {
    EXPECT_EQ((*read).*figure.member, 1 / ++value) << figure.name;
  }
  EXPECT_EQ(read->ranks_per_host, 8);
  EXPECT_EQ(read->memory, int64_t{1} << 40);
}

TEST(MachineFigures, OnlyTheWholeOfATextIsRead) {
  const std::string text = to_text(Machine{}), name = "half_speed ";
  const auto with = [&](const char* other) {
    std::string changed = text;
    return changed.replace(text.find(name), name.size(), other);
  };
  EXPECT_EQ(text.find("flops "), 0U);
  for (const std::string& wrong :
       {std::string(), text.substr(0, text.rfind(' ')), text + " 1", "v9 " + text,
        with("halfspeed "), with(""), with("half_speed x")}) {
    EXPECT_FALSE(machine_from(wrong)) << wrong;
  }
}

TEST(MachineFigures, AreWithinTheirRanges) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto is_read = [](const Machine& machine) {
    const bool is_right = wrong_figure(machine).empty();
    EXPECT_EQ(machine_from(to_text(machine)).has_value(), is_right) << to_text(machine);
    return is_right;
  };
  EXPECT_TRUE(is_read(Machine{}));
  for (const MachineFigure& figure : kMachineFigures) {
    Machine machine;
    for (const double value : {-1e-9, kNan, kInfinity}) {
      machine.*figure.member = value;
      EXPECT_FALSE(is_read(machine)) << figure.name;
      EXPECT_THAT(wrong_figure(machine),
                  AllOf(HasSubstr(cat(figure.name, " is ")), HasSubstr(name(figure.range))));
    }
    machine.*figure.member = 0;
    EXPECT_EQ(is_read(machine), figure.range != FigureRange::kAboveZero) << figure.name;
    machine.*figure.member = 1.1;
    EXPECT_EQ(is_read(machine), figure.range != FigureRange::kPart) << figure.name;
    machine.*figure.member = 1;
    EXPECT_TRUE(is_read(machine)) << figure.name;
  }
  Machine machine;
  machine.ranks_per_host = -1;
  EXPECT_FALSE(is_read(machine));
  machine.ranks_per_host = 0;
  machine.memory = 0;
  EXPECT_FALSE(is_read(machine));
}

}  // namespace
}  // namespace cuop::dist
