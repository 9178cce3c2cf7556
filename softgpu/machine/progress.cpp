#include "softgpu/machine/progress.h"

#include <algorithm>
#include <limits>

namespace softgpu {
namespace {

constexpr uint64_t kHasEnded = std::numeric_limits<uint64_t>::max();

}  // namespace

void Progress::stop(State state) {
  State runs = State::kRuns;
  state_.compare_exchange_strong(runs, state);
}

void Progress::fail() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kRuns) return;
  failure_ = std::current_exception();
  stop(State::kFailed);
}

void Progress::rethrow() const {
  if (failure_) std::rethrow_exception(failure_);
}

bool Progress::are_all_stuck(int worker, uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  stuck_at_[static_cast<size_t>(worker)] = epoch;
  return epoch == epoch_ && std::ranges::all_of(stuck_at_, [&](uint64_t at) {
           return at == epoch || at == kHasEnded;
         });
}

void Progress::note_end(int worker) {
  const std::lock_guard lock(mutex_);
  stuck_at_[static_cast<size_t>(worker)] = kHasEnded;
}

}  // namespace softgpu
