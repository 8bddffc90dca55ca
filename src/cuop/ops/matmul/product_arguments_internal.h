// Internal: what the kernels of a product are told about its matrices and its batch.
#pragma once

#include <complex>
#include <span>

#include "cuop/core/divide_up.h"
#include "cuop/ops/matmul/matmul_kernels.h"
#include "cuop/ops/places.h"

namespace cuop::kernels {

/// The axes of a stack of matrices before the last two.
inline Dims batch_part(const Dims& dims) {
  return Dims(std::span<const int64_t>(dims.begin(), static_cast<size_t>(dims.ndim() - 2)));
}

/// The loop over a product's batch, in c, a and b.
inline LoopNest<3> batch_nest(const Product& product) {
  const Strides a = batch_part(product.a.strides()), b = batch_part(product.b.strides()),
                c = batch_part(product.c.strides());
  return make_loop_nest<3>(batch_part(product.c.shape()), {&c, &a, &b});
}

/// Matrices, steps and batch of a product in tiles.
inline void describe_matrices(jit::ProductMatrices& p, const Product& product) {
  const Tensor &a = product.a, &b = product.b, &c = product.c;
  const int r = c.ndim() - 2;
  p.a = a.data();
  p.b = b.data();
  p.c = c.data();
  p.rows = c.shape(r);
  p.columns = c.shape(r + 1);
  p.depth = a.shape(r + 1);
  p.a_row = a.strides()[r];
  p.a_column = a.strides()[r + 1];
  p.b_row = b.strides()[r];
  p.b_column = b.strides()[r + 1];
  p.c_row = c.strides()[r];
  p.c_column = c.strides()[r + 1];
  p.batch = places_of(batch_nest(product));
}

/// A coefficient as kernels take it: a number, or the bits of an integer.
inline jit::Coefficient coefficient_of(const Scalar& value, DType dtype) {
  const std::complex<double> wide = value.to_complex();
  if (is_bool(dtype)) return {0, 0, wide != 0.0 ? uint64_t{1} : uint64_t{0}};
  return {wide.real(), wide.imag(), is_integer(dtype) ? value.to_bits64() : 0};
}

/// Counts the tiles of this edge in all matrices that are described.
inline void count_tiles(jit::ProductMatrices& p, int64_t edge) {
  p.row_tiles = divide_up(p.rows, edge);
  p.column_tiles = divide_up(p.columns, edge);
  p.tiles = p.row_tiles * p.column_tiles;
  for (int axis = 0; axis < p.batch.axes; ++axis) p.tiles *= p.batch.sizes[axis];
}

}  // namespace cuop::kernels
