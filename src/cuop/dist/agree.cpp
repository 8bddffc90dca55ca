#include "cuop/dist/agree.h"

#include <algorithm>
#include <exception>

#include "cuop/core/error.h"
#include "cuop/core/hash.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/blocks.h"
#include "cuop/dist/comm/checks.h"

namespace cuop::dist {

namespace {

template <class T>
T reduce_value(Communicator& comm, T value, ReduceKind op) {
  T result{};
  comm.all_reduce(&value, &result, 1, dtype_of<T>, op);
  return result;
}

/// What a rank says of itself when ranks meet: the 24 bytes of the protocol.
struct Status {
  int64_t is_ok;
  uint64_t hash;
  int64_t length;
};

Status status_of(bool is_ok, std::string_view text) {
  return {is_ok ? 1 : 0, hash_text(text), static_cast<int64_t>(text.size())};
}

/// The first rank whose text is not rank 0's; the end when all agree.
auto first_different(const std::vector<Status>& all) {
  return std::find_if(all.begin(), all.end(), [&](const Status& each) {
    return each.hash != all[0].hash || each.length != all[0].length;
  });
}

/// All ranks meet with their error or their call and part as the protocol's step 3 says.
void settle(Communicator& comm, std::string_view call, const std::exception_ptr& error) {
  if (comm.size() == 1) {  // nobody to agree with
    if (error) std::rethrow_exception(error);
    return;
  }
  const std::string message = error ? message_of(error) : "";
  const std::string_view text = error ? message : call;
  std::vector<Status> all;
  try {
    all = gather_values(comm, status_of(!error, text));
  } catch (const CommunicationError&) {
    if (error) std::rethrow_exception(error);  // the others do not hear of it, its caller does
    throw;
  }
  const auto failed =
      std::find_if(all.begin(), all.end(), [](const Status& each) { return each.is_ok == 0; });
  const auto differs = first_different(all);
  if (failed == all.end() && differs == all.end()) return;
  const std::vector<std::string> texts = gather_texts(comm, text);
  if (error) std::rethrow_exception(error);
  if (failed != all.end()) {
    const int rank = static_cast<int>(failed - all.begin());
    throw CommunicationError(cat(call, ": rank ", rank, " of ", comm.size(),
                                 " failed: ", texts[static_cast<size_t>(rank)]),
                             comm.in_world(rank));
  }
  const int rank = static_cast<int>(differs - all.begin());
  throw CommunicationError(cat("ranks made different calls: rank 0 called ", texts[0], ", rank ",
                               rank, " called ", texts[static_cast<size_t>(rank)]),
                           comm.in_world(rank));
}

void recover_if_failed(Communicator& comm, std::string_view call) {
  const std::string failure = comm.failure();
  if (failure.empty()) return;
  // Any operation of a failed communicator raises; the barrier has no buffer to lose.
  if (!comm.is_failure_reported()) comm.barrier();
  try {
    comm.recover();
  } catch (const CommunicationError& error) {
    throw CommunicationError(cat(call, ": the ranks do not meet after an earlier failure (",
                                 failure, "): ", error.what()),
                             error.rank(), error.call());
  }
}

std::exception_ptr error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

int64_t agree_min(Communicator& comm, int64_t value) {
  return reduce_value(comm, value, ReduceKind::kMin);
}
int64_t agree_max(Communicator& comm, int64_t value) {
  return reduce_value(comm, value, ReduceKind::kMax);
}
double agree_min(Communicator& comm, double value) {
  return reduce_value(comm, value, ReduceKind::kMin);
}
double agree_max(Communicator& comm, double value) {
  return reduce_value(comm, value, ReduceKind::kMax);
}
bool agree_all(Communicator& comm, bool value) {
  return reduce_value(comm, value, ReduceKind::kMin);
}

void agree_same(Communicator& comm, std::string_view who, std::string_view text) {
  const std::vector<Status> all = gather_values(comm, status_of(true, text));
  const auto differs = first_different(all);
  if (differs == all.end()) return;
  const std::vector<std::string> texts = gather_texts(comm, text);
  const int rank = static_cast<int>(differs - all.begin());
  throw CommunicationError(cat(who, ": the ranks disagree: rank 0 has ", texts[0], ", rank ", rank,
                               " has ", texts[static_cast<size_t>(rank)]),
                           comm.in_world(rank));
}

std::vector<std::string> gather_texts(Communicator& comm, std::string_view text) {
  const std::vector<int64_t> lengths = gather_values(comm, static_cast<int64_t>(text.size()));
  const std::vector<Block> blocks = packed_blocks(lengths);
  const Block& last = blocks.back();
  std::string all(static_cast<size_t>(last.offset + last.bytes), '\0');
  comm.all_gather(text.data(), blocks, all.data());
  std::vector<std::string> texts;
  for (const Block& block : blocks) {
    texts.push_back(
        all.substr(static_cast<size_t>(block.offset), static_cast<size_t>(block.bytes)));
  }
  return texts;
}

std::string broadcast_text(Communicator& comm, std::string_view text, int root) {
  // Short texts, as most are, go with their length; of longer ones the rest follows.
  struct {
    int64_t length;
    char begin[248];
  } told{static_cast<int64_t>(text.size()), {}};
  text.copy(told.begin, sizeof told.begin);
  comm.broadcast(&told, sizeof told, root);
  constexpr auto kShort = static_cast<int64_t>(sizeof told.begin);
  if (told.length < 0) {
    throw CommunicationError(cat("broadcast_text: rank ", root, " told ", told.length, " bytes"),
                             comm.in_world(root));
  }
  if (told.length <= kShort) return {told.begin, static_cast<size_t>(told.length)};
  std::string result(text);
  result.resize(static_cast<size_t>(told.length));
  comm.broadcast(result.data() + kShort, told.length - kShort, root);
  result.replace(0, sizeof told.begin, told.begin, sizeof told.begin);
  return result;
}

void prepare_together(Communicator& comm, std::string_view call,
                      const std::function<void()>& prepare) {
  const Communicator::Use use(comm, call);
  recover_if_failed(comm, call);
  settle(comm, call, error_of([&] {
           comm.check_gpu();
           prepare();
         }));
}

void run_together(Communicator& comm, std::string_view call, const std::function<void()>& prepare,
                  const std::function<void()>& body) {
  const Communicator::Use use(comm, call);
  prepare_together(comm, call, prepare);
  std::exception_ptr error = error_of([&] {
    body();
    comm.check_gpu();
  });
  if (error) {
    error = comm.cause_of(error);
    // When the failure came from another rank it is known already and `abort` changes nothing.
    comm.abort_for(blamed_by(error).value_or(-1), cat(call, ": ", message_of(error)));
    std::rethrow_exception(error);
  }
  try {
    settle(comm, call, nullptr);
  } catch (const CommunicationError& closing) {
    throw CommunicationError(cat(call, ": the call did not finish on all ranks: ", closing.what()),
                             closing.rank(), closing.call());
  }
}

}  // namespace cuop::dist
