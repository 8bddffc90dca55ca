// What is measured of the way between the host and a GPU, where copies fail (CONTRIBUTING.md).
#include <memory>
#include <string>

#include "cuop/backend/cache.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/exec/rank_machine.h"
#include "cuop/memory/current.h"
#include "cuop/memory/pool.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "tests/gpu/gpu_test.h"
#include "tests/ordered_faults.h"

namespace cuop::dist {
namespace {

class GpuHostLink : public GpuTest {};

TEST_F(GpuHostLink, AnErrorOfAnyCopyReachesTheCaller) {
  if (test::find_fault_order() == nullptr) GTEST_SKIP() << "needs the simulated GPU";
  // Little memory, so that a measurement is a few short copies and is not kept.
  memory::Pool& pool = memory::device_pool(kGpu);
  empty_cache(kGpu);
  pool.set_limit(pool.statistics().reserved_bytes + (4 << 20));
  const std::shared_ptr<void> at_end(&pool, [](void* limited) {
    test::order_faults("");
    static_cast<memory::Pool*>(limited)->set_limit(memory::kUnlimited);
  });
  const Tensor host = full({4}, 1, DType::kFloat32);
  int copies = 0;
  for (bool has_failed = true; has_failed; copies += has_failed ? 1 : 0) {
    ASSERT_TRUE(test::order_faults(cat("copy:", copies + 1, ":1").c_str()));
    try {
      host_link(kGpu);
      has_failed = false;
    } catch (const Error&) {
    }
  }
  // The fault that no measurement met is met by the copy behind it.
  EXPECT_THROW(to_device(host, kGpu), Error);
  EXPECT_GE(copies, 12);  // up, down and both ways, three times each
}

}  // namespace
}  // namespace cuop::dist
