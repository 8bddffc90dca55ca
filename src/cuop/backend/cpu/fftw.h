// FFTW 3 behind the FftLibrary seam, opened at run time.
#pragma once

#include "cuop/backend/cpu/fft.h"

namespace cuop::backend {

FftLibrary& fftw_library();

}  // namespace cuop::backend
