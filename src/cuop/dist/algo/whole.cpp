#include "cuop/dist/algo/whole.h"

#include "cuop/core/byte_size.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/dist/strict.h"

namespace cuop::dist {

Tensor whole(const DistTensor& x, const char* who) {
  if (!x.is_defined()) throw ExecutionError(cat(who, ": a distributed tensor is undefined"));
  if (x.sharding().is_replicated()) return x.local();
  if (is_strict() && x.size() > 1) {
    prepare_together(x.comm(), cat(who, " of ", x.to_string(), ", strict"), [&] {
      throw GatherError(
          cat(who, ": strict() forbids to gather silently: ", x.to_string(), " (",
              format_bytes(x.size() * itemsize(x.dtype())),
              ") would become whole on every rank; say it with gather_all or gather"));
    });
  }
  return gather_all(x);
}

}  // namespace cuop::dist
