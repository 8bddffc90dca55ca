#include "cuop/backend/cuda/cudnn_api.h"

namespace cuop::backend::cuda::dnn {

namespace {

/// "DESCRIPTOR 17, attribute 902" is of use to nobody; these are the parts of a problem.
const char* step_of(Attribute attribute) {
  const int number = static_cast<int>(attribute);
  if (number >= 900 && number < 1000) return "the description of a tensor";
  if (number >= 1000 && number < 1100) return "the addresses of the tensors";
  if (number >= 100 && number < 200) return "stride, padding and dilation";
  if (number >= 200 && number < 500) return "the choice of an engine";
  if (number >= 1300) return "a question about an engine";
  return "the description of the operation";
}

/// What cuDNN last said about an error of this thread; "" when it says nothing.
std::string last_error() {
  char text[512] = "";
  library().last_error(text, sizeof text);
  return text;
}

}  // namespace

std::string absence() {
  const DynLib& lib = cuda_library(CudaLibrary::kCudnn);
  if (lib.is_loaded()) return "";
  return cat("cuDNN was not found: ", lib.reason(), "; ", lib.advice());
}

const Library& library() {
  static const Library loaded = [] {
    if (!cuda_library(CudaLibrary::kCudnn).is_loaded()) throw DeviceError(absence());
    return Library();
  }();
  return loaded;
}

void check_status(int status, const char* who, const char* step) {
  if (status == 0) [[likely]]
    return;
  const std::string words = last_error();
  check_library(status, "cuDNN", who, words.empty() ? step : cat(step, ": ", words),
                library().status_text);
}

Descriptor::Descriptor(const char* who, DescriptorType type) : who_(who) {
  check_status(library().descriptor_create(type, &raw_), who_, "a new description");
}

Descriptor::~Descriptor() {
  if (raw_ != nullptr) library().descriptor_destroy(raw_);
}

void Descriptor::put(Attribute attribute, int type, int64_t count, const void* values) {
  check_status(library().attribute_set(raw_, attribute, type, count, values), who_,
               step_of(attribute));
}

int64_t Descriptor::take(Attribute attribute, int type, int64_t capacity, void* values) const {
  int64_t count = 0;
  check_status(library().attribute_get(raw_, attribute, type, capacity, &count, values), who_,
               step_of(attribute));
  return count;
}

void Descriptor::finalize() {
  check_status(library().descriptor_finalize(raw_), who_, "the whole of a description");
}

bool Descriptor::try_finalize() {
  const int status = library().descriptor_finalize(raw_);
  if (status >= kNotSupported && status < kNotSupported + 1000) return false;
  if (status == kNotCompiled) return false;
  check_status(status, who_, "the whole of a description");
  return true;
}

}  // namespace cuop::backend::cuda::dnn
