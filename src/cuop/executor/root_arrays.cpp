#include "cuop/executor/root_arrays.h"

#include <map>
#include <mutex>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
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
    std::shared_ptr<ThreadBoxes> boxes;
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

/// Results of calls that have failed, in whose memory ranks of other processes may still write.
/// They stay until the ranks of the call's communicator meet in another one, for good where they
/// never do.
struct AbandonedResults {
  ForkMutex mutex;
  std::multimap<uint64_t, Tensor> all;  ///< by the communicator's number

  static AbandonedResults& instance() {
    static AbandonedResults& results = *new AbandonedResults;
    return results;
  }
  void keep(const dist::Communicator& comm, const Tensor& array) {
    const std::lock_guard lock(mutex);
    all.emplace(comm.number(), array);
  }
  void forget(const dist::Communicator& comm) {
    const std::lock_guard lock(mutex);
    all.erase(comm.number());
  }
};

bool are_threads(const dist::Communicator& comm) {
  return comm.kind() == "thread" || comm.size() == 1;
}

Tensor tensor_over(const std::shared_ptr<memory::SharedMemory>& memory, const Layout& layout,
                   DType dtype) {
  return from_memory(memory->data(), layout, dtype, kCpu, memory);
}

}  // namespace

Tensor new_result(const dist::Communicator& comm, const Header& header) {
  if (are_threads(comm)) return empty(header.shape, header.dtype);
  const auto shared =
      memory::SharedMemory::create(element_count(header.shape) * itemsize(header.dtype));
  SharedResults::instance().add(shared);
  return tensor_over(shared, contiguous_layout(header.shape), header.dtype);
}

/// What the root tells of its arrays.
struct RootArrays::Offer {
  int64_t number = 0;  ///< of what its threads are offered
  MemoryAddress process = {};
  std::vector<MemoryAddress> addresses = {};  ///< the result's last, as of all below
  std::vector<Strides> strides = {};
  memory::SharedMemoryName result = {};  ///< no bytes: the result is not shared
  int64_t offset = 0;                    ///< of the result in it

  /// Of one of them, from its first element on.
  Layout layout(const std::vector<Header>& headers, size_t i) const {
    return {headers[i].shape, strides[i], 0};
  }

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
    packer.put(offset);
    return packer.take();
  }
  static Offer unpack(const std::string& bytes, const std::vector<Header>& headers) {
    Unpacker unpacker(kWho, bytes);
    Offer offer;
    offer.number = unpacker.number();
    offer.process = address_from(unpacker);
    for (const Header& header : headers) {
      offer.addresses.push_back(address_from(unpacker));
      offer.strides.push_back(unpacker.dims());
      if (offer.strides.back().ndim() != header.shape.ndim()) unpacker.fail("other dimensions");
    }
    for (int64_t* value : {&offer.result.process, &offer.result.descriptor, &offer.result.device,
                           &offer.result.inode, &offer.result.bytes}) {
      *value = unpacker.number();
    }
    offer.offset = unpacker.number();
    const Header& made = headers.back();
    if (offer.result.bytes > 0 && made.shape.ndim() > 0) {
      const Extent reach = extent(offer.layout(headers, headers.size() - 1));
      const int64_t first = offer.offset + reach.begin, last = offer.offset + reach.end;
      if (first < 0 || last * itemsize(made.dtype) > offer.result.bytes) {
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
  std::vector<Tensor> near;
  Offer offer;
  if (is_root) {
    result_ = into.is_defined() ? into
              : put_            ? new_result(comm, made)
                                : empty(made.shape, made.dtype);
    if (!are_threads(comm)) shared = SharedResults::instance().find(result_);
    if (shared) offer.result = shared->name();
    offer.offset = result_.layout().offset;
    offer.process = dist::address_of(nullptr);
    near = arrays;
    near.push_back(result_);
    for (const Tensor& array : near) {
      offer.addresses.push_back(dist::address_of(array.data()));
      offer.strides.push_back(array.strides());
    }
    boxes_ = std::make_shared<ThreadBoxes>();
    Offered& all = offered();
    const std::lock_guard lock(all.mutex);
    offer.number = offered_ = all.next++;
    all.calls[offered_] = {near, boxes_};
  }
  const auto part = [](const Tensor& whole) { return Part{whole, whole_box(whole.shape()), kCpu}; };
  if (comm.size() > 1) {
    const std::string told = dist::broadcast_text(comm, is_root ? offer.pack() : "", root);
    offer = Offer::unpack(told, headers);
  }
  if (!is_root && is_of_this_process(offer.process)) {
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
    has_host = has_own || shared || (!put_ && dist::is_writable(offer.process));
  }
  const bool all_near = dist::agree_all(comm, has_all_near);
  AbandonedResults::instance().forget(comm);
  if (all_near || dist::agree_all(comm, has_host)) {
    way_ = all_near ? Way::kHere : Way::kHost;
    const auto far = [&](size_t i) {
      return RootArray(offer.addresses[i], offer.layout(headers, i), headers[i].dtype,
                       comm.in_world(root));
    };
    const size_t last = headers.size() - 1;
    for (size_t i = 0; i < last; ++i) {
      arrays_.push_back(has_all_near ? RootArray(part(near[i])) : far(i));
    }
    if (has_all_near || has_own) {
      arrays_.emplace_back(part(has_own ? into : near.back()));
    } else if (shared) {
      Layout layout = offer.layout(headers, last);
      layout.offset = offer.offset;
      arrays_.emplace_back(part(tensor_over(shared, layout, made.dtype)));
    } else {
      arrays_.push_back(far(last));
    }
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
  if (way_ == Way::kHost && !is_finished_) AbandonedResults::instance().keep(comm_, result_);
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
    is_finished_ = true;
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
