// Values as bytes and back: keys, and what ranks tell each other.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "cuop/core/dims.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::dist {

/// Numbers that are packed as they lie in memory.
template <class T>
concept PackedNumber = std::is_arithmetic_v<T> && sizeof(T) == 8;

/// Writes values one behind the other. What varies in length tells it first, so that different
/// values give different bytes.
class Packer {
 public:
  template <PackedNumber T>
  void put(T number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void put(int number) { put(int64_t{number}); }
  void put(std::string_view text) {
    put(static_cast<int64_t>(text.size()));
    bytes_ += text;
  }
  void put(const Dims& dims) {
    put(dims.ndim());
    bytes_.append(reinterpret_cast<const char*>(dims.begin()),
                  static_cast<size_t>(dims.ndim()) * sizeof(int64_t));
  }
  /// As they are, without their length.
  void append(std::string_view bytes) { bytes_ += bytes; }

  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what a Packer of another rank has written. CommunicationError "who: ..." where that cannot
/// be. For `bytes` that outlive it.
class Unpacker {
 public:
  Unpacker(const char* who, std::string_view bytes) : who_(who), bytes_(bytes) {}

  template <PackedNumber T = int64_t>
  T number() {
    T value{};
    if (bytes_.size() < sizeof value) fail("a message ended too early");
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  /// A whole number from 0 to `most`.
  int64_t number_to(int64_t most) {
    const int64_t value = number();
    if (value < 0 || value > most) {
      fail(cat("a message says ", value, " where 0 to ", most, " are possible"));
    }
    return value;
  }
  Dims dims() {
    Dims result;
    for (int64_t left = number_to(kMaxDims); left > 0; --left) result.push_back(number());
    return result;
  }
  /// What `put` wrote of a text, of `most` bytes at most. Good as long as the bytes are.
  std::string_view text(int64_t most) {
    const auto length = static_cast<size_t>(number_to(most));
    if (bytes_.size() < length) fail("a message ended too early");
    const std::string_view result = bytes_.substr(0, length);
    bytes_.remove_prefix(length);
    return result;
  }
  std::string_view rest() const { return bytes_; }

  [[noreturn]] void fail(const std::string& what) const {
    throw CommunicationError(cat(who_, ": ", what));
  }

 private:
  const char* who_;
  std::string_view bytes_;
};

}  // namespace cuop::dist
