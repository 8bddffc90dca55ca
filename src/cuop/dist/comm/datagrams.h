// Datagrams between hosts, by UDP. Nothing here waits, nothing that arrives has been proven, and
// what is sent may not arrive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/core/descriptor.h"

namespace cuop::dist {

/// Where datagrams are received. Sent as it is.
struct DatagramPlace {
  std::array<char, 48> address = {};  ///< a number, as "10.0.0.5"; empty for no place
  int64_t port = 0;
};

class Datagrams {
 public:
  static constexpr size_t kPlaces = 2;
  using Places = std::array<DatagramPlace, kPlaces>;

  /// Receives at these addresses of this host alone, the first few of them; at none when the system
  /// gives no socket there.
  explicit Datagrams(std::span<const std::string> addresses);

  const Places& places() const { return places_; }
  /// Can be read from when something has arrived.
  std::vector<int> descriptors() const;
  void send(const Places& to, std::string_view bytes) noexcept;
  /// The next one, cut behind `most` bytes; nothing when none is there.
  std::optional<std::string> receive(size_t most);

 private:
  Places places_;
  std::array<Descriptor, kPlaces> sockets_;
};

/// Addresses of this host under which others may reach it: those of its interfaces that are up; the
/// loopback's where there is no other.
std::vector<std::string> own_addresses();

}  // namespace cuop::dist
