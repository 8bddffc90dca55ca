#include "cuop/dist/comm/datagrams.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "cuop/core/text.h"

namespace cuop::dist {

namespace {

/// A socket's address in either family.
struct Name {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

/// Of no bytes for what is no address.
Name name_of(const std::string& address, int64_t port) {
  Name name;
  const auto number = htons(static_cast<uint16_t>(port));
  auto* const four = reinterpret_cast<sockaddr_in*>(&name.storage);
  auto* const six = reinterpret_cast<sockaddr_in6*>(&name.storage);
  if (port < 0 || port > 65535) return name;
  if (inet_pton(AF_INET, address.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = number;
    name.bytes = sizeof(sockaddr_in);
  } else if (inet_pton(AF_INET6, address.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = number;
    name.bytes = sizeof(sockaddr_in6);
  }
  return name;
}

int64_t port_of(const Name& name) {
  const bool is_six = name.storage.ss_family == AF_INET6;
  return ntohs(is_six ? reinterpret_cast<const sockaddr_in6*>(&name.storage)->sin6_port
                      : reinterpret_cast<const sockaddr_in*>(&name.storage)->sin_port);
}

std::string address_of(const DatagramPlace& place) {
  return std::string(place.address.data(), strnlen(place.address.data(), place.address.size()));
}

/// The address as a number; "" for what others cannot reach by a number alone.
std::string text_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  } else if (address->sa_family == AF_INET6) {
    const in6_addr& six = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (!IN6_IS_ADDR_LINKLOCAL(&six)) inet_ntop(AF_INET6, &six, text, sizeof text);
  }
  return text;
}

}  // namespace

Datagrams::Datagrams(std::span<const std::string> addresses) {
  size_t used = 0;
  for (const std::string& address : addresses) {
    if (used == kPlaces) return;
    DatagramPlace& place = places_[used];
    Name name = name_of(address, 0);
    if (name.bytes == 0 || address.size() >= place.address.size()) continue;
    Descriptor socket(
        ::socket(name.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.is_open() || bind(socket.get(), name.get(), name.bytes) != 0) continue;
    if (getsockname(socket.get(), name.get(), &name.bytes) != 0) continue;
    address.copy(place.address.data(), address.size());
    place.port = port_of(name);
    sockets_[used++] = std::move(socket);
  }
}

std::vector<int> Datagrams::descriptors() const {
  std::vector<int> open;
  for (const Descriptor& socket : sockets_) {
    if (socket.is_open()) open.push_back(socket.get());
  }
  return open;
}

void Datagrams::send(const Places& to, std::string_view bytes) noexcept {
  for (const DatagramPlace& place : to) {
    const Name name = name_of(address_of(place), place.port);
    if (name.bytes == 0) continue;
    for (size_t i = 0; i < kPlaces; ++i) {
      if (!sockets_[i].is_open()) continue;
      if (name_of(address_of(places_[i]), 0).storage.ss_family != name.storage.ss_family) continue;
      if (sendto(sockets_[i].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL, name.get(),
                 name.bytes) >= 0) {
        break;
      }
    }
  }
}

std::optional<std::string> Datagrams::receive(size_t most) {
  for (const Descriptor& socket : sockets_) {
    if (!socket.is_open()) continue;
    std::string bytes(most, '\0');
    const ssize_t got = recv(socket.get(), bytes.data(), most, 0);
    if (got < 0) continue;
    bytes.resize(static_cast<size_t>(got));
    return bytes;
  }
  return std::nullopt;
}

std::vector<std::string> own_addresses() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  std::vector<std::string> outer, loopback;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    const std::string address = text_of(each->ifa_addr);
    const bool is_loopback = (each->ifa_flags & IFF_LOOPBACK) != 0;
    if (!address.empty()) (is_loopback ? loopback : outer).push_back(address);
  }
  freeifaddrs(all);
  const auto is_four = [](const std::string& each) { return each.find(':') == std::string::npos; };
  std::stable_partition(outer.begin(), outer.end(), is_four);
  std::stable_partition(loopback.begin(), loopback.end(), is_four);
  return outer.empty() ? loopback : outer;
}

}  // namespace cuop::dist
