// Internal: large copies between ordinary host memory and a GPU. The driver would take such memory
// through its own staging buffer with one thread; here threads take stretches in turn, and fill or
// empty one page-locked slot each while the GPU copies from or to another one of theirs.
//
//   upload, a thread    fill 0 | fill 1 | fill 0 | ...    download    copy 0  | copy 1  | copy 0 |
//   ...
//                                copy 0 | copy 1 | ...                          empty 0 | empty 1 |
//                                ...
#pragma once

#include <functional>

#include "cuop/core/box.h"
#include "cuop/core/tensor.h"

namespace cuop {

/// Whether a copy between the host's tensor (of any layout) and a GPU goes by `staged_copy`, or by
/// `copy_locked_rows` where its memory is page-locked.
bool is_staged(const Tensor& on_host, Device gpu);

/// dst <- src; one of them is on the host, the other on a GPU; of one dtype and shape and any
/// layout: what lies in another order on the host than on the GPU is turned there, on its way from
/// or to the slots. Done when the call returns. False, and nothing is done, where no memory can be
/// locked.
bool staged_copy(const Tensor& dst, const Tensor& src);

/// Writes the elements of a box of an array to `to`, a row-major tensor of the host of the box's
/// shape.
using FillStage = std::function<void(const Box& box, const Tensor& to)>;
/// dst <- an array of its shape that `fill` writes box by box, several threads at a time; dst is on
/// a GPU. Done when the call returns. False, and nothing is done, where dst is so short that one
/// thread does it as fast, in a graph, and where no memory can be locked.
bool staged_fill(const Tensor& dst, const FillStage& fill);
/// Takes the elements of a box of an array from `from`, a row-major tensor of the host.
using EmptyStage = std::function<void(const Box& box, const Tensor& from)>;
/// The other way: `empty` takes src, which is on a GPU.
bool staged_empty(const Tensor& src, const EmptyStage& empty);

}  // namespace cuop
