// What is being recorded, and by whom.
#pragma once

#include <cstdint>
#include <memory>

#include "cuop/backend/cuda/driver.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/stream.h"

namespace cuop::backend::cuda {

/// While another library records a graph, the driver refuses calls that could wait, such as taking
/// memory, and spoils the recording. Within this scope this thread may make them.
class RelaxedCapture : NonCopyable {
 public:
  RelaxedCapture() { driver().thread_exchange_stream_capture_mode(&mode_); }
  ~RelaxedCapture() { driver().thread_exchange_stream_capture_mode(&mode_); }

 private:
  CaptureMode mode_ = CaptureMode::kRelaxed;
};

/// A stream that a graph of ours records, while this lives.
class OwnCapture : NonCopyable {
 public:
  explicit OwnCapture(StreamHandle stream);
  ~OwnCapture();

 private:
  StreamHandle stream_;
};

/// Whether work that the stream is given is recorded for a graph instead of run.
bool is_capturing(Stream stream);
/// The number of the recording that another library makes of the stream; 0 when there is none. No
/// two recordings of a process have the same.
uint64_t capture_by_others(Stream stream);
/// Keeps an object of a library, such as a plan with tables on the device, for the rest of the
/// process when work of it on the stream is being recorded: a recording may be of another library
/// and be replayed for as long as that likes.
void keep_if_recorded(Stream stream, std::shared_ptr<const void> object);

}  // namespace cuop::backend::cuda
