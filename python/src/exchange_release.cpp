#include "exchange_release.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cuop/backend/cuda/capture.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/ops/create/create.h"

namespace cuop::python {

namespace {

/// One import; several may share an address.
struct Loan {
  Device device;
  const void* address = nullptr;
  std::vector<Stream> used;
  std::shared_ptr<void> owner;
};

/// What is to be given back when the events are past.
struct Return {
  std::vector<std::unique_ptr<backend::Event>> events;
  std::shared_ptr<void> owner;
};

/// Never destroyed: tensors may outlive static destructors.
struct Loans {
  ForkMutex mutex;
  std::unordered_multimap<const void*, std::shared_ptr<Loan>> by_address;
  std::vector<Return> returns;
  std::atomic<size_t> return_count = 0;
};
Loans& loans() {
  static auto* made = new Loans;
  return *made;
}

void add_once(std::vector<Stream>& streams, Stream stream) {
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
    streams.push_back(stream);
  }
}

/// Marks the end of what the streams hold. Recorded work is not done now and keeps no memory: who
/// captures a graph keeps its tensors.
Return marked(const Loan& loan) {
  const backend::cuda::RelaxedCapture scope;
  Return result{{}, loan.owner};
  backend::Runtime& runtime = backend::runtime(loan.device);
  for (const Stream& stream : loan.used) {
    if (backend::cuda::is_capturing(stream) || runtime.is_idle(stream)) continue;
    result.events.push_back(runtime.create_event(false));
    result.events.back()->record(stream);
  }
  return result;
}

bool is_done(Return& given_back) noexcept {
  try {
    const backend::cuda::RelaxedCapture scope;
    std::erase_if(given_back.events, [](const auto& event) { return event->is_done(); });
    return given_back.events.empty();
  } catch (const Error&) {
    return true;  // the device is lost or the process is ending: nothing uses the memory
  }
}

void end(const std::shared_ptr<Loan>& loan) noexcept {
  Loans& all = loans();
  {
    const std::lock_guard lock(all.mutex);
    const auto [begin, end] = all.by_address.equal_range(loan->address);
    const auto own =
        std::find_if(begin, end, [&](const auto& entry) { return entry.second == loan; });
    if (own != end) all.by_address.erase(own);
  }
  try {
    add_once(loan->used, current_stream(loan->device));
    Return given_back = marked(*loan);
    loan->owner.reset();
    if (!given_back.events.empty()) {
      const std::lock_guard lock(all.mutex);
      all.returns.push_back(std::move(given_back));
      all.return_count = all.returns.size();
    }
  } catch (const std::exception&) {
    loan->owner.reset();  // as above
  }
  release_borrowed();
}

}  // namespace

Tensor borrow(void* data, const Layout& layout, DType dtype, Device device,
              std::shared_ptr<void> owner, bool is_read_only) {
  if (device.is_cpu()) {
    return from_memory(data, layout, dtype, device, std::move(owner), is_read_only);
  }
  release_borrowed();
  auto loan = std::make_shared<Loan>();
  loan->device = device;
  loan->used = {current_stream(device)};
  loan->owner = std::move(owner);
  const Tensor tensor =
      from_memory(data, layout, dtype, device, {data, [loan](void*) { end(loan); }}, is_read_only);
  loan->address = tensor.storage()->data();
  Loans& all = loans();
  const std::lock_guard lock(all.mutex);
  all.by_address.emplace(loan->address, loan);
  return tensor;
}

void note_use(const Tensor& tensor, Stream stream) {
  if (tensor.device().is_cpu()) return;
  Loans& all = loans();
  const void* data = tensor.storage()->data();
  const std::lock_guard lock(all.mutex);
  const auto [begin, end] = all.by_address.equal_range(data);
  for (auto entry = begin; entry != end; ++entry) add_once(entry->second->used, stream);
}

void release_borrowed() noexcept {
  Loans& all = loans();
  if (all.return_count.load(std::memory_order_relaxed) == 0) return;
  std::vector<Return> looked_at, done;
  {
    const std::lock_guard lock(all.mutex);
    looked_at.swap(all.returns);
  }
  const auto still = std::partition(looked_at.begin(), looked_at.end(), is_done);
  done.assign(std::make_move_iterator(looked_at.begin()), std::make_move_iterator(still));
  {
    const std::lock_guard lock(all.mutex);
    all.returns.insert(all.returns.end(), std::make_move_iterator(still),
                       std::make_move_iterator(looked_at.end()));
    all.return_count = all.returns.size();
  }
  // Their owners may run Python, which may come here again.
}

}  // namespace cuop::python
