// Typed errors of cuOP. Every message reads "who: what was wrong, what was given, what is allowed".
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

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

/// A kernel that cannot be compiled, or a JIT configuration that cannot be met.
struct CompilationError : Error {
  using Error::Error;
};

/// Shapes, axes or sizes that do not fit together.
struct ShapeError : Error {
  using Error::Error;
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

/// A failure of communication between ranks; `rank` is the rank that failed, -1 when unknown.
class CommunicationError : public Error {
 public:
  explicit CommunicationError(const std::string& message, int rank = -1)
      : Error(message), rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

}  // namespace cuop
