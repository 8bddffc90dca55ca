#include "cuop/system/info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "cuop/backend/cpu/blas_library.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/runtime.h"

namespace cuop {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(SystemInfo, NamesWhatThereIsAndWhatIsMissing) {
  std::vector<std::string> names;
  for (const SystemPart& part : system_info()) {
    names.push_back(part.name);
    EXPECT_FALSE(part.detail.empty()) << part.name;
    if (part.name == "CPU") {
      EXPECT_TRUE(part.is_found);
    } else if (part.name == "BLAS") {
      EXPECT_EQ(part.is_found, backend::blas::info().is_available);
    } else if (part.name == "GPU") {
      const bool has_gpu = backend::device_count(DeviceType::kCuda) > 0;
      EXPECT_EQ(part.is_found, has_gpu);
      EXPECT_TRUE(has_gpu || part.detail == backend::cuda_absence_reason()) << part.detail;
    }
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"system", "CPU", "threads", "memory", "BLAS", "FFTW",
                                            "oneDNN", "MPI", "CUDA driver", "GPU"}));
}

TEST(SystemInfo, PrintsOneLineAPart) {
  std::ostringstream out;
  print_system_info(out);
  const std::string text = out.str();
  EXPECT_THAT(text, StartsWith(std::string("cuOP ") + version() + "\nsystem "));
  const auto lines = std::count(text.begin(), text.end(), '\n');
  EXPECT_EQ(lines, static_cast<int64_t>(system_info().size()) + 1);
  EXPECT_THAT(text, HasSubstr(" GiB free of "));
}

}  // namespace
}  // namespace cuop
