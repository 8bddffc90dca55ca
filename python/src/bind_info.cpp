// What was found on this machine and why not: rows for `cuop info` and print_system_info.
#include "binders.h"
#include "cuop/backend/cpu/blas.h"
#include "cuop/backend/cpu/dnn.h"
#include "cuop/backend/cpu/fft.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/mpi.h"

namespace cuop::python {

namespace {

nb::tuple row(const char* part, bool is_found, const std::string& detail) {
  return nb::make_tuple(part, is_found, detail);
}

std::string gibibytes(int64_t bytes) {
  return cat(static_cast<double>(bytes >> 20) / 1024.0, " GiB");
}

nb::list found_parts() {
  nb::list rows;
  rows.append(row("processor", true, backend::runtime(kCpu).description()));
  const backend::MemoryInfo memory = backend::runtime(kCpu).memory_info();
  rows.append(row("memory", true, cat(gibibytes(memory.free), " free of ", gibibytes(memory.total))));
  const backend::blas::Info& blas = backend::blas::info();
  rows.append(row("BLAS", blas.is_available,
                  blas.is_available ? join(std::vector{blas.version, blas.core, blas.path}) : blas.reason));
  const backend::FftInfo fft = backend::fft_info();
  rows.append(row("FFTW", fft.is_available, fft.description));
  const backend::dnn::Info& dnn = backend::dnn::info();
  rows.append(row("oneDNN", dnn.is_available, dnn.is_available ? dnn.version : dnn.reason));
  const std::string mpi_reason = dist::mpi_unavailable_reason();
  rows.append(row("MPI", mpi_reason.empty(), mpi_reason.empty() ? "libcuop_mpi.so" : mpi_reason));
  for (const backend::LibraryStatus& library : backend::cuda_libraries()) {
    const bool is_found = !library.path.empty();
    rows.append(row(library.title.c_str(), is_found,
                    is_found ? cat(library.path, " ", library.version) : library.reason));
  }
  rows.append(row("GPU", backend::device_count(DeviceType::kCuda) > 0, backend::cuda_absence_reason()));
  return rows;
}

}  // namespace

void bind_info(nb::module_& m) {
  m.def("found_parts", &found_parts,
        "Rows (part, found?, detail or reason) of what cuOP uses on this machine.");
}

}  // namespace cuop::python
