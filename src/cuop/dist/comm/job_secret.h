// What the ranks of a job have in common and nobody else has.
#pragma once

#include <string>

namespace cuop::dist {

/// CUOP_JOB_SECRET, else that of the user's file in the directory of what is kept between
/// processes. CommunicationError that says how to mend it when there is none to be trusted.
std::string job_secret();

/// `secret` when it is long enough to be one, else CommunicationError naming `source`.
std::string checked_secret(const std::string& source, const std::string& secret);

/// The secret in the file `job_secret` of the directory, made by whoever is first: one of many that
/// ask at once, and all get the same. CommunicationError when the file is not this user's alone
/// (owner, mode 0600, no link), is damaged, or the directory can be written by others.
std::string secret_in(const std::string& directory);

}  // namespace cuop::dist
