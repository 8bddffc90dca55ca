#include "cuop/backend/cpu/blas.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <thread>
#include <vector>

#include "cuop/backend/cpu/blas_library.h"
#include "cuop/core/error.h"

namespace cuop::backend::blas {
namespace {

TEST(Blas, InfoNamesTheLibraryOrTheReason) {
  EXPECT_NE(info().is_available, info().path.empty());
  EXPECT_NE(info().is_available, !info().reason.empty());
  if (info().is_available) {
    EXPECT_TRUE(info().integer_bits == 32 || info().integer_bits == 64);
  }
}

TEST(Blas, AYoungProcessorIsNotTakenForAnOldOne) {
  EXPECT_EQ(better_core("Prescott", isa::Level::kV4), "SkylakeX");
  EXPECT_EQ(better_core("Nehalem", isa::Level::kV3), "Haswell");
  EXPECT_EQ(better_core("Prescott", isa::Level::kBaseline), "");  // it is one
  for (const char* good : {"Haswell", "SkylakeX", "SapphireRapids", "Zen", "NEOVERSEN1", ""}) {
    EXPECT_EQ(better_core(good, isa::Level::kV4), "") << good;
  }
  const bool is_asked_for = std::getenv("OPENBLAS_CORETYPE") != nullptr;
  if (is_asked_for || !isa::is_supported(isa::Level::kV3)) GTEST_SKIP() << "no core is chosen";
  EXPECT_EQ(better_core(info().core, isa::Level::kV3), "") << info().core;
}

TEST(Blas, SerialScopesShareOneSettingAndGiveItBack) {
  const Library& blas = require_library();
  if (!blas.info.is_thread_controlled) GTEST_SKIP() << blas.info.path << " has no thread control";
  const int before = blas.get_threads();
  blas.set_threads(2);
  {
    const SerialScope outer;
    EXPECT_EQ(blas.get_threads(), 1);
    std::vector<std::thread> others;
    for (int i = 0; i < 4; ++i) {
      others.emplace_back([] {
        for (int j = 0; j < 1000; ++j) const SerialScope inner;
      });
    }
    for (std::thread& other : others) other.join();
    EXPECT_EQ(blas.get_threads(), 1);
  }
  EXPECT_EQ(blas.get_threads(), 2);
  blas.set_threads(before);
}

TEST(Blas, OwnThreadsServeOnlyWhoeverMayHaveThemAll) {
  const Library& blas = require_library();
  if (!blas.info.is_thread_controlled) GTEST_SKIP() << blas.info.path << " has no thread control";
  const int before = blas.get_threads();
  blas.set_threads(2);
  EXPECT_TRUE(has_own_threads(2));
  EXPECT_FALSE(has_own_threads(3));
  {
    const SerialScope scope;
    EXPECT_FALSE(has_own_threads(2));
    EXPECT_FALSE(has_own_threads(1));  // one thread is the scope's doing, not the library's choice
  }
  EXPECT_TRUE(has_own_threads(2));
  blas.set_threads(before);
}

TEST(Blas, GemvWalksBackwardsFromTheFirstElement) {
  // [[1 2 3] [4 5 6]] times (x0, x1, x2) = (1, 10, 100), stored backwards.
  const std::array<double, 6> a{1, 2, 3, 4, 5, 6};
  const std::array<double, 3> x{100, 10, 1};
  std::array<double, 2> y{};
  GemvCall<double> call;
  call.m = 2;
  call.n = 3;
  call.a = a.data();
  call.lda = 3;
  call.x = x.data() + 2;
  call.incx = -1;
  call.y = y.data() + 1;
  call.incy = -1;
  gemv(call);
  EXPECT_EQ(y, (std::array<double, 2>{654, 321}));
}

TEST(Blas, SizesBeyondTheLibrarysIntegersAreRefused) {
  if (require_library().info.integer_bits == 64) GTEST_SKIP() << "the library has 64-bit sizes";
  GemmCall<float> call;
  call.m = call.n = 1;
  call.k = int64_t{1} << 31;
  EXPECT_THROW(gemm(call), ShapeError);
}

}  // namespace
}  // namespace cuop::backend::blas
