// What this machine and this process have to offer.
#pragma once

#include <iostream>
#include <string>
#include <vector>

namespace cuop {

/// Something that cuOP uses where it is there.
struct SystemPart {
  std::string name;  ///< "CPU", "BLAS", "MPI", "GPU", ...
  bool is_found = false;
  std::string detail;  ///< what was found, else why there is none
};

/// The machine, the libraries and the devices. Looks for those that nothing has used yet.
std::vector<SystemPart> system_info();
/// The version of cuOP and one line a part.
void print_system_info(std::ostream& out = std::cout);
/// The version of the library, "0.1.0".
const char* version();

}  // namespace cuop
