// What the host is told when it waits for a GPU whose streams have gone on without the ranks that
// they waited for.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cuop/backend/cuda/wait_guards.h"
#include "cuop/dist/comm/fabric_flag_page.h"

namespace cuop::dist::fabric {

/// Why what a rank's GPU has received means nothing.
struct Abandonment {
  int rank = -1;          ///< that is to blame, in the root
  bool is_gone = false;   ///< it has died, has ended or does not run
  std::string text = {};  ///< behind "exchange: rank 0 of 2 "
};

/// What a word says that another process has given.
Abandonment told_by(const FlagPage::Owner& owner, uint32_t word, int ranks);

/// Of one rank of one communicator. Any thread may call.
class Guard final : public backend::cuda::WaitGuard {
 public:
  Guard(Device device, std::shared_ptr<memory::SharedMemory> page, int rank, int size)
      : device_(device), page_(std::move(page)), rank_(rank), size_(size) {}

  /// CommunicationError when there is a reason.
  void check() override;
  /// By this process, or another one that has said so in the page; nothing where all is well.
  std::optional<Abandonment> reason() const;
  /// The first reason counts.
  void spoil(const Abandonment& reason);
  /// It was raised by a call.
  void note_raised() { was_raised_ = true; }
  /// The ranks know of it, and go on without what was received.
  void forget() { is_forgotten_ = true; }
  bool is_forgotten() const { return is_forgotten_; }

  void start(const std::shared_ptr<Guard>& self) { guards().add(self); }
  /// Nothing is received any more. A reason that nobody has been told is told once.
  void end();

 private:
  backend::cuda::WaitGuards& guards() const { return backend::cuda::wait_guards(device_); }

  const Device device_;
  const std::shared_ptr<memory::SharedMemory> page_;
  const int rank_, size_;
  mutable std::mutex mutex_;
  std::optional<Abandonment> reason_;
  std::atomic<bool> was_raised_ = false, is_forgotten_ = false, is_over_ = false;
};

}  // namespace cuop::dist::fabric
