// Every environment variable that cuOP heeds is one field of this struct; the documentation's table
// is printed from it. CUOP_* wins over the GENESIS_* name of the same meaning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cuop {

/// One variable: its name, the older name it also answers to ("" for none), what it does, its
/// value.
template <class T>
struct EnvField {
  const char* name;
  const char* alias;
  const char* what;
  T value;
  bool is_set = false;
  bool is_secret = false;  ///< tables say only whether it is set
};

struct Env {
  EnvField<std::string> device{"CUOP_DEVICE", "",
                               "Device of new tensors: cuda or cuda:N; auto is the first GPU that "
                               "can be used, else the CPU. Of ranks that are processes each takes "
                               "another GPU of its host, for auto and cuda. cpu moreover keeps "
                               "the process off the GPUs.",
                               "auto"};
  EnvField<std::string> cuda_visible_devices{
      "CUDA_VISIBLE_DEVICES", "",
      "GPUs that this process sees, by number or UUID and separated by commas: it is the driver "
      "that reads it, and cuda:0 is the first of them. Unset shows all, -1 or an empty text none.",
      ""};
  EnvField<int64_t> threads{"CUOP_THREADS", "",
                            "Threads of this process; 0 divides the cores by the local ranks.", 0};
  EnvField<double> comm_timeout{
      "CUOP_COMM_TIMEOUT", "", "Seconds that a rank waits for the others before it raises.", 300.0};
  EnvField<double> heartbeat_timeout{
      "CUOP_HEARTBEAT_TIMEOUT", "",
      "Seconds without a heartbeat after which a rank counts as stopped, or its host as lost, "
      "which ends the waits for it: 0.5 or more, and four times as long for one that is ready to "
      "run on a machine too busy for it. 0 or inf waits for such ranks until "
      "CUOP_COMM_TIMEOUT, as is good under a debugger; that a process has died is noticed all "
      "the same.",
      1.5};
  EnvField<std::string> host_name{
      "CUOP_HOST_NAME", "",
      "What this host is told from others by, beside the system's own mark: ranks that are given "
      "different names take each other to be on different hosts.",
      ""};
  EnvField<std::string> job_secret{
      "CUOP_JOB_SECRET",
      "",
      "What ranks joined by TCP prove to know before they listen to each other: 16 characters or "
      "more, the same on all ranks. Empty for a file of this user in CUOP_CACHE_DIR, which ranks "
      "on one host, and hosts with one home, share.",
      "",
      false,
      true};
  EnvField<std::string> blas_library{
      "CUOP_BLAS_LIBRARY", "", "Path of the CBLAS library to use instead of the one found.", ""};
  EnvField<bool> fft_measure{
      "CUOP_FFT_MEASURE", "",
      "1 lets the FFT library time its plans: slower first calls, faster later ones, and results "
      "whose last bits may differ from process to process.",
      false};
  EnvField<std::string> log{"CUOP_LOG", "", "Messages on stderr: off, warn, info or debug.",
                            "warn"};
  EnvField<bool> kernel_fusion{"CUOP_KERNEL_FUSION", "",
                               "0 runs fused regions op by op through the same engine.", true};
  EnvField<std::string> cache_dir{"CUOP_CACHE_DIR", "GENESIS_KERNEL_CACHE_DIR",
                                  "Directory of what is kept between processes; empty for the "
                                  "user's cache directory.",
                                  ""};
  EnvField<bool> tune_frozen{"CUOP_TUNE_FROZEN", "",
                             "1 lets the tuner only read what was stored: nothing is measured, "
                             "so that every run takes the same kernels.",
                             false};
  EnvField<bool> cuda_blocking{"CUOP_CUDA_BLOCKING", "",
                               "1 waits for every operation on a GPU, so that its error is raised "
                               "where it was caused.",
                               false};
  EnvField<std::string> cuda_home{
      "CUOP_CUDA_HOME", "CUDA_HOME",
      "Folder of the CUDA toolkit whose libraries are used when the system's loader knows none.",
      ""};
  EnvField<std::string> library_path{
      "CUOP_LIBRARY_PATH", "",
      "Folders, separated by ':', in which CUDA libraries are looked for before anywhere else.",
      ""};
  EnvField<double> cuda_memory_fraction{
      "CUOP_CUDA_MEMORY_FRACTION", "GENESIS_CUDA_MEMORY_FRACTION",
      "Part of a GPU's memory that this process may take, above 0 and up to 1.", 1.0};
  EnvField<std::string> cuda_cache_size{
      "CUOP_CUDA_CACHE_SIZE", "GENESIS_CUDA_CACHE_SIZE",
      "Idle GPU memory that is kept for reuse, as 1GB; empty keeps all.", ""};
  EnvField<std::string> cuda_allocator{
      "CUOP_CUDA_ALLOCATOR", "",
      "Where GPU memory comes from: auto, mapped (the pool over mapped granules), plain (the pool "
      "over cuMemAlloc) or driver (the driver's own pool).",
      "auto"};
  EnvField<bool> peer_memory{"CUOP_PEER_MEMORY", "",
                             "0 sends what processes of one host have in its memory in messages, "
                             "where each would read it, and write results, in the other's or in "
                             "memory that they share.",
                             true};
  EnvField<bool> split_products{
      "CUOP_SPLIT_PRODUCTS", "",
      "0 leaves all float32 products of a GPU to cuBLASLt and convolutions to cuDNN, where large "
      "ones would be computed on matrix units by parts of their elements.",
      true};
  EnvField<bool> peer_mapping{"CUOP_PEER_MAPPING", "",
                              "0 sends what ranks of one host exchange from GPU to GPU, and what "
                              "several GPUs take of an array in tiles, through the host's memory, "
                              "where each would read it in the other's.",
                              true};
  EnvField<bool> stream_flags{"CUOP_STREAM_FLAGS", "",
                              "0 lets the processes wait for their GPUs in exchanges, where the "
                              "streams of their GPUs would wait for each other.",
                              true};
  EnvField<bool> nccl{"CUOP_NCCL", "",
                      "0 sends what GPUs exchange that cannot read each other's memory, such as "
                      "those of two hosts, through the hosts' memory, where NCCL would send it.",
                      true};
  EnvField<std::string> host_allocator{
      "CUOP_HOST_ALLOCATOR", "",
      "Where tensors of the CPU lie: pool, or system for the C library's allocator.", "pool"};
  EnvField<std::string> host_cache_size{"CUOP_HOST_CACHE_SIZE", "",
                                        "Idle host memory that the pool keeps for reuse, as 1GB; "
                                        "empty for an eighth of the machine's.",
                                        ""};
  EnvField<std::string> nvtx_library{
      "CUOP_NVTX_LIBRARY", "NVTX_INJECTION64_PATH",
      "Library of a profiler that gets a range for every operation by NVTX's protocol. Profilers "
      "set the second name themselves; off for none.",
      ""};
  EnvField<std::string> cpu_isa{
      "CUOP_CPU_ISA", "", "Instruction set of the CPU kernels: auto, baseline, v3 or v4.", "auto"};

  /// Calls `visit(field)` for every field in the order of the table.
  template <class Visitor>
  void for_each(Visitor&& visit) {
    visit(device);
    visit(cuda_visible_devices);
    visit(threads);
    visit(comm_timeout);
    visit(heartbeat_timeout);
    visit(host_name);
    visit(job_secret);
    visit(blas_library);
    visit(fft_measure);
    visit(log);
    visit(kernel_fusion);
    visit(cache_dir);
    visit(tune_frozen);
    visit(cuda_blocking);
    visit(cuda_home);
    visit(library_path);
    visit(cuda_memory_fraction);
    visit(cuda_cache_size);
    visit(cuda_allocator);
    visit(peer_memory);
    visit(split_products);
    visit(peer_mapping);
    visit(stream_flags);
    visit(nccl);
    visit(host_allocator);
    visit(host_cache_size);
    visit(nvtx_library);
    visit(cpu_isa);
  }
};

/// The process's settings, read once on first use. ExecutionError when a value cannot be read.
const Env& env();

struct EnvRow {
  std::string name, alias, default_value, current, what;
};
/// The table of all variables, for `cuop info` and the documentation.
std::vector<EnvRow> env_table();

}  // namespace cuop
