#include "cuop/backend/cpu/isa.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

namespace cuop::isa {
namespace {

template <class L>
constexpr Level level_of = std::is_same_v<L, v4>   ? Level::kV4
                           : std::is_same_v<L, v3> ? Level::kV3
                                                   : Level::kBaseline;

TEST(Isa, BaselineAlwaysRunsAndTheCurrentLevelIsSupported) {
  EXPECT_TRUE(is_supported(Level::kBaseline));
  EXPECT_TRUE(is_supported(current()));
}

#ifdef CUOP_HAS_ISA_v3  // builds for sanitizers may do without
TEST(Isa, LevelsAreNested) {
  if (is_supported(Level::kV4)) {
    EXPECT_TRUE(is_supported(Level::kV3));
  }
}
#endif

TEST(Isa, ChooseHandsOverTheTypeOfTheLevel) {
  for (const Level level : {Level::kBaseline, Level::kV3, Level::kV4}) {
    if (!is_supported(level)) continue;
    EXPECT_EQ(choose(level, []<class L>(L) { return level_of<L>; }), level) << name(level);
  }
}

}  // namespace
}  // namespace cuop::isa
