#include "operator_arguments.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "exchange.h"

namespace cuop::python {

Tensor operator_input(InputObject input, const Operator& op) {
  const nb::handle object = input.object;
  if (nb::isinstance<Tensor>(object)) return nb::cast<Tensor>(object);
  return named_call([&] { return Call::name_of(object); },
                    [&] {
                      // Lists take the operator's dtype at once: a double must not pass through
                      // float32.
                      const Tensor tensor = import_values(object, op.dtype());
                      if (is_complex(tensor.dtype())) {
                        throw DTypeError(cat("input: it has dtype ", tensor.dtype(),
                                             ", this class takes ", op.dtype()));
                      }
                      return cast(tensor, op.dtype());
                    });
}

Tensor operator_output(OutputObject output, const char* argument) {
  const nb::handle object = output.object;
  if (nb::isinstance<Tensor>(object)) return nb::cast<Tensor>(object);
  throw DTypeError(cat(argument, " is written to and must be a cuop tensor, given ",
                       class_name(object),
                       "; make one with cuop.empty, or share an array's memory with cuop.asarray"));
}

std::string operator_path(PathObject path, const char* argument) {
  const nb::object text = nb::steal(PyOS_FSPath(path.object.ptr()));
  if (text.is_valid() && nb::isinstance<nb::str>(text)) return text_of(text);
  const Raised why = text.is_valid() ? nullptr : wrong_kind();
  refuse<DTypeError>(
      cat(argument, " must be a str or an os.PathLike of one, given ", class_name(path.object)),
      why);
}

}  // namespace cuop::python
