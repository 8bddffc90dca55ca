// Typed errors of cuOP. Every message reads "who: what was wrong, what was given, what is allowed".
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace cuop {

/// Base of every error that cuOP raises on purpose.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An allocation that cannot be served; carries the figures of the moment, in bytes.
class MemoryError : public Error {
 public:
  struct Figures {
    int64_t requested = 0;
    int64_t live = 0;
    int64_t reserved = 0;
    int64_t largest_hole = 0;
  };
  explicit MemoryError(const std::string& message) : Error(message) {}
  MemoryError(const std::string& message, Figures figures) : Error(message), figures_(figures) {}
  const Figures& figures() const { return figures_; }

 private:
  Figures figures_;
};

/// An operator that cannot run as asked: weight not set, option out of range, unsupported
/// combination.
struct ExecutionError : Error {
  using Error::Error;
};

/// No kernel exists for the device and dtype that were given.
struct NotImplementedError : ExecutionError {
  using ExecutionError::ExecutionError;
};

/// A call that would bring a tensor's parts together where dist::StrictScope forbids it.
struct GatherError : ExecutionError {
  using ExecutionError::ExecutionError;
};

/// A kernel that cannot be compiled, or a JIT configuration that cannot be met.
struct CompilationError : Error {
  using Error::Error;
};

/// Shapes, axes or sizes that do not fit together.
struct ShapeError : Error {
  using Error::Error;
};

/// One of a shape's sizes that begins with "shape:", as what counts them does not know whose shape
/// it is; who does puts a name before it.
struct UnnamedShapeError : ShapeError {
  using ShapeError::ShapeError;
};

/// A dtype that the operator does not support.
struct DTypeError : Error {
  using Error::Error;
};

/// A number that the dtype it is meant for cannot hold.
struct OverflowError : DTypeError {
  using DTypeError::DTypeError;
};

/// A device that is absent, or tensors on different devices.
struct DeviceError : Error {
  using Error::Error;
};

/// An index outside its axis.
struct IndexError : Error {
  using Error::Error;
};

/// A failure of communication between ranks.
class CommunicationError : public Error {
 public:
  /// The call in which it was raised.
  struct Call {
    std::string operation = {};  ///< "all_reduce"; "" where it was no call of a communicator
    /// The number of the collective call on its communicator, the same on all ranks, counted from 1
    /// since the communicator was made or has recovered; of a message the one of the collective
    /// call before it; -1 when unknown.
    int64_t number = -1;
  };
  explicit CommunicationError(const std::string& message, int rank = -1)
      : Error(message), rank_(rank) {}
  CommunicationError(const std::string& message, int rank, Call call)
      : Error(message), rank_(rank), call_(std::move(call)) {}
  /// The rank that failed, -1 when unknown.
  int rank() const { return rank_; }
  const Call& call() const { return call_; }

 private:
  int rank_;
  Call call_;
};

}  // namespace cuop
