// Faults of the simulated GPU (CONTRIBUTING.md), ordered by a test that runs on it.
#pragma once

#include <dlfcn.h>

namespace cuop::test {

/// Whether this process's driver is the simulated one; it has been used already.
inline void* find_fault_order() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver == nullptr ? nullptr : dlsym(driver, "simOrderFaults");
}

/// Orders faults, counted from here on; "" withdraws all. False for a text that orders nothing.
inline bool order_faults(const char* text) {
  return reinterpret_cast<int (*)(const char*)>(find_fault_order())(text) == 0;
}

}  // namespace cuop::test
