// The DLPack exchange structures, laid out as its specification says (version 1.0 and the older
// unversioned form).
#pragma once

#include <cstdint>

namespace cuop::python::dlpack {

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
inline constexpr int32_t kDLCPU = 1;
inline constexpr int32_t kDLCUDA = 2;
inline constexpr int32_t kDLCUDAHost = 3;
inline constexpr int32_t kDLCUDAManaged = 13;

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
inline constexpr uint8_t kDLInt = 0;
inline constexpr uint8_t kDLUInt = 1;
inline constexpr uint8_t kDLFloat = 2;
inline constexpr uint8_t kDLBfloat = 4;
inline constexpr uint8_t kDLComplex = 5;
inline constexpr uint8_t kDLBool = 6;

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};

struct DLManagedTensorVersioned {
  uint32_t version_major;
  uint32_t version_minor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor dl_tensor;
};
inline constexpr uint64_t kReadOnly = 1;
inline constexpr uint64_t kIsCopied = 2;

}  // namespace cuop::python::dlpack
