#include "cuop/dist/comm/fabric.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "cuop/backend/device_properties.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/blame.h"
#include "cuop/dist/comm/finding.h"
#include "cuop/memory/current.h"
#include "cuop/ops/create/empty.h"

namespace cuop::dist {

namespace {

using fabric::Offer;
using fabric::Text;
using fabric::Trial;
using fabric::Verdict;

constexpr int64_t kTrialWords = 512;

/// A tensor where others can map it.
Tensor trial_tensor(Device device) {
  const memory::ResourceScope scope(memory::device_resource(device));
  return empty({kTrialWords, 2}, DType::kUInt64, device);
}

std::string absence_on(Device device) {
  if (!env().peer_mapping.value) return "CUOP_PEER_MAPPING=0";
  if (device.is_cpu()) return "its device is the host";
  if (!fabric::Exports::can_describe(trial_tensor(device))) {
    return cat("the memory of ", device,
               " cannot be exported (CUOP_CUDA_ALLOCATOR=", env().cuda_allocator.value, ")");
  }
  return "";
}

}  // namespace

Fabric::Fabric(Exchange& x, Device device, fabric::Watched watched)
    : device_(device), peers_(static_cast<size_t>(x.size())), rank_(x.rank()) {
  const std::string wrong = finding_of([&] {
    absence_ = absence_on(device_);
    if (absence_.empty()) channel_.emplace(x.size());
  });
  if (!wrong.empty()) absence_ = wrong;
  make_offers(x);
  make_trials(x);
  agree(x);
  if (is_used_ && x.size() > 1) order(x, std::move(watched));
  log(LogLevel::kInfo, "exchange: rank ", rank_, " of ", x.size(), ": ", description());
}

Fabric::~Fabric() {
  links_.reset();  // what waits on the GPU for other ranks ends
  if (device_.is_cpu() || (!busy_ && !flags_)) return;
  constexpr auto kLongest = std::chrono::seconds(10);
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  bool is_over = false;
  const bool is_lost = error_of([&] {  // with its device, which then reads nothing any more
                         while (!(is_over = is_through())) {
                           backend::runtime(device_).check_works();
                           if (std::chrono::steady_clock::now() > deadline) break;
                           std::this_thread::sleep_for(std::chrono::milliseconds(1));
                         }
                       }) != nullptr;
  if (is_over || is_lost) return;
  log(LogLevel::kWarn, "exchange: rank ", rank_, ": ", device_,
      " is still busy; what it reads of other ranks' memory stays mapped");
  for (Peer& each : peers_) {
    if (each.imports) new fabric::Imports(std::move(*each.imports));
  }
  if (!flags_) return;
  flags_->give_up(flags_->own_number(), "its GPU is still busy");  // others wait no more
  static_cast<void>(flags_.release());  // and are looked after for as long as the process runs
}

bool Fabric::is_through() {
  // Of a call that has failed its own number may never come.
  if (busy_) return is_idle(*busy_);
  return !flags_ || flags_->is_through();
}

void Fabric::make_offers(Exchange& x) {
  std::vector<Offer> offers(peers_.size());
  for (int rank = 0; rank < x.size(); ++rank) {
    Offer& mine = offers[static_cast<size_t>(rank)];
    mine.is_able = absence_.empty() ? 1 : 0;
    mine.reason = Text(absence_);
    if (!device_.is_cpu()) {
      const auto& properties = backend::runtime(device_).properties();
      mine.gpu = Text(cat(device_, ", ", properties.uuid));
      mine.memory_bytes = properties.total_bytes;
    }
    if (absence_.empty()) mine.place = channel_->place_for(rank);
  }
  offers = swap_with_all(x, offers);
  for (size_t rank = 0; rank < peers_.size(); ++rank) peers_[rank].offer = offers[rank];
  for (Peer& each : peers_) {
    if (!absence_.empty()) {
      each.unread = absence_;
    } else if (each.offer.is_able == 0) {
      each.unread = each.offer.reason.str();
    } else {
      each.exports.emplace(device_, each.offer.place);
      each.imports.emplace(device_, each.offer.memory_bytes);
    }
  }
}

Trial Fabric::announce_trial(Peer& to) {
  Trial trial;
  trial.content = new_channel_token();
  const std::string wrong = finding_of([&] {
    const Tensor tensor = trial_tensor(device_);
    const Stream stream = current_stream(device_);
    backend::Runtime& runtime = backend::runtime(device_);
    runtime.fill(tensor.data(), trial.content.data(), sizeof trial.content, kTrialWords, stream);
    runtime.synchronize(stream);
    trial.tensor = to.exports->describe(tensor);
    kept_.push_back(tensor);
    to.exports->push(*channel_);
    trial.pieces = to.exports->count();
  });
  trial.is_on_its_way = wrong.empty() ? 1 : 0;
  trial.reason = Text(wrong);
  return trial;
}

std::string Fabric::find_out(const Peer& from, const Trial& trial) const {
  if (from.error) return message_of(from.error);
  return finding_of([&] {
    const Tensor tensor = from.imports->view(trial.tensor, DType::kUInt64, {kTrialWords, 2});
    const Tensor here = trial_tensor(device_);
    const Stream stream = current_stream(device_);
    pull(here, tensor, stream);
    std::vector<ChannelToken> content(static_cast<size_t>(kTrialWords));
    backend::runtime(device_).copy(content.data(), here.data(), here.nbytes(), stream);
    const auto is_wrong = [&](const ChannelToken& each) { return each != trial.content; };
    if (std::ranges::any_of(content, is_wrong)) {
      throw ExecutionError("its memory reads as something else than it wrote");
    }
  });
}

void Fabric::make_trials(Exchange& x) {
  std::vector<Trial> mine(peers_.size()), theirs(peers_.size());
  const auto is_tried = [&](int rank) { return rank != rank_ && peer(rank).exports.has_value(); };
  for (int rank = 0; rank < x.size(); ++rank) {
    if (!is_tried(rank)) continue;
    const auto i = static_cast<size_t>(rank);
    mine[i] = announce_trial(peer(rank));
    x.post_send(&mine[i], sizeof(Trial), rank);
    x.post_recv(&theirs[i], sizeof(Trial), rank);
  }
  x.wait_all();
  for (int rank = 0; rank < x.size(); ++rank) {
    if (!is_tried(rank)) continue;
    const Trial& trial = theirs[static_cast<size_t>(rank)];
    // What goes wrong here is a finding, not an error of the call.
    x.post_condition(
        [this, rank, &trial] {
          advance();
          const Peer& from = peer(rank);
          return trial.is_on_its_way == 0 || from.error || from.imports->count() >= trial.pieces;
        },
        rank);
    if (mine[static_cast<size_t>(rank)].is_on_its_way == 0) continue;
    x.post_condition(
        [this, rank] {
          advance();
          return peer(rank).error || peer(rank).exports->is_pushed();
        },
        rank);
  }
  x.wait_all();
  for (int rank = 0; rank < x.size(); ++rank) {
    if (!is_tried(rank)) continue;
    const Trial& trial = theirs[static_cast<size_t>(rank)];
    peer(rank).unread = trial.is_on_its_way == 0 ? trial.reason.str() : find_out(peer(rank), trial);
  }
}

void Fabric::agree(Exchange& x) {
  std::vector<Verdict> mine(peers_.size());
  int64_t readable = 0, unread_gpus = 0;
  for (int rank = 0; rank < x.size(); ++rank) {
    if (rank == rank_) continue;
    const bool is_read = peer(rank).unread.empty();
    if (is_read) ++readable;
    if (!is_read && has_gpu(rank) && has_gpu(rank_)) ++unread_gpus;
  }
  for (int rank = 0; rank < x.size(); ++rank) {
    mine[static_cast<size_t>(rank)] = {peer(rank).unread.empty() ? 1 : 0, readable, unread_gpus};
  }
  const std::vector<Verdict> theirs = swap_with_all(x, mine);
  is_used_ = readable > 0 || x.size() == 1;
  for (int rank = 0; rank < x.size(); ++rank) {
    const Verdict& verdict = theirs[static_cast<size_t>(rank)];
    if (verdict.readable > 0) is_used_ = true;
    unread_gpus += verdict.unread_gpus;
    peer(rank).reads_us = rank != rank_ && verdict.is_read != 0;
    // Nothing that went wrong in a trial is there any more for calls to stumble over.
    if (!peer(rank).unread.empty()) peer(rank).imports.reset();
    if (!peer(rank).reads_us) peer(rank).exports.reset();
    peer(rank).error = nullptr;
  }
  kept_.clear();
  if (unread_gpus > 0) link(x);
}

/// All ranks, as some with GPUs do not read each other's memory.
void Fabric::link(Exchange& x) {
  std::vector<LinkNeed> needs;
  for (int rank = 0; rank < x.size(); ++rank) {
    needs.push_back({!peer(rank).reads_us, !peer(rank).unread.empty()});
  }
  links_.emplace(x, device_, peer(rank_).offer.gpu, std::move(needs));
  is_used_ = is_used_ || links_->is_used();
}

/// All ranks, where memory is read at all.
void Fabric::order(Exchange& x, fabric::Watched watched) {
  std::vector<bool> is_wanted;
  bool has_some = false;
  for (int rank = 0; rank < x.size(); ++rank) {
    is_wanted.push_back(rank != rank_ && (peer(rank).reads_us || peer(rank).unread.empty()));
    has_some = has_some || is_wanted.back();
  }
  std::string absence = has_some ? "" : "no memory is read";
  flags_ = std::make_unique<fabric::Flags>(x, device_, std::move(watched), is_wanted,
                                           std::move(absence));
  if (flags_->is_used()) return;
  if (has_some) unordered_ = flags_->finding();
  flags_.reset();
}

std::string Fabric::description() const {
  std::vector<std::string> read, linked, unread;
  std::vector<int> ordered;
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    if (static_cast<int>(rank) == rank_) continue;
    const Peer& each = peers_[rank];
    const std::string named = cat("rank ", rank, " (", each.offer.gpu.str(), ")");
    if (flags_ && flags_->reach(static_cast<int>(rank))) ordered.push_back(static_cast<int>(rank));
    if (each.unread.empty()) {
      read.push_back(named);
    } else if (links_ && links_->leads_from(static_cast<int>(rank))) {
      linked.push_back(named);
    } else {
      unread.push_back(cat("rank ", rank, " (", each.unread, ")"));
    }
  }
  const std::string own = peers_[static_cast<size_t>(rank_)].offer.gpu.str();
  const std::string why = links_ ? links_->finding() : "";
  return cat(own.empty() ? cat(device_) : own, read.empty() ? "" : " reads the memory of ",
             join(read), linked.empty() ? "" : "; by NCCL: ", join(linked),
             unread.empty() ? "" : "; through the host: ", join(unread),
             why.empty() ? "" : "; NCCL is not used: ", why,
             ordered.empty() ? "" : "; streams wait for ",
             ordered.empty() ? "" : ranks_text(ordered),
             unordered_.empty() ? "" : "; hosts wait for their GPUs: ", unordered_);
}

