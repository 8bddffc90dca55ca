// Index arrays and masks as tables of element offsets, and the copies that use them. Every operator
// that names elements by tensors is built from these.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cuop/core/tensor.h"

namespace cuop {

/// Offsets (in elements, relative to a view's first element) of the positions that an index array
/// names along one axis, or a mask along several.
struct Offsets {
  Tensor table;            ///< int64, contiguous, of the index array's shape
  bool is_unique = false;  ///< no offset occurs twice
};
/// IndexError when an index is outside the axis, DeviceError when view and indices lie on different
/// devices; `who` begins both. On a GPU it waits for the check that all are inside.
Offsets index_offsets(const char* who, const Tensor& view, int axis, const Tensor& indices);
/// All positions of the axis, in their order.
Offsets all_offsets(const Tensor& view, int axis);
/// The mask covers axes axis, axis+1, ...; IndexError when its shape is not theirs. On a GPU it
/// waits for the number of true elements, unless that is known.
Offsets mask_offsets(const Tensor& view, int axis, const Tensor& mask,
                     std::optional<int64_t> known_count = {});

/// How many elements of a mask are true.
int64_t count_true(const Tensor& mask);

/// What is taken from a view: the axes that the tables replace are gone from `rest`, and the picked
/// axes stand before axis `at` of it.
struct Picks {
  Tensor table;  ///< the sum of all offsets, contiguous, of the picked shape
  bool is_unique = false;
  Layout rest;
  int at = 0;
  Shape result_shape;
};
/// Broadcasts the parts against each other and adds them. `axes` are all axes of the view that they
/// replace; the picked axes go where the first of them was counted as `first_axis`, to the front
/// for -1. IndexError when the parts do not broadcast.
Picks combine_offsets(const Tensor& view, std::span<const Offsets> parts, std::span<const int> axes,
                      int first_axis);

/// The picked elements as a new tensor, or in `out` (checked by the caller).
Tensor gather_picks(const Tensor& view, const Picks& picks, const Tensor* out);
/// Assigns `value`, broadcast to the picked shape and converted to the view's dtype; `who` begins
/// the error where it does not fit.
void scatter_picks(const Tensor& view, const Picks& picks, const Tensor& value,
                   const char* who = "index assignment: value");

/// `value` without leading axes of size 1 beyond `ndim`, which assignment ignores.
Tensor squeeze_leading(const Tensor& value, int ndim);

}  // namespace cuop
