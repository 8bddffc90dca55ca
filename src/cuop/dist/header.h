// Shapes and dtypes as the few bytes that ranks tell each other before data moves.
#pragma once

#include <string>
#include <vector>

#include "cuop/core/tensor.h"
#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

struct Header {
  Shape shape;
  DType dtype = DType::kFloat32;

  bool operator==(const Header&) const = default;
};

Header header_of(const Tensor& tensor);
/// As "float32 (2, 3)".
std::ostream& operator<<(std::ostream& out, const Header& header);

/// Collective: root's headers and note on every rank. What others give is ignored.
struct Headers {
  std::vector<Header> tensors;
  std::string note;
};
Headers broadcast_headers(Communicator& comm, const Headers& headers, int root);
/// Collective: each rank's header, in rank order, on every rank.
std::vector<Header> gather_headers(Communicator& comm, const Header& header);

}  // namespace cuop::dist
