// Where in the program memory is asked for, for messages and leak lists. Off until somebody who can
// tell (the Python layer knows its lines) installs a provider.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace cuop::memory {

/// Returns a description of the place that is allocating, as "model.py:17 in forward"; "" unknown.
using SiteProvider = std::function<std::string()>;

/// Installs the provider; an empty one turns sites off.
void set_site_provider(SiteProvider provider);
/// Number of the place that is allocating now; 0 when it is unknown or sites are off.
uint32_t current_site();
/// Its description; "" for 0.
std::string site_name(uint32_t site);

}  // namespace cuop::memory
