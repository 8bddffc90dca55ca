#include "cuop/backend/cpu/half_convert.h"

#include "cuop/backend/cpu/isa.h"

namespace cuop::backend {

namespace {

const HalfConverter& converter() {
  return isa::choose(
      []<class Level>(Level) -> const HalfConverter& { return half_converter<Level>(); });
}

}  // namespace

void to_float(const Half* from, float* to, int64_t count) { converter().to_float(from, to, count); }
void to_float(const BFloat16* from, float* to, int64_t count) {
  converter().to_float(from, to, count);
}
void from_float(const float* from, Half* to, int64_t count) {
  converter().from_float(from, to, count);
}
void from_float(const float* from, BFloat16* to, int64_t count) {
  converter().from_float(from, to, count);
}

}  // namespace cuop::backend
