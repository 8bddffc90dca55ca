// What two ends of a new connection say before they believe each other. Who was connected to speaks
// first; everything has one fixed size.
//
//   listener -> visitor   Challenge  a random number
//   visitor  -> listener  Greeting   who it is and where it listens, a random number of its own,
//   and
//                                    a proof over all of it
//   listener -> visitor   Welcome    a proof over all of that
//   visitor  -> listener  Arrival    that it goes on with this connection: it may have tried
//   several
//
// A proof is an HMAC whose key comes from the job's secret and identity, over its direction, both
// random numbers, the listener's port and both ranks: so it holds for this connection alone, cannot
// be sent back to where it came from, and is of no use to somebody who listens at another port and
// passes it on. Nothing of a greeting is looked at before its proof holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cuop::dist {

/// What the ranks of a job have in common: a key that is of no use in any other job.
struct Job {
  std::string key;
  int size = 1;
};
Job make_job(const std::string& secret, const std::string& identity, int size);

/// Who a rank is and where it can be connected to.
struct Introduction {
  int rank = 0;
  int port = 0;  ///< 0 when nobody needs to
  std::string host = {};
};

/// A connection from a visitor to the rank `wanted` that listens at `port`.
struct Door {
  int wanted = 0;
  int port = 0;
};

inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kMagicBytes = 8;
inline constexpr size_t kHostBytes = 64;
inline constexpr size_t kChallengeBytes = kMagicBytes + kNonceBytes;
inline constexpr size_t kGreetingBytes = 3 * sizeof(int32_t) + kHostBytes + kNonceBytes + 32;
inline constexpr size_t kWelcomeBytes = 32;
inline constexpr std::string_view kArrival = "+";

std::string make_challenge();
/// Whether these can be the words of a rank, of whatever job.
bool is_challenge(std::string_view bytes);

std::string make_greeting(const Job& job, std::string_view challenge, const Door& door,
                          const Introduction& self);
/// Who greets; nothing when it does not prove to be of the job, or wants somebody else.
std::optional<Introduction> check_greeting(const Job& job, std::string_view challenge,
                                           const Door& door, std::string_view greeting);

std::string make_welcome(const Job& job, std::string_view challenge, const Door& door,
                         std::string_view greeting);
bool check_welcome(const Job& job, std::string_view challenge, const Door& door,
                   std::string_view greeting, std::string_view welcome);

}  // namespace cuop::dist
