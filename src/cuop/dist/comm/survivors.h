// Who goes on after a failure: an agreement among ranks some of which may die in the middle of it.
//
// First every rank tells all others that it is here, and waits for each until it is here or gone;
// who is here is its first list. Then the ranks of the list, one after the other, send theirs to
// all, who take it for their own. Ranks that do not end up with the same list after a turn were
// those whose turn it was, or died in it: once one rank has told everybody its list all have the
// same, and the later turns repeat it. So it is agreed on as long as one rank lives.
//
// Example with ranks 0 to 3, of which 3 is dead: 0 dies in its turn after it has sent its list
// {0, 1, 2} to 1. Rank 2 waits for 0 until it hears that it is dead, and keeps its own list
// {0, 1, 2} or {1, 2}. Rank 1 sends {0, 1, 2} in its turn: that is what both go on with, and the
// first call there names rank 0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cuop::dist {

/// What the others have said in the shrinks of one communicator, which are numbered from 1.
class Survivors {
 public:
  /// By rank: whether it goes on.
  using List = std::vector<bool>;

  explicit Survivors(int ranks) : heard_(static_cast<size_t>(ranks)) {}

  void take_here(int src, int64_t shrink);
  /// It has left that shrink before it was agreed on.
  void take_back_here(int src, int64_t shrink);
  /// A text that is no list of as many ranks is not taken.
  void take_list(int src, int64_t shrink, std::string_view text);

  bool is_here(int rank, int64_t shrink) const;
  /// Null until the rank has sent its list.
  const List* list_of(int rank, int64_t shrink) const;

  /// One hexadecimal digit for four ranks, the first one for ranks 0 to 3.
  static std::string text_of(const List& list);

 private:
  struct Heard {
    int64_t here = 0;  // the latest shrink that it has come to
    int64_t listed = 0;
    List list;
  };
  const Heard& of(int rank) const { return heard_[static_cast<size_t>(rank)]; }

  std::vector<Heard> heard_;
};

}  // namespace cuop::dist
