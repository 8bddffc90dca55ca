// An open file of the system's, and whole reads and writes of it.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace cuop {

/// A file descriptor that is closed with its scope; -1 stands for none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { close(); }

  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  /// False when the system has an error to tell at last; errno is set then.
  bool close();

 private:
  int number_ = -1;
};

/// Writes all of the bytes; false, with errno set, when that fails.
bool write_all(int file, std::string_view bytes);

/// Fills all of `bytes`; false when the file ends before or cannot be read.
bool read_all(int file, std::string& bytes);

}  // namespace cuop
