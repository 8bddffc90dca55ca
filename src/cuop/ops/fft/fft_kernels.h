// Internal: one pass of 1-D transforms over all lines of an array, the piece that every transform
// is made of, and the loops of the CPU's.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/fft_spec.h"
#include "cuop/core/device.h"
#include "cuop/core/dims.h"
#include "cuop/core/tensor.h"

namespace cuop::spectral {

/// What is transformed, of a line x.
enum class LineInput : uint8_t {
  kPlain,          ///< x, with zeros behind it where it is too short
  kOdd,            ///< 0, x, 0, -x backwards
  kEven,           ///< x, x backwards without its ends
  kEvensThenOdds,  ///< the even elements in order, then the odd ones backwards
  kCosineSums,     ///< (x[k] - i x[n-k]) exp(pi i k / 2 n), x[n] = 0: that of kTurnedCosine from x
};
/// What is made of the transform y.
enum class LineOutput : uint8_t {
  kPlain,
  kMirrored,           ///< of half a spectrum the whole
  kMirroredConjugate,  ///< and its conjugate
  kSine,               ///< -Im y[k + 1]
  kCosine,             ///< Re y[k]
  kTurnedCosine,       ///< 2 Re(y[k] exp(-pi i k / 2 n)) of the whole spectrum
  kInOrder,            ///< kEvensThenOdds undone
};

/// Whether elements of the line and of what is made of it are real.
inline bool takes_real(backend::TransformKind kind, LineInput input) {
  return kind == backend::TransformKind::kRealForward || input == LineInput::kCosineSums;
}
inline bool gives_real(backend::TransformKind kind, LineOutput output) {
  return kind == backend::TransformKind::kRealBackward || output == LineOutput::kSine ||
         output == LineOutput::kCosine || output == LineOutput::kTurnedCosine;
}

struct LinePass {
  backend::TransformKind kind = backend::TransformKind::kForward;
  bool is_double = false;
  int64_t n = 1;         ///< length of the transform
  int64_t in_count = 1;  ///< elements that a line has; more than the transform reads are cut off
  int64_t out_count = 1;
  LineInput input = LineInput::kPlain;
  LineOutput output = LineOutput::kPlain;
  double scale = 1.0;
  Device device;

  // Both sides: address, stride of the axis, and the other axes. In elements of the side's type.
  // In place is allowed when both sides have the same address, strides and element type.
  const void* in = nullptr;
  void* out = nullptr;
  int64_t in_stride = 1;
  int64_t out_stride = 1;
  Shape others;
  Strides in_strides;
  Strides out_strides;

  /// Axes that the complex transforms run along as well, the fastest first, and not among `others`:
  /// where is_one_call_cuda says so alone.
  struct Joined {
    int64_t n = 1;
    int64_t in_stride = 1;
    int64_t out_stride = 1;
  };
  std::vector<Joined> joined = {};

  /// Whose elements these are. On the CPU a long transform that the user interrupts still goes on
  /// for a while, and then keeps them.
  Tensor in_owner;
  Tensor out_owner;
};

/// Runs the pass on the CPU, in parallel over lines.
void run_lines_cpu(const LinePass& pass);
/// Runs the pass on a GPU by cuFFT.
void run_lines_cuda(const LinePass& pass);
/// Whether cuFFT makes the transforms along the lines and all joined axes where they lie, which
/// takes it less memory traffic than one axis after another.
bool is_one_call_cuda(const LinePass& pass);

template <class Real>
struct ComplexLoops {
  using Complex = std::complex<Real>;
  /// out[i] = a[i] b[i], by the plain formula (infinities may give NaN); out may be a.
  void (*multiply)(const Complex* a, const Complex* b, int64_t count, Complex* out);
  /// out[i] = x[i] b[i] for real x.
  void (*multiply_real)(const Real* x, const Complex* b, int64_t count, Complex* out);
  /// Of z[0] ... z[m] (only the range's are read), for first <= k < last <= (m + 1) / 2, 1 <=
  /// first: with the even part e = scale (z[k] + conj z[m-k]) and the odd one o = b[k] (z[k] - conj
  /// z[m-k]), out[k] = e + o and out[m-k] = conj(e - o). out may be z.
  void (*mirrored_butterflies)(const Complex* z, const Complex* b, int64_t m, Real scale,
                               int64_t first, int64_t last, Complex* out);
};
template <class Level, class Real>
const ComplexLoops<Real>& complex_loops();

/// The loops of the instruction set in use.
template <class Real>
const ComplexLoops<Real>& complex_loops_in_use() {
  static const ComplexLoops<Real>& chosen = isa::choose(
      []<class Level>(Level) -> const ComplexLoops<Real>& { return complex_loops<Level, Real>(); });
  return chosen;
}

}  // namespace cuop::spectral
