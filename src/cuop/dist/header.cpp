#include "cuop/dist/header.h"

#include "cuop/dist/agree.h"
#include "cuop/dist/packed.h"

namespace cuop::dist {
namespace {

void put(Packer& bytes, const Header& header) {
  bytes.put(static_cast<int>(header.dtype));
  bytes.put(header.shape);
}

Header read_header(Unpacker& bytes) {
  const auto dtype = static_cast<DType>(bytes.number_to(kDTypeCount - 1));
  return {bytes.dims(), dtype};
}

}  // namespace

Header header_of(const Tensor& tensor) { return {tensor.shape(), tensor.dtype()}; }

std::ostream& operator<<(std::ostream& out, const Header& header) {
  return out << header.dtype << ' ' << header.shape;
}

Headers broadcast_headers(Communicator& comm, const Headers& headers, int root) {
  if (comm.size() == 1) return headers;
  Packer packed;
  if (comm.rank() == root) {
    packed.put(static_cast<int64_t>(headers.tensors.size()));
    for (const Header& header : headers.tensors) put(packed, header);
    packed.append(headers.note);
  }
  const std::string told = broadcast_text(comm, packed.bytes(), root);
  Unpacker bytes("header", told);
  Headers result;
  for (int64_t left = bytes.number(); left > 0; --left) {
    result.tensors.push_back(read_header(bytes));
  }
  result.note = bytes.rest();
  return result;
}

std::vector<Header> gather_headers(Communicator& comm, const Header& header) {
  Packer packed;
  put(packed, header);
  std::vector<Header> result;
  for (const std::string& text : gather_texts(comm, packed.bytes())) {
    Unpacker bytes("header", text);
    result.push_back(read_header(bytes));
  }
  return result;
}

}  // namespace cuop::dist
