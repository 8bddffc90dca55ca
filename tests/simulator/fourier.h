// Discrete Fourier transforms for the simulated cuFFT. Not those of FFTW, with which results are
// compared, and whose planner serves one caller of a process at a time.
#pragma once

#include <complex>
#include <vector>

namespace cuop::simulator {

/// line[k] <- sum over j of line[j] exp(sign 2 pi i j k / n), for any n.
void fourier_transform(std::vector<std::complex<double>>& line, int sign);

}  // namespace cuop::simulator
