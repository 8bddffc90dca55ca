#include "cuop/dist/comm/fabric_guard.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::dist::fabric {

std::optional<Abandonment> Guard::reason() const {
  {
    const std::lock_guard lock(mutex_);
    if (reason_) return reason_;
  }
  const auto* const owner = static_cast<const FlagPage::Owner*>(page_->data());
  const uint32_t word = owner->tainted.load();
  return word == 0 ? std::nullopt : std::optional(told_by(*owner, word, size_));
}

Abandonment told_by(const FlagPage::Owner& owner, uint32_t word, int ranks) {
  const auto [blamed, teller] = FlagPage::Word::from(word);
  const std::string text = teller < ranks ? FlagPage::text_of(FlagPage::from(owner, teller)) : "";
  return {blamed, false,
          cat("cannot go on: ", text.empty() ? cat("rank ", blamed, " failed") : text)};
}

void Guard::check() {
  if (is_forgotten_) return;
  const std::optional<Abandonment> found = reason();
  if (!found) return;
  was_raised_ = true;
  if (is_over_) guards().remove(this);
  throw CommunicationError(cat("stream: work on ", device_, " means nothing: ", "rank ", rank_,
                               " of ", size_, ' ', found->text),
                           found->rank);
}

void Guard::spoil(const Abandonment& reason) {
  const std::lock_guard lock(mutex_);
  if (!reason_) reason_ = reason;
}

void Guard::end() {
  is_over_ = true;
  if (is_forgotten_ || was_raised_ || !reason()) guards().remove(this);
}

}  // namespace cuop::dist::fabric
