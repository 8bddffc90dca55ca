#include "cuop/executor/root_arrays.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/packed.h"
#include "cuop/memory/shared_memory.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/copy/staged_copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

namespace cuop::executor {

using dist::Header;
using dist::MemoryAddress;
using dist::Packer;
using dist::Part;
using dist::Unpacker;

namespace {

constexpr const char* kWho = "arrays of the root";

// What threads of this process offer each other: a rank that comes late to a call that has failed
// finds nothing, or holds what it uses.
struct Offered {
  struct Call {
    std::vector<Tensor> arrays;
    std::shared_ptr<SharedBoxes> boxes;
  };
  ForkMutex mutex;
  std::map<int64_t, Call> calls;
  int64_t next = 1;
};

Offered& offered() {
  static Offered& all = *new Offered;  // ranks may outlive the program's statics
  return all;
}

bool is_of_this_process(const MemoryAddress& address) {
  const MemoryAddress own = dist::address_of(nullptr);
  return address.process == own.process && address.token_at == own.token_at &&
         address.token == own.token;
}

void put(Packer& packer, const MemoryAddress& address) {
  packer.put(address.process);
  for (const uint64_t number :
       {address.token_at, address.token[0], address.token[1], address.data}) {
    packer.put(number);
  }
}

MemoryAddress address_from(Unpacker& unpacker) {
  MemoryAddress address;
  address.process = unpacker.number();
  address.token_at = unpacker.number<uint64_t>();
  for (uint64_t& number : address.token) number = unpacker.number<uint64_t>();
  address.data = unpacker.number<uint64_t>();
  return address;
}

/// Results of this process in memory that other processes may map, by where they begin.
struct SharedResults {
  ForkMutex mutex;
  std::map<const void*, std::weak_ptr<memory::SharedMemory>> all;

  static SharedResults& instance() {
    static SharedResults& results = *new SharedResults;
    return results;
  }
  void add(const std::shared_ptr<memory::SharedMemory>& memory) {
    const std::lock_guard lock(mutex);
    std::erase_if(all, [](const auto& entry) { return entry.second.expired(); });
    all[memory->data()] = memory;
  }
  /// Behind the tensor; null when its memory is other.
  std::shared_ptr<memory::SharedMemory> find(const Tensor& tensor) {
    const std::lock_guard lock(mutex);
    const auto found = all.find(tensor.storage()->data());
    return found == all.end() ? nullptr : found->second.lock();
  }
};

bool are_threads(const dist::Communicator& comm) {
  return comm.kind() == "thread" || comm.size() == 1;
}

Tensor tensor_over(const std::shared_ptr<memory::SharedMemory>& memory, const Layout& layout,
                   DType dtype) {
  return from_memory(memory->data(), layout, dtype, kCpu, memory);
}

/// Elements in a row of memory that reading goes by: an array's box falls into such runs.
struct Runs {
  int64_t length = 1;  ///< elements of each
  int axes = 0;        ///< leading axes that count them
};

Runs runs_of(const Box& box, const Layout& layout) {
  Runs runs{1, layout.ndim()};
  for (int axis = layout.ndim() - 1; axis >= 0; --axis) {
    const int64_t length = box.interval(axis).length();
    if (length != 1 && layout.strides[axis] != runs.length) break;
    runs.length *= length;
    runs.axes = axis;
  }
  return runs;
}

}  // namespace

Tensor new_result(const dist::Communicator& comm, const Header& header) {
  if (are_threads(comm)) return empty(header.shape, header.dtype);
  const auto shared =
      memory::SharedMemory::create(element_count(header.shape) * itemsize(header.dtype));
  SharedResults::instance().add(shared);
  return tensor_over(shared, contiguous_layout(header.shape), header.dtype);
}

Tensor RootArray::read(const Box& box, Device device) const {
  if (!far_) return to_device(view_of(near_, box), device);
  const Tensor part = empty(box.shape(), far_->dtype, device);
  read_into(box, part);
  return part;
}

void RootArray::read_into(const Box& box, const Tensor& place) const {
  if (!far_) return copy_across(place, view_of(near_, box));
  if (place.device().is_cpu() && place.is_contiguous()) return read_far(box, place.data());
  // By several threads, each into what the GPU takes it from.
  const auto fill = [&](const Box& piece, const Tensor& to) {
    Box there = piece;
    for (int axis = 0; axis < box.ndim(); ++axis) {
      const Interval range = piece.interval(axis);
      there.set_interval(axis, {box.low[axis] + range.low, box.low[axis] + range.high});
    }
    read_far(there, to.data());
  };
  const bool is_stageable = !place.device().is_cpu() && place.is_contiguous();
  if (is_stageable && staged_fill(place, fill)) return;
  const Tensor part = empty(box.shape(), far_->dtype);
  read_far(box, part.data());
  copy_across(place, part);
}

int64_t RootArray::rows() const {
  return far_ ? far_->layout.shape[0] : near_.box.interval(0).high;
}

Tensor RootArray::read_beyond(const Box& box, Device device, bool is_wrapped) const {
  const int64_t rows = this->rows();
  const Interval wanted = box.interval(0);
  if (wanted.low >= 0 && wanted.high <= rows) return read(box, device);
  const DType dtype = far_ ? far_->dtype : near_.local.dtype();
  const Tensor all = zeros(box.shape(), dtype, device);
  // Stretches of rows that lie together in the array.
  for (int64_t row = is_wrapped ? wanted.low : std::max<int64_t>(0, wanted.low);
       row < wanted.high;) {
    if (rows == 0 || (!is_wrapped && row >= rows)) break;
    const int64_t first = (row % rows + rows) % rows;
    const int64_t count = std::min(rows - first, wanted.high - row);
    Box piece = box;
    piece.set_interval(0, {first, first + count});
    copy_into(slice(all, 0, row - wanted.low, row - wanted.low + count), read(piece, device));
    row += count;
  }
  return all;
}

void RootArray::read_far(const Box& box, void* into) const {
  const auto& [address, layout, dtype, owner] = *far_;
  const int64_t item = itemsize(dtype);
  const Runs runs = runs_of(box, layout);
  const int64_t bytes = runs.length * item;
  auto* to = static_cast<char*>(into);
  Dims at = box.low;
  constexpr int64_t kLookBytes = int64_t{32} << 20;  // bytes between two looks for an interrupt
  int64_t since = 0;
  for (int64_t left = bytes > 0 ? box.size() / runs.length : 0; left > 0; --left) {
    int64_t offset = 0;
    for (int axis = 0; axis < layout.ndim(); ++axis) offset += at[axis] * layout.strides[axis];
    for (int64_t done = 0; done < bytes; done += kLookBytes) {
      const int64_t now = std::min(kLookBytes, bytes - done);
      if (!dist::read_memory(address, offset * item + done, now, to + done)) {
        throw CommunicationError("arrays of the root: its memory cannot be read any more", owner);
      }
      since += now;
      if (since >= kLookBytes) {
        since = 0;
        check_interrupt();
      }
    }
    to += bytes;
    for (int axis = runs.axes - 1; axis >= 0; --axis) {
      if (++at[axis] < box.high[axis]) break;
      at[axis] = box.low[axis];
    }
  }
}

void RootArray::write(const Box& box, const Tensor& tile) const {
  if (far_) throw ExecutionError("arrays of the root: another process's array is read-only");
  const Tensor place = view_of(near_, box);
  if (is_same_view(place, tile)) return;
  copy_across(place, tile);
}

/// What the root tells of its arrays.
struct RootArrays::Offer {
  int64_t number = 0;  ///< of what its threads are offered
  MemoryAddress process = {};
  std::vector<MemoryAddress> addresses = {};
  std::vector<Strides> strides = {};
  memory::SharedMemoryName result = {};  ///< no bytes: the result is not shared
  Layout layout = {};                    ///< of the result in it