void Fabric::advance() noexcept {
  if (!channel_) return;
  std::optional<DescriptorChannel::Message> message;
  do {
    message.reset();
    const std::exception_ptr lost = error_of([&] { message = channel_->receive(); });
    for (Peer& each : peers_) {
      if (lost) each.error = lost;
    }
    if (!message) break;
    Peer& from = peer(message->sender);
    // Of ranks that this one does not read, and after an error, files are closed at once.
    if (!from.imports || from.error) continue;
    from.error = error_of([&] { from.imports->take(*message); });
  } while (message);
  for (Peer& each : peers_) {
    if (!each.exports || each.exports->is_pushed() || each.error) continue;
    each.error = error_of([&] { each.exports->push(*channel_); });
  }
}

void Fabric::tidy() {
  for (Peer& each : peers_) {
    if (each.exports) each.exports->retire();
  }
  advance();
}

void Fabric::post_arrival(Exchange& x, int from, int64_t pieces) {
  x.post_condition(
      [this, from, pieces] {
        advance();
        if (peer(from).error) std::rethrow_exception(peer(from).error);
        return peer(from).imports->count() >= pieces;
      },
      from);
}

void Fabric::post_departure(Exchange& x, int to) {
  x.post_condition(
      [this, to] {
        advance();
        if (peer(to).error) std::rethrow_exception(peer(to).error);
        return peer(to).exports->is_pushed();
      },
      to);
}

}  // namespace cuop::dist
