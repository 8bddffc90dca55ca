#include "binders.h"
#include "cuop/core/text.h"
#include "cuop/ops/sparse/sparse.h"
#include "operator_methods.h"

namespace cuop::python {

namespace {

/// For copy and pickle: what makes it of its parts.
nb::tuple parts_of_sparse(const SparseMatrix& x) {
  const char* const make = x.layout() == SparseLayout::kCsr ? "sparse_csr" : "sparse_coo";
  return nb::make_tuple(nb::module_::import_("cuop").attr(make),
                        nb::make_tuple(x.rows(), x.columns(), x.values(), to_tuple(x.shape())));
}

/// A matrix of scipy.sparse in the same layout, with copies of the tensors.
nb::object to_scipy(const SparseMatrix& x) {
  const SparseMatrix here = to_device(x, kCpu);
  const auto array = [](const Tensor& tensor) { return nb::cast(tensor).attr("to_numpy")(); };
  const nb::module_ sparse = nb::module_::import_("scipy.sparse");
  const nb::object shape = nb::cast(to_tuple(x.shape()));
  const nb::object rows = array(here.rows()), columns = array(here.columns());
  const nb::object values = array(here.values());
  if (x.layout() == SparseLayout::kCsr) {
    return sparse.attr("csr_array")(nb::make_tuple(values, columns, rows), "shape"_a = shape,
                                    "copy"_a = true);
  }
  return sparse.attr("coo_array")(nb::make_tuple(values, nb::make_tuple(rows, columns)),
                                  "shape"_a = shape, "copy"_a = true);
}

void bind_matrix(Module& m) {
  Class<SparseMatrix>(m, "SparseMatrix",
                      "A matrix of which only the elements that are not zero are kept, by rows "
                      "('csr') or one by one ('coo'), in row-major order.")
      .def_prop_ro(
          "layout", [](const SparseMatrix& x) { return std::string(name(x.layout())); },
          "'csr' or 'coo'.")
      .def_prop_ro(
          "shape", [](const SparseMatrix& x) { return to_tuple(x.shape()); }, "(rows, columns)")
      .def_prop_ro("nnz", &SparseMatrix::nonzeros, "How many elements are kept.")
      .def_prop_ro(
          "dtype", [](const SparseMatrix& x) { return PyDType{x.dtype()}; }, "Of the values.")
      .def_prop_ro(
          "device", [](const SparseMatrix& x) { return PyDevice{x.device()}; },
          "Where the tensors are.")
      .def_prop_ro(
          "indptr", [](const SparseMatrix& x) { return in_layout(x, SparseLayout::kCsr).rows(); },
          "Where each row begins among the values, and behind them their number.")
      .def_prop_ro(
          "rows", [](const SparseMatrix& x) { return in_layout(x, SparseLayout::kCoo).rows(); },
          "The row of each value.")
      .def_prop_ro("indices", &SparseMatrix::columns, "The column of each value.")
      .def_prop_ro("values", &SparseMatrix::values, "The elements that are kept.")
      .def(
          "to_dense", [](const SparseMatrix& x) { return to_dense(x); }, Released(),
          "All of the matrix as a tensor.")
      .def(
          "to_layout",
          [](const SparseMatrix& x, std::string_view layout) {
            return in_layout(x, parse_sparse_layout(layout, "to_layout"));
          },
          "layout"_a, Released(), "The same matrix as 'csr' or 'coo'; shares what it can.")
      .def(
          "to", [](const SparseMatrix& x, Arg<Device> device) { return to_device(x, device); },
          "device"_a, Released(), "The same matrix on a device.")
      .def("to_scipy", &to_scipy, nb::sig("def to_scipy(self) -> Any"),
           "A csr_array or coo_array of scipy.sparse; ImportError where SciPy is not installed.")
      .def(
          "__matmul__",
          [](const SparseMatrix& a, nb::handle other) {
            if (!is_operand(other)) return nb::object(nb::borrow(Py_NotImplemented));
            const auto b = named_argument<Tensor>(other, "other");
            return nb::cast(without_gil([&] { return matmul(a, b); }));
          },
          "other"_a.none(), nb::sig("def __matmul__(self, other: ArrayLike, /) -> Tensor"),
          "self @ other for a tensor (K, N) or (K,); see sparse_matmul.")
      .def("__repr__",
           [](const SparseMatrix& x) {
             return cat("SparseMatrix(shape=", x.shape(), ", nnz=", x.nonzeros(), ", layout='",
                        name(x.layout()), "', dtype=", x.dtype(), ", device=", x.device(), ')');
           })
      .def("__reduce__", &parts_of_sparse, nb::sig("def __reduce__(self) -> tuple[Any, ...]"));
}

void define_from_parts(Module& m, const char* name, SparseLayout layout,
                       std::pair<const char*, const char*> indices, const char* doc) {
  m.def(
      name,
      [layout](Arg<Tensor> rows, Arg<Tensor> columns, Arg<Tensor> values, Arg<Shape> shape) {
        return SparseMatrix(layout, shape, rows, columns, values);
      },
      nb::arg(indices.first), nb::arg(indices.second), "values"_a, "shape"_a, Released(), doc);
}

}  // namespace

void bind_sparse(Module& m) {
  bind_matrix(m);
  m.def(
      "to_sparse",
      [](Arg<Tensor> x, std::string_view layout) {
        return to_sparse(x, parse_sparse_layout(layout, "to_sparse"));
      },
      "x"_a, "layout"_a = "csr", Released(),
      "The elements of a float32 or float64 matrix that are not zero. Raises DTypeError, "
      "ShapeError, and ExecutionError for a layout other than 'csr' and 'coo'.");
  define_from_parts(
      m, "sparse_csr", SparseLayout::kCsr, {"indptr", "indices"},
      "A sparse matrix by rows: values[indptr[i]:indptr[i + 1]] are those of row i, in the columns "
      "that `indices` has at the same places, which rise. Indices are int32 or int64 alike, values "
      "float32 or float64. Raises IndexError for indices that describe no matrix of this shape, "
      "DTypeError, ShapeError, DeviceError.");
  define_from_parts(
      m, "sparse_coo", SparseLayout::kCoo, {"rows", "columns"},
      "A sparse matrix of single elements, in row-major order and none twice. Errors as those of "
      "sparse_csr.");
  m.def(
      "sparse_matmul",
      [](const SparseMatrix& a, Arg<Tensor> b, std::optional<Tensor> out) {
        return matmul(a, b, pointer(out));
      },
      "a"_a, "b"_a, "out"_a = nb::none(), ReturnsOut(), Released(),
      "A sparse matrix (M, K) times a tensor (K, N) or (K,), in their promoted dtype, float32 or "
      "float64: the same bits on any number of threads; on a GPU by cuSPARSE. Raises ShapeError, "
      "DTypeError, DeviceError.");
}

}  // namespace cuop::python
