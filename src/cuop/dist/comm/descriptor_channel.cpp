#include "cuop/dist/comm/descriptor_channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::dist {

namespace {

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;
};

/// A name beside all folders, which goes with its socket.
Address address_of(const ChannelToken& name) {
  Address result;
  result.name.sun_family = AF_UNIX;
  char text[64];
  const int length = std::snprintf(text, sizeof text, "cuop-%016llx%016llx",
                                   static_cast<unsigned long long>(name[0]),
                                   static_cast<unsigned long long>(name[1]));
  std::memcpy(result.name.sun_path + 1, text, static_cast<size_t>(length));
  result.length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1) + static_cast<socklen_t>(length);
  return result;
}

/// Messages of others that are dropped before the caller is let go on.
constexpr int kMostStrangers = 64;

constexpr size_t kFileRoom = CMSG_SPACE(sizeof(int) * DescriptorChannel::kMostFiles);
constexpr size_t kSenderRoom = CMSG_SPACE(sizeof(ucred));

/// What came beside the bytes.
struct Attached {
  std::vector<Descriptor> files;
  bool is_own_user = false;
};

Attached take_attached(msghdr& header) {
  Attached result;
  for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
    if (each->cmsg_level != SOL_SOCKET) continue;
    const size_t bytes = each->cmsg_len - CMSG_LEN(0);
    if (each->cmsg_type == SCM_RIGHTS) {
      for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
        int file = -1;
        std::memcpy(&file, CMSG_DATA(each) + at, sizeof file);
        result.files.emplace_back(file);
      }
    } else if (each->cmsg_type == SCM_CREDENTIALS && bytes >= sizeof(ucred)) {
      ucred sender{};
      std::memcpy(&sender, CMSG_DATA(each), sizeof sender);
      result.is_own_user = sender.uid == geteuid();
    }
  }
  return result;
}

}  // namespace

ChannelToken new_channel_token() {
  std::random_device random;
  const auto number = [&] { return (uint64_t{random()} << 32) | random(); };
  return {number(), number()};
}

DescriptorChannel::DescriptorChannel(int senders)
    : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      name_(new_channel_token()) {
  const Address address = address_of(name_);
  const int on = 1;
  const auto* const name = reinterpret_cast<const sockaddr*>(&address.name);
  if (!socket_.is_open() || bind(socket_.get(), name, address.length) != 0 ||
      setsockopt(socket_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
    throw CommunicationError(cat("no socket for open files: ", errno_text()));
  }
  for (int sender = 0; sender < senders; ++sender) tokens_.push_back(new_channel_token());
}

ChannelPlace DescriptorChannel::place_for(int sender) const {
  return {name_, tokens_[static_cast<size_t>(sender)]};
}

bool DescriptorChannel::send(const ChannelPlace& to, std::span<const std::byte> bytes,
                             std::span<const Descriptor> files) {
  Address address = address_of(to.name);
  ChannelToken token = to.token;
  iovec parts[] = {{token.data(), sizeof token},
                   {const_cast<std::byte*>(bytes.data()), bytes.size()}};
  alignas(cmsghdr) char control[kFileRoom] = {};
  msghdr header{};
  header.msg_name = &address.name;
  header.msg_namelen = address.length;
  header.msg_iov = parts;
  header.msg_iovlen = 2;
  if (!files.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(sizeof(int) * files.size());
    cmsghdr* const first = CMSG_FIRSTHDR(&header);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(sizeof(int) * files.size());
    for (size_t i = 0; i < files.size(); ++i) {
      const int file = files[i].get();
      std::memcpy(CMSG_DATA(first) + i * sizeof file, &file, sizeof file);
    }
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return true;
  // The receiver's queue is full, or too many files of this user are under way.
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ETOOMANYREFS) {
    return false;
  }
  throw CommunicationError(cat("open files cannot be sent to it: ", errno_text()));
}

std::optional<DescriptorChannel::Message> DescriptorChannel::receive() {
  for (int dropped = 0; dropped < kMostStrangers;) {
    ChannelToken token{};
    Message message;
    message.bytes.resize(kMostBytes);
    iovec parts[] = {{token.data(), sizeof token}, {message.bytes.data(), kMostBytes}};
    alignas(cmsghdr) char control[kFileRoom + kSenderRoom] = {};
    msghdr header{};
    header.msg_iov = parts;
    header.msg_iovlen = 2;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (got < 0) throw CommunicationError(cat("open files cannot be received: ", errno_text()));
    Attached attached = take_attached(header);
    const auto sender = std::find(tokens_.begin(), tokens_.end(), token);
    const bool is_whole = (header.msg_flags & MSG_TRUNC) == 0;
    if (!attached.is_own_user || static_cast<size_t>(got) < sizeof token || !is_whole ||
        sender == tokens_.end()) {
      ++dropped_;
      ++dropped;
      continue;
    }
    if ((header.msg_flags & MSG_CTRUNC) != 0) {
      attached.files.clear();  // who hears of it may need some
      throw CommunicationError(
          "open files of another rank were lost: this process may not open so many (ulimit -n)");
    }
    message.sender = static_cast<int>(sender - tokens_.begin());
    message.bytes.resize(static_cast<size_t>(got) - sizeof token);
    message.files = std::move(attached.files);
    return message;
  }
  return std::nullopt;
}

}  // namespace cuop::dist
