// Transforms of single lines in scratch memory: straight from the FFT library where its plans are
// good, by Bluestein's algorithm for lengths with large prime factors, real lines as complex ones
// of half the length where that is faster. A line's bits depend on its values, length and dtype
// only, not on the lines around it.
#pragma once

#include <cstdint>
#include <memory>

#include "cuop/backend/cpu/fft.h"

namespace cuop::spectral {

/// Elements of the input and the output side of a line of length n.
int64_t input_length(backend::TransformKind kind, int64_t n);
int64_t output_length(backend::TransformKind kind, int64_t n);

/// `length` rounded up so that lines that far apart are all aligned for the library.
int64_t aligned_distance(int64_t length, int64_t element_bytes);

/// Bytes to which scratch memory of line transforms is aligned.
inline constexpr int64_t kWorkAlignment = 64;

class LineTransform {
 public:
  virtual ~LineTransform() = default;
  /// Lines that one `execute` does, `in_distance` and `out_distance` elements apart.
  int64_t batch() const { return batch_; }
  int64_t in_distance() const { return in_distance_; }
  int64_t out_distance() const { return out_distance_; }
  /// Bytes of aligned scratch that `execute` needs.
  int64_t work_bytes() const { return work_bytes_; }
  /// Whether lines are read and written from one end to the other, wherever they begin.
  bool is_in_order() const { return is_in_order_; }
  /// Unscaled; `work` is aligned to kWorkAlignment, `in` and `out` to backend::kFftAlignment where
  /// the transform is not in order. `in` may be overwritten for kRealBackward only.
  virtual void execute(void* in, void* out, void* work) const = 0;

 protected:
  int64_t batch_ = 1;
  int64_t in_distance_ = 1;
  int64_t out_distance_ = 1;
  int64_t work_bytes_ = 0;
  bool is_in_order_ = false;
};

/// The transform for this length, made on first use and kept. Thread-safe.
std::shared_ptr<const LineTransform> line_transform(backend::TransformKind kind, bool is_double,
                                                    int64_t n);

/// Bluestein's algorithm (IEEE Trans. Audio Electroacoust. 18, 1970): a convolution with a chirp,
/// done by transforms of a length with small factors.
std::unique_ptr<LineTransform> make_bluestein(backend::TransformKind kind, bool is_double,
                                              int64_t n);
/// A long complex line as R interleaved ones (Cooley and Tukey, Math. Comp. 19, 1965), each of
/// which fits the cache: their transforms, a product with roots of unity, and transforms of length
/// R across. Runs in parallel when the caller does not already.
std::unique_ptr<LineTransform> make_split(backend::TransformKind kind, bool is_double, int64_t n,
                                          int64_t ways);
/// A real line of even length as a complex one of half the length, with the even elements as real
/// and the odd ones as imaginary parts (Cooley, Lewis and Welch, J. Sound Vib. 12, 1970).
std::unique_ptr<LineTransform> make_half(backend::TransformKind kind, bool is_double, int64_t n);
/// Whether it is faster than the library's own plan of a real line of even length.
bool prefers_half(backend::TransformKind kind, bool is_double, int64_t n);
/// The R for length n, or 1 when the library's own plan is as good.
int64_t split_ways(bool is_double, int64_t n);
/// The cheapest length of at least `n` whose prime factors are 2, 3, 5 and 7.
int64_t smooth_length(int64_t n, bool is_double);

}  // namespace cuop::spectral
