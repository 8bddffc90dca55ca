// What a rank makes of what others say of their GPU memory: right, wrong and made up.
#include <fcntl.h>
#include <gmock/gmock.h>

#include <cstring>
#include <limits>

#include "cuop/backend/cuda/cuda_memory.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/dist/comm/fabric_exports.h"
#include "cuop/dist/comm/fabric_imports.h"
#include "cuop/memory/current.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "tests/error_of.h"

namespace cuop::dist::fabric {
namespace {

using cuop::test::error_of;
using ::testing::HasSubstr;

constexpr Device kGpu{DeviceType::kCuda, 0};
/// What a rank says of its GPU: the limit of what it may announce.
int64_t gpu_memory() {
  const bool is_there = backend::device_count(DeviceType::kCuda) > 0;
  return is_there ? backend::runtime(kGpu).memory_info().total : 0;
}

/// A channel on which sender 0 sends, and what it says.
class FabricTest : public testing::Test {
 protected:
  void SetUp() override {
    if (backend::device_count(DeviceType::kCuda) == 0) GTEST_SKIP() << "needs a CUDA GPU";
    if (!Exports::can_describe(tensor())) GTEST_SKIP() << "needs memory that can be exported";
  }

  static Tensor tensor() {
    return to_device(reshape(arange(0, 3000, 1, DType::kFloat64), {30, 100}), kGpu);
  }
  static std::vector<double> values(const Tensor& x) {
    const Tensor host = contiguous(to_device(x, kCpu));
    return {host.data<double>(), host.data<double>() + host.size()};
  }

  DescriptorChannel::Message sent() {
    exports_.push(sender_);
    EXPECT_TRUE(exports_.is_pushed());
    return *channel_.receive();
  }
  static std::vector<PieceNote> notes_of(const DescriptorChannel::Message& message) {
    std::vector<PieceNote> notes(message.bytes.size() / sizeof(PieceNote));
    std::memcpy(notes.data(), message.bytes.data(), message.bytes.size());
    return notes;
  }
  /// The message again with its first note changed.
  template <class Change>
  DescriptorChannel::Message changed(Change&& change) {
    const Tensor other = tensor();
    Exports anew(kGpu, channel_.place_for(0));
    anew.describe(other);
    anew.push(sender_);
    DescriptorChannel::Message message = *channel_.receive();
    std::vector<PieceNote> notes = notes_of(message);
    change(notes.front());
    std::memcpy(message.bytes.data(), notes.data(), message.bytes.size());
    return message;
  }

