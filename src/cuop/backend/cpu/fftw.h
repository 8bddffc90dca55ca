// FFTW 3 behind the FftLibrary seam, opened at run time.
#pragma once

#include "cuop/backend/cpu/fft_library.h"

namespace cuop::backend {

FftLibrary& fftw_library();

}  // namespace cuop::backend
