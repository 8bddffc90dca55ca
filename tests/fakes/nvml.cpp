// NVML as far as cuOP asks it: one GPU with three processes, of which the caller is one.
#include <unistd.h>

#include <cstring>

namespace {

struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};
constexpr int kInsufficientSize = 7, kNotFound = 6;
int device = 0;

}  // namespace

extern "C" int nvmlInit_v2() { return 0; }
extern "C" const char* nvmlErrorString(int status) {
  return status == kNotFound ? "Not Found" : "Unknown Error";
}
extern "C" int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::strncpy(text, "580.95.05", size);
  return 0;
}
extern "C" int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  if (std::strcmp(uuid, "GPU-1") != 0) return kNotFound;
  *handle = &device;
  return 0;
}
extern "C" int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void* infos) {
  const ProcessInfo all[] = {{4'000'000'001u, 2ULL << 30, 0, 0},
                             {static_cast<unsigned>(getpid()), 1ULL << 30, 0, 0},
                             {4'000'000'002u, ~0ULL, 0, 0}};
  const unsigned given = *count;
  *count = 3;
  if (infos == nullptr || given < 3) return kInsufficientSize;
  std::memcpy(infos, all, sizeof all);
  return 0;
}