  DescriptorChannel channel_{2}, sender_{1};
  Exports exports_{kGpu, channel_.place_for(0)};
  Imports imports_{kGpu, gpu_memory()};
};

TEST_F(FabricTest, ViewsReadWhatWasAnnounced) {
  const Tensor x = tensor();
  const Tensor part = slice(permute(x, std::vector<int64_t>{1, 0}), 0, 90, 10, -7);
  const TensorNote note = exports_.describe(part);
  imports_.take(sent());
  EXPECT_EQ(imports_.count(), exports_.count());
  EXPECT_EQ(values(imports_.view(note, part.dtype(), part.shape())), values(part));
  // What is known is not announced again.
  EXPECT_EQ(values(imports_.view(exports_.describe(x), x.dtype(), x.shape())), values(x));
  EXPECT_TRUE(exports_.is_pushed());
  EXPECT_THROW(copy_into(imports_.view(note, part.dtype(), part.shape()), part), Error);
}

TEST_F(FabricTest, WhatIsGoneIsUnmapped) {
  Tensor x = to_device(zeros({1 << 20}, DType::kFloat64), kGpu);
  const TensorNote note = exports_.describe(x);
  imports_.take(sent());
  const int64_t mapped = imports_.mapped_bytes();
  EXPECT_GE(mapped, x.nbytes());
  x = Tensor();
  backend::cuda::cuda_memory(kGpu).release_cached();
  exports_.retire();
  imports_.take(sent());
  EXPECT_LE(imports_.mapped_bytes(), mapped - (1 << 20) * 8);
  EXPECT_THAT(error_of([&] { imports_.view(note, DType::kFloat64, {1 << 20}); }),
              HasSubstr("does not lie in the memory"));
  exports_.retire();
  EXPECT_TRUE(exports_.is_pushed());
}

TEST_F(FabricTest, WhatAFullReceiverDoesNotTakeFollowsLater) {
  DescriptorChannel other(1);
  int fillers = 0;
  while (other.send(channel_.place_for(1), {}, {})) ++fillers;
  const Tensor x = tensor();
  const TensorNote note = exports_.describe(x);
  const int64_t count = exports_.count();
  for (int attempt = 0; attempt < 3; ++attempt) exports_.push(sender_);
  EXPECT_FALSE(exports_.is_pushed());
  EXPECT_EQ(exports_.count(), count);
  for (int i = 0; i < fillers; ++i) ASSERT_EQ(channel_.receive()->sender, 1);
  EXPECT_FALSE(channel_.receive());
  imports_.take(sent());
  EXPECT_EQ(imports_.count(), count);
  EXPECT_EQ(values(imports_.view(note, x.dtype(), x.shape())), values(x));
}

TEST_F(FabricTest, PlacesOutsideAreRefused) {
  const Tensor x = tensor();
  const TensorNote note = exports_.describe(x);
  DescriptorChannel::Message message = sent();
  const int64_t range_bytes = notes_of(message).front().range_bytes;
  imports_.take(message);
  const auto refused = [&](auto&& change) {
    TensorNote wrong = note;
    change(wrong);
    return error_of([&] { imports_.view(wrong, x.dtype(), x.shape()); });
  };
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  const auto outside = HasSubstr("does not lie in the memory");
  for (const int64_t offset : {int64_t{-8}, int64_t{1} << 34, range_bytes, range_bytes - 8,
                               kHuge - 7, -kHuge - 1, note.offset + 1}) {
    EXPECT_THAT(refused([&](TensorNote& n) { n.offset = offset; }), outside) << offset;
  }
  for (const int64_t stride : {int64_t{-1000000000}, int64_t{1} << 40, kHuge, -kHuge - 1}) {
    EXPECT_THAT(refused([&](TensorNote& n) { n.strides[0] = stride; }), outside) << stride;
    EXPECT_THAT(refused([&](TensorNote& n) { n.strides[1] = stride; }), outside) << stride;
  }
  EXPECT_THAT(refused([&](TensorNote& n) { n.range += 1000; }), outside);
  for (const int32_t number : {-1, 5, 99, 1 << 30}) {
    EXPECT_THAT(refused([&](TensorNote& n) { n.dtype = number; }), HasSubstr("expects (30, 100)"));
    EXPECT_THAT(refused([&](TensorNote& n) { n.ndim = number; }), HasSubstr("expects (30, 100)"));
  }
  EXPECT_THAT(refused([&](TensorNote& n) { n.shape[1] = kHuge; }),
              HasSubstr("and was sent (30, 9"));
  EXPECT_EQ(values(imports_.view(note, x.dtype(), x.shape())), values(x));
}

TEST_F(FabricTest, MessagesThatMakeNoSenseAreRefused) {
  constexpr int64_t kUnit = backend::cuda::ImportedRange::kUnit;
  const auto refused = [&](auto&& change) {
    const DescriptorChannel::Message message = changed(change);
    return error_of<Error>([&] { Imports(kGpu, gpu_memory()).take(message); });
  };
  for (const int64_t bytes : {int64_t{0}, -kUnit, int64_t{1} << 50}) {
    EXPECT_THAT(refused([&](PieceNote& n) { n.bytes = bytes; }), HasSubstr("are more than"))
        << bytes;
  }
  const auto outside = HasSubstr("does not lie in a range");
  EXPECT_THAT(refused([](PieceNote& n) { n.bytes += 1; }), outside);
  for (const int64_t offset : {-kUnit, int64_t{1}, std::numeric_limits<int64_t>::max(),
                               std::numeric_limits<int64_t>::max() / kUnit * kUnit}) {
    EXPECT_THAT(refused([&](PieceNote& n) { n.offset = offset; }), outside) << offset;
  }
  EXPECT_THAT(refused([](PieceNote& n) { n.offset = n.range_bytes; }), outside);
  for (const int64_t bytes : {int64_t{0}, -kUnit, kUnit + 1}) {
    EXPECT_THAT(refused([&](PieceNote& n) { n.range_bytes = bytes; }), HasSubstr("a range has"));
  }
  EXPECT_THAT(refused([](PieceNote& n) { n.range_bytes = int64_t{1} << 60; }),
              HasSubstr("are allowed"));
  EXPECT_THAT(refused([](PieceNote& n) { n.kind = PieceNote::Kind::kGone; }), HasSubstr("files"));
  EXPECT_THAT(refused([](PieceNote& n) { n.kind = PieceNote::Kind{7}; }), HasSubstr("files"));
  // More than the file stands for.
  EXPECT_THAT(refused([](PieceNote& n) { n.bytes *= 512; }), HasSubstr("mapping"));
}

TEST_F(FabricTest, FilesThatAreNoMemoryAreRefused) {
  DescriptorChannel::Message message = changed([](PieceNote&) {});
  for (const char* path : {"/dev/null", "/proc/self/exe", "/tmp"}) {
    message.files.front() = Descriptor(open(path, O_RDONLY | O_CLOEXEC));
    EXPECT_THAT(error_of<Error>([&] { Imports(kGpu, gpu_memory()).take(message); }),
                HasSubstr("imported memory: "))
        << path;
  }
  message.files.clear();
  EXPECT_THAT(error_of<Error>([&] { Imports(kGpu, gpu_memory()).take(message); }),
              HasSubstr("names 1 pieces and brings 0 files"));
}

TEST_F(FabricTest, PiecesComeOnceAndGoOnce) {
  const DescriptorChannel::Message message = changed([](PieceNote&) {});
  imports_.take(message);
  EXPECT_THAT(error_of<Error>([&] { imports_.take(message); }), HasSubstr("comes twice"));
  const DescriptorChannel::Message across = changed([](PieceNote& n) { n.number += 1000; });
  EXPECT_THAT(error_of<Error>([&] { imports_.take(across); }), HasSubstr("lies across others"));
  DescriptorChannel::Message gone;
  const PieceNote note{.kind = PieceNote::Kind::kGone, .number = 12345678};
  gone.bytes.resize(sizeof note);
  std::memcpy(gone.bytes.data(), &note, sizeof note);
  EXPECT_THAT(error_of<Error>([&] { imports_.take(gone); }), HasSubstr("is none"));
  gone.bytes.pop_back();
  EXPECT_THAT(error_of<Error>([&] { imports_.take(gone); }), HasSubstr("message of 47 bytes"));
}

}  // namespace
}  // namespace cuop::dist::fabric
