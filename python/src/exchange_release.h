// Memory of other libraries, given back to them when no work of ours uses it any more. They may
// hand it to work of a stream that we know nothing of, so it stays ours until the streams that used
// it are past that point: nobody waits for them, later calls look.
#pragma once

#include <memory>

#include "cuop/core/stream.h"
#include "cuop/core/tensor.h"

namespace cuop::python {

/// A tensor over another library's memory, which `owner` gives back. Of a GPU's, the streams are
/// past which it is kept: the current one, that of the release, and those that `note_use` tells.
Tensor borrow(void* data, const Layout& layout, DType dtype, Device device,
              std::shared_ptr<void> owner, bool is_read_only);

/// Work of the stream uses the tensor. Nothing for memory that is not borrowed.
void note_use(const Tensor& tensor, Stream stream);

/// Gives back what is done; cheap when nothing waits.
void release_borrowed() noexcept;

}  // namespace cuop::python
