#include "cuop/dist/comm/survivors.h"

#include <algorithm>

namespace cuop::dist {

namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr size_t kRanksEach = 4;

}  // namespace

void Survivors::take_here(int src, int64_t shrink) {
  Heard& heard = heard_[static_cast<size_t>(src)];
  heard.here = std::max(heard.here, shrink);
}

void Survivors::take_back_here(int src, int64_t shrink) {
  Heard& heard = heard_[static_cast<size_t>(src)];
  if (heard.here == shrink) heard.here = shrink - 1;
}

void Survivors::take_list(int src, int64_t shrink, std::string_view text) {
  Heard& heard = heard_[static_cast<size_t>(src)];
  const size_t ranks = heard_.size();
  if (shrink <= heard.listed || text.size() != (ranks + kRanksEach - 1) / kRanksEach) return;
  List list(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    const size_t digit = kDigits.find(text[rank / kRanksEach]);
    if (digit == std::string_view::npos) return;
    list[rank] = (digit >> (rank % kRanksEach) & 1) != 0;
  }
  heard.listed = shrink;
  heard.list = std::move(list);
}

/// A rank that has come to a later one has been in this one.
bool Survivors::is_here(int rank, int64_t shrink) const { return of(rank).here >= shrink; }

const Survivors::List* Survivors::list_of(int rank, int64_t shrink) const {
  return of(rank).listed == shrink ? &of(rank).list : nullptr;
}

std::string Survivors::text_of(const List& list) {
  std::string text;
  for (size_t first = 0; first < list.size(); first += kRanksEach) {
    size_t digit = 0;
    for (size_t rank = first; rank < std::min(first + kRanksEach, list.size()); ++rank) {
      digit |= static_cast<size_t>(list[rank]) << (rank - first);
    }
    text += kDigits[digit];
  }
  return text;
}

}  // namespace cuop::dist
