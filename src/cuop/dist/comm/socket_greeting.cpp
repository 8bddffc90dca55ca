#include "cuop/dist/comm/socket_greeting.h"

#include <algorithm>
#include <cstring>

#include "cuop/core/sha256.h"
#include "cuop/core/text.h"

namespace cuop::dist {

namespace {

constexpr std::string_view kMagic = "cuOPrnk3";
static_assert(kMagic.size() == kMagicBytes && kProofBytes == kWelcomeBytes);

struct Greeting {
  int32_t rank;
  int32_t wanted;
  int32_t port;
  char host[kHostBytes];
  char nonce[kNonceBytes];
  char proof[kProofBytes];
};
static_assert(sizeof(Greeting) == kGreetingBytes);
constexpr size_t kProven = sizeof(Greeting) - kProofBytes;

std::string_view bytes_of(const Greeting& greeting) {
  return {reinterpret_cast<const char*>(&greeting), sizeof(greeting)};
}

/// All parts but the last have a fixed length, so that none can be taken for another.
std::string prove(const Job& job, const char* direction, std::string_view challenge,
                  const Door& door, std::string_view words) {
  return hmac_sha256(job.key,
                     cat(direction, "\n", door.wanted, "\n", door.port, "\n", challenge, words));
}

}  // namespace

Job make_job(const std::string& secret, const std::string& identity, int size) {
  return {hmac_sha256(secret, cat("cuOP job\n", identity)), size};
}

std::string make_challenge() { return cat(kMagic, random_bytes(kNonceBytes)); }

bool is_challenge(std::string_view bytes) {
  return bytes.size() == kChallengeBytes && bytes.starts_with(kMagic);
}

std::string make_greeting(const Job& job, std::string_view challenge, const Door& door,
                          const Introduction& self) {
  Greeting greeting{};
  greeting.rank = self.rank;
  greeting.wanted = door.wanted;
  greeting.port = self.port;
  std::memcpy(greeting.host, self.host.data(), std::min(self.host.size(), kHostBytes - 1));
  std::memcpy(greeting.nonce, random_bytes(kNonceBytes).data(), kNonceBytes);
  const std::string proof =
      prove(job, "greeting", challenge, door, bytes_of(greeting).substr(0, kProven));
  std::memcpy(greeting.proof, proof.data(), kProofBytes);
  return std::string(bytes_of(greeting));
}

std::optional<Introduction> check_greeting(const Job& job, std::string_view challenge,
                                           const Door& door, std::string_view bytes) {
  if (bytes.size() != kGreetingBytes) return std::nullopt;
  const std::string proof = prove(job, "greeting", challenge, door, bytes.substr(0, kProven));
  if (!equal_in_constant_time(proof, bytes.substr(kProven))) return std::nullopt;
  Greeting greeting{};
  std::memcpy(&greeting, bytes.data(), sizeof(greeting));
  if (greeting.rank < 0 || greeting.rank >= job.size || greeting.wanted != door.wanted ||
      greeting.port < 0 || greeting.port > 65535) {
    return std::nullopt;
  }
  return Introduction{greeting.rank, greeting.port,
                      std::string(greeting.host, strnlen(greeting.host, kHostBytes))};
}

std::string make_welcome(const Job& job, std::string_view challenge, const Door& door,
                         std::string_view greeting) {
  return prove(job, "welcome", challenge, door, greeting);
}

bool check_welcome(const Job& job, std::string_view challenge, const Door& door,
                   std::string_view greeting, std::string_view welcome) {
  return equal_in_constant_time(make_welcome(job, challenge, door, greeting), welcome);
}

}  // namespace cuop::dist
