// The choices of the BLAS interface as Python arguments.
#pragma once

#include "bindings.h"

namespace cuop::python {

/// A choice of uplo for a class whose documentation gives its integers a meaning: `meaning[0]` is
/// what 0 stands for, `meaning[1]` what 1 does. Names and enum members mean the same everywhere.
/// Messages begin with the name of `type`.
Uplo uplo_argument(nb::handle object, const Uplo (&meaning)[2], nb::handle type);

}  // namespace cuop::python
