#include "cuop/operators/sizes.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

void check_sizes(const std::string& who, std::initializer_list<SizeOption> options) {
  for (const SizeOption& option : options) {
    if (option.value >= option.least && option.value <= kMostOfAnImage) continue;
    throw ShapeError(cat(who, ": ", option.name, " is ", option.value, ", needed is ", option.least,
                         " to ", kMostOfAnImage));
  }
}

}  // namespace cuop
