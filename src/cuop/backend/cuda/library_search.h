// Where the CUDA libraries may lie: what the system's loader knows, a toolkit's folder, and the
// Python packages that bring them.
#pragma once

#include <string>
#include <vector>

namespace cuop::backend {

/// What to try to open, in this order: each name in the folders of CUOP_LIBRARY_PATH, the bare
/// names (which find a library that is already in the process), then each name in the toolkit's
/// folder and in those of NVIDIA's Python packages.
std::vector<std::string> cuda_library_candidates(const std::vector<std::string>& sonames);

/// Folders of Python packages (site-packages) to look into, beside the one that cuOP lies in.
void set_package_folders(std::vector<std::string> folders);

}  // namespace cuop::backend
