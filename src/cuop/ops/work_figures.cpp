#include "cuop/ops/work_figures.h"

#include "cuop/backend/device_properties.h"
#include "cuop/backend/runtime.h"
#include "cuop/ops/matmul/split_product_internal.h"

namespace cuop {

WorkFigures work_figures(Device device) {
  WorkFigures figures;
  figures.spare = backend::execution_options().spare;
  if (device.is_cpu()) return figures;
  figures.multiprocessors = backend::runtime(device).properties().multiprocessors;
  figures.splits_products = kernels::prefers_split_products(device);
  return figures;
}

}  // namespace cuop
