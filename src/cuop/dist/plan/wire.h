// In what form the elements of a tensor travel from rank to rank; what stays on its rank is left as
// it is.
#pragma once

#include <cstdint>
#include <string>

#include "cuop/core/dtype.h"
#include "cuop/dist/cost/machine.h"

namespace cuop::dist {

struct Wire {
  enum class Form : uint8_t {
    kPlain,   ///< bit by bit
    kNarrow,  ///< rounded to a shorter float, each line of elements scaled by a power of two
    kSparse,  ///< bit by bit, without most of the zeros; -0 arrives as 0
  };

  Form form = Form::kPlain;
  DType dtype = DType::kFloat16;  ///< of kNarrow: float16 or bfloat16
  double threshold = 0.5;         ///< of kSparse: the part of zeros from which they are left out
  bool is_by_cost = false;        ///< the threshold is what is predicted to gain, see `over`

  /// DTypeError, of this caller, unless `dtype` is float16 or bfloat16.
  static Wire narrow(DType dtype, const char* who);
  /// ExecutionError, of this caller, unless 0 <= threshold <= 1.
  static Wire sparse(double threshold, const char* who);
  /// Zeros are left out where that is predicted to be faster.
  static Wire sparse_by_cost();

  /// As it serves an exchange of elements of `dtype` in which the busiest rank sends or receives
  /// that much. By cost: with the part of zeros from which a piece takes at most 97 % of
  /// the time without them, the taking out and putting in again included, or plain where that would
  /// be more than all of them or where to look for zeros costs more than 2 %. Any other stays.
  Wire over(const Machine& machine, DType given, const LinkLoad& load) const;
  /// What `over` says of a wire by cost as a whole number, for plans, and back.
  int64_t per_mille() const;
  static Wire of_per_mille(int64_t number);

  /// DTypeError, of this caller, where elements of `dtype` cannot be rounded to the wire's.
  void check_carries(DType given, const char* who) const;
  /// Of elements of `dtype`, as plans reckon with it: those of a sparse tensor are not known to be
  /// few.
  DType planned_dtype(DType dtype) const;
  /// ", wire float16"; "" of kPlain.
  std::string text() const;
};

}  // namespace cuop::dist
