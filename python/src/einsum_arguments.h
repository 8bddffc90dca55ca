// What the bindings of einsum, local and over ranks, share: how Python says in which order pairs
// are multiplied.
#pragma once

#include "bindings.h"
#include "cuop/ops/einsum/path.h"
#include "cuop/ops/einsum/tensordot.h"

namespace cuop::python {

/// `optimize`: True or the name of a search, False (in order), a path, which may begin with
/// "einsum_path", or NumPy's pair (name, most elements of an intermediate result), of which
/// "max_input" is `largest_input` and refused where that is not known. `memory_limit`: None, bytes,
/// or a size as "64 MiB".
PathOptions path_options(nb::handle optimize, nb::handle memory_limit,
                         std::optional<int64_t> largest_input);
/// Bytes of such a limit; `who` is the call.
std::optional<int64_t> limit_bytes(nb::handle memory_limit, const char* who);

/// tensordot's axes: a count of trailing and leading axes, or a pair of lists of axes.
struct TensordotAxes {
  int64_t count = 0;
  PairedAxes lists = {};
  bool are_listed = false;
};
TensordotAxes tensordot_axes(nb::handle axes, const char* argument);

}  // namespace cuop::python
