#include "cuop/dist/header.h"

#include <cstring>

#include "cuop/core/error.h"
#include "cuop/dist/agree.h"

namespace cuop::dist {
namespace {

void put(std::string& bytes, int64_t value) {
  char raw[sizeof(value)];
  std::memcpy(raw, &value, sizeof(value));
  bytes.append(raw, sizeof(value));
}

void put(std::string& bytes, const Header& header) {
  put(bytes, static_cast<int64_t>(header.dtype));
  put(bytes, header.shape.ndim());
  for (const int64_t size : header.shape) put(bytes, size);
}

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}

  int64_t number() {
    int64_t value = 0;
    if (position_ + sizeof(value) > bytes_.size()) {
      throw CommunicationError("header: a message ended too early");
    }
    std::memcpy(&value, bytes_.data() + position_, sizeof(value));
    position_ += sizeof(value);
    return value;
  }
  Header header() {
    Header result;
    result.dtype = static_cast<DType>(number());
    for (int64_t left = number(); left > 0; --left) result.shape.push_back(number());
    return result;
  }
  std::string rest() const { return bytes_.substr(position_); }

 private:
  const std::string& bytes_;
  size_t position_ = 0;
};

}  // namespace

Header header_of(const Tensor& tensor) { return {tensor.shape(), tensor.dtype()}; }

std::ostream& operator<<(std::ostream& out, const Header& header) {
  return out << header.dtype << ' ' << header.shape;
}

Headers broadcast_headers(Communicator& comm, const Headers& headers, int root) {
  if (comm.size() == 1) return headers;
  std::string bytes;
  if (comm.rank() == root) {
    put(bytes, static_cast<int64_t>(headers.tensors.size()));
    for (const Header& header : headers.tensors) put(bytes, header);
    bytes += headers.note;
  }
  bytes = broadcast_text(comm, bytes, root);
  Reader reader(bytes);
  Headers result;
  for (int64_t left = reader.number(); left > 0; --left) result.tensors.push_back(reader.header());
  result.note = reader.rest();
  return result;
}

std::vector<Header> gather_headers(Communicator& comm, const Header& header) {
  std::string bytes;
  put(bytes, header);
  std::vector<Header> result;
  for (const std::string& text : gather_texts(comm, bytes)) result.push_back(Reader(text).header());
  return result;
}

}  // namespace cuop::dist
