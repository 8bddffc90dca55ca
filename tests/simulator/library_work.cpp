#include "tests/simulator/library_work.h"

#include <cstdio>

#include "tests/simulator/address_space.h"
#include "tests/simulator/capture.h"
#include "tests/simulator/entry.h"
#include "tests/simulator/faults.h"

// Entry points of this driver.
extern "C" cuop::backend::cuda::Result cuMemAlloc(cuop::backend::cuda::DevicePointer*, size_t);
extern "C" cuop::backend::cuda::Result cuMemFree(cuop::backend::cuda::DevicePointer);

namespace cuop::simulator {

constexpr size_t kLibraryBytes = 512;

ContextHandle library_context() {
  ContextHandle context = nullptr;
  in_context([&](int device) {
    context = context_of(device);
    return Result::kSuccess;
  });
  return context;
}

LibraryMemory::LibraryMemory() {
  if (cuMemAlloc(&address_, kLibraryBytes) != Result::kSuccess) address_ = 0;
}
LibraryMemory::~LibraryMemory() {
  if (address_ != 0) cuMemFree(address_);
}
Region LibraryMemory::region() const {
  return {reinterpret_cast<const void*>(address_), kLibraryBytes};
}

Result start_library_work(StreamHandle on, std::vector<Region> regions,
                          std::function<void()> work) {
  return on_stream(on, [&](Stream& stream) {
    const int device = stream.device();
    return start(Asked::kLaunch, stream, reinterpret_cast<const void*>(&start_library_work),
                 [device, regions = std::move(regions), work = std::move(work)] {
                   for (const Region& region : regions) {
                     const auto address = reinterpret_cast<DevicePointer>(region.data);
                     if (AddressSpace::instance().is_reached(address, region.bytes, device)) {
                       continue;
                     }
                     std::fprintf(stderr,
                                  "simulated GPU: a library uses %zu bytes at %p, which "
                                  "its device does not reach\n",
                                  region.bytes, region.data);
                     return Result::kIllegalAddress;
                   }
                   work();
                   return Result::kSuccess;
                 });
  });
}

}  // namespace cuop::simulator