  std::string pack() const {
    Packer packer;
    packer.put(number);
    put(packer, process);
    for (size_t i = 0; i < addresses.size(); ++i) {
      put(packer, addresses[i]);
      packer.put(strides[i]);
    }
    for (const int64_t value :
         {result.process, result.descriptor, result.device, result.inode, result.bytes}) {
      packer.put(value);
    }
    packer.put(layout.strides);
    packer.put(layout.offset);
    return packer.take();
  }
  static Offer unpack(const std::string& bytes, const std::vector<Header>& headers) {
    Unpacker unpacker(kWho, bytes);
    Offer offer;
    offer.number = unpacker.number();
    offer.process = address_from(unpacker);
    for (size_t i = 0; i + 1 < headers.size(); ++i) {
      offer.addresses.push_back(address_from(unpacker));
      offer.strides.push_back(unpacker.dims());
      if (offer.strides.back().ndim() != headers[i].shape.ndim()) unpacker.fail("other dimensions");
    }
    for (int64_t* value : {&offer.result.process, &offer.result.descriptor, &offer.result.device,
                           &offer.result.inode, &offer.result.bytes}) {
      *value = unpacker.number();
    }
    const Header& made = headers.back();
    offer.layout = {made.shape, unpacker.dims(), unpacker.number()};
    const bool has_layout = offer.result.bytes > 0;
    if (has_layout && offer.layout.strides.ndim() != made.shape.ndim()) {
      unpacker.fail("other dimensions");
    }
    if (has_layout && made.shape.ndim() > 0) {
      const Extent reach = extent(offer.layout);
      const int64_t item = itemsize(made.dtype);
      if (reach.begin < 0 || reach.end * item > offer.result.bytes) {
        unpacker.fail("a result beyond its memory");
      }
    }
    if (!unpacker.rest().empty()) unpacker.fail("a message is too long");
    return offer;
  }
};

RootArrays::RootArrays(dist::Communicator& comm, int root, const std::vector<Tensor>& arrays,
                       const Tensor& into, const std::vector<Header>& headers,
                       const std::vector<std::vector<Box>>& needs, PutTile put)
    : comm_(comm), root_(root), put_(std::move(put)), written_(needs.back()) {
  const bool is_root = comm.rank() == root;
  const Header& made = headers.back();
  std::shared_ptr<memory::SharedMemory> shared;
  Offer offer;
  if (is_root) {
    result_ = into.is_defined() ? into : new_result(comm, made);
    if (!are_threads(comm)) shared = SharedResults::instance().find(result_);
    if (shared) offer.result = shared->name();
    offer.layout = result_.layout();
    offer.process = dist::address_of(nullptr);
    for (const Tensor& array : arrays) {
      offer.addresses.push_back(dist::address_of(array.data()));
      offer.strides.push_back(array.strides());
    }
    Offered& all = offered();
    const std::lock_guard lock(all.mutex);
    offer.number = offered_ = all.next++;
    boxes_ = std::make_shared<SharedBoxes>();
    Offered::Call& mine = all.calls[offered_] = {arrays, boxes_};
    mine.arrays.push_back(result_);
  }
  const auto part = [](const Tensor& whole) { return Part{whole, whole_box(whole.shape()), kCpu}; };
  if (comm.size() > 1) {
    const std::string told = dist::broadcast_text(comm, is_root ? offer.pack() : "", root);
    offer = Offer::unpack(told, headers);
  }
  std::vector<Tensor> near;
  if (is_root) {
    near = arrays;
    near.push_back(result_);
  } else if (is_of_this_process(offer.process)) {
    Offered& all = offered();
    const std::lock_guard lock(all.mutex);
    const auto found = all.calls.find(offer.number);
    if (found != all.calls.end()) {
      near = found->second.arrays;
      boxes_ = found->second.boxes;
    }
  }
  const bool has_all_near = near.size() == headers.size();
  bool has_host = has_all_near;
  const bool has_own = !has_all_near && into.is_defined();
  if (!has_host && dist::is_readable(offer.process)) {
    if (!has_own && offer.result.bytes > 0) shared = memory::SharedMemory::open(offer.result);
    has_host = has_own || shared != nullptr;
  }
  const bool all_near = dist::agree_all(comm, has_all_near);
  if (all_near || dist::agree_all(comm, has_host)) {
    way_ = all_near ? Way::kHere : Way::kHost;
    for (size_t i = 0; i + 1 < headers.size(); ++i) {
      if (has_all_near) {
        arrays_.emplace_back(part(near[i]));
      } else {
        const Layout layout{headers[i].shape, offer.strides[i], 0};
        arrays_.emplace_back(offer.addresses[i], layout, headers[i].dtype, comm.in_world(root));
      }
    }
    arrays_.emplace_back(part(has_all_near ? near.back()
                              : has_own    ? into
                                           : tensor_over(shared, offer.layout, made.dtype)));
    return;
  }
  way_ = Way::kParts;
  const auto rank = static_cast<size_t>(comm.rank());
  for (size_t i = 0; i + 1 < headers.size(); ++i) {
    std::vector<Box> owners(needs[i].size(), empty_box(headers[i].shape.ndim()));
    owners[static_cast<size_t>(root)] = whole_box(headers[i].shape);
    const Part source{is_root ? arrays[i] : Tensor(), owners[rank], kCpu};
    const Tensor mine = dist::fetch(comm, source, owners, needs[i], headers[i].dtype);
    arrays_.emplace_back(Part{mine, needs[i][rank], kCpu});
  }
  const Box& box = written_[rank];
  if (is_root) {
    arrays_.emplace_back(part(result_));
  } else {
    const Tensor mine = box.is_void ? Tensor() : empty(box.shape(), made.dtype);
    arrays_.emplace_back(Part{mine, box, kCpu});
  }
}

RootArrays::~RootArrays() {
  if (offered_ == 0) return;
  Offered& all = offered();
  const std::lock_guard lock(all.mutex);
  all.calls.erase(offered_);
}

void RootArrays::write(const Box& box, const Tensor& tile) const {
  const bool is_part = way_ == Way::kParts && comm_.rank() != root_;
  if (!put_ || is_part) return output().write(box, tile);
  put_(output().near().local, box, tile);
}

Tensor RootArrays::finish() {
  const bool is_root = comm_.rank() == root_;
  if (way_ != Way::kParts) {
    if (comm_.size() > 1) comm_.barrier();  // all have written
    return is_root ? result_ : Tensor();
  }
  // The root has written its own box in place.
  std::vector<dist::Patch> sends, receives;
  for (int r = 0; r < comm_.size(); ++r) {
    const Box& box = written_[static_cast<size_t>(r)];
    if (r == root_ || box.empty()) continue;
    if (is_root && put_) {
      receives.push_back({r, empty(box.shape(), result_.dtype())});
    } else if (is_root) {
      receives.push_back({r, view_of(output().near(), box)});
    }
    if (comm_.rank() == r) sends.push_back({root_, output().near().local});
  }
  comm_.exchange(sends, receives);
  for (const dist::Patch& patch : receives) {
    if (put_) put_(result_, written_[static_cast<size_t>(patch.peer)], patch.elements);
  }
  return is_root ? result_ : Tensor();
}

}  // namespace cuop::executor
