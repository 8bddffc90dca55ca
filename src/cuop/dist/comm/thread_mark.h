// A mark in the work of a rank's stream that the streams of other ranks wait for: set once by its
// rank, whoever waits. To mark another rank's stream oneself takes a call of the driver on each
// pair.
#pragma once

#include <memory>

#include "cuop/backend/runtime.h"

namespace cuop::dist {

class ThreadMark {
 public:
  /// Marks what the stream of a GPU holds now. Throws what the driver says.
  void set(Stream stream) {
    is_set_ = false;
    if (!event_ || !(stream_.device == stream.device)) {
      event_ = backend::runtime(stream.device).create_event(false);
    }
    stream_ = stream;
    event_->record(stream);
    is_set_ = true;
  }

  /// What `later`, a stream of a GPU, gets from now on comes after what is marked on `earlier`.
  /// Where marking has failed that is tried again, which says why.
  void await(Stream later, Stream earlier) const {
    if (later == earlier) return;
    if (!is_set_) return backend::runtime(later.device).order(later, earlier);
    event_->wait(later);
  }

 private:
  std::unique_ptr<backend::Event> event_;
  Stream stream_;
  bool is_set_ = false;
};

}  // namespace cuop::dist
