#include "softgpu/machine/chain.h"

#include <algorithm>
#include <limits>
#include <thread>

#include "softgpu/machine/faults.h"
#include "softgpu/machine/global_races.h"
#include "softgpu/options.h"
#include "softgpu/program/program.h"

namespace softgpu {
namespace {

/// Interval without a seed: the newest grid runs first, except in one round of kHeadStart, because
/// it may be polling for a write of an older grid.
constexpr uint64_t kHeadStart = 64;

/// Mean number of rounds, in seeded runs, for which the same random grid runs first; others may be
/// delayed for long.
constexpr uint64_t kLoyalty = 16;

/// Yields: the progress of a stuck worker depends on other threads, which may need this processor.
void let_others_run() {
  std::this_thread::sleep_for(std::chrono::microseconds(20));
}

}  // namespace

DependentLaunches::DependentLaunches(const Grid &first, int num_workers)
    : num_workers_(num_workers),
      races_(options().checks_races ? std::make_unique<GlobalRaces>() : nullptr),
      progress_(num_workers),
      may_grow_(first.begin_dependent != nullptr) {
  const std::shared_ptr<const Grid> not_owned(std::shared_ptr<void>(), &first);
  launches_.push_back(std::make_shared<Launch>(not_owned, num_workers, races_.get()));
}

DependentLaunches::~DependentLaunches() = default;

std::vector<std::shared_ptr<Launch>> DependentLaunches::begun_since(uint64_t *num_seen) {
  std::vector<std::shared_ptr<Launch>> begun;
  if (*num_seen == num_begun_) return begun;
  const std::lock_guard lock(mutex_);
  const uint64_t first = num_begun_ - launches_.size();
  for (size_t i = 0; i < launches_.size(); i++)
    if (first + i >= *num_seen) begun.push_back(launches_[i]);
  *num_seen = num_begun_;
  return begun;
}

bool DependentLaunches::begin_dependent() {
  if (!may_grow_) return false;
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Launch> last = launches_.back();
  GridState &state = *last->state();
  if (!may_grow_ || !state.allows_dependents()) return false;
  // Null if the launch has ended: nothing can overlap with it.
  std::shared_ptr<const Grid> grid;
  if (!state.has_ended()) grid = last->grid().begin_dependent();
  const bool may_grow = grid != nullptr && grid->begin_dependent != nullptr;
  if (grid) {
    while (!launches_.empty() && launches_.front()->state()->has_ended())
      launches_.erase(launches_.begin());
    if (races_) races_->note_ended(num_begun_ - launches_.size());
    launches_.push_back(
        std::make_shared<Launch>(std::move(grid), num_workers_, races_.get(), last->state()));
    num_begun_++;
  }
  may_grow_ = may_grow;
  state.parks = false;
  progress_.note();
  return true;
}

void DependentLaunches::resolve(uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  if (progress_.epoch() != epoch) return;
  for (const auto &launch : launches_) {
    GridState &state = *launch->state();
    if (!state.parks || state.num_parked == 0) continue;
    state.may_leave = true;
    progress_.note();
    return;
  }
  if (last_resort_ == epoch) return progress_.stop(Progress::State::kDeadlocked);
  last_resort_ = epoch + 1;
  progress_.note();
}

Runner::Runner(DependentLaunches &chain, int index, Worker &worker)
    : chain_(chain), index_(index), worker_(worker) {}

bool Runner::run_for(uint64_t num_instructions) {
  const Progress &progress = chain_.progress();
  const uint64_t before = num_instructions_;
  try {
    while (progress.state() == Progress::State::kRuns) {
      const Round result = round();
      if (result == Round::kEnd) return true;
      if (result == Round::kStuck) return false;
      if (num_instructions_ - before >= num_instructions) return false;
    }
  } catch (...) {
    chain_.progress().fail();
  }
  return true;
}

void Runner::run_to_end() {
  while (!run_for(std::numeric_limits<uint64_t>::max())) let_others_run();
}

Runner::Round Runner::round() {
  const uint64_t epoch = chain_.progress().epoch();
  const bool may_grow = chain_.may_grow();  // if false, join() below includes the last launch
  join();
  if (run_a_share() || unblock_a_share(epoch)) {
    chain_.progress().note();
    return Round::kProgress;
  }
  if (shares_.empty() && !may_grow) {
    chain_.progress().note_end(index_);
    return Round::kEnd;
  }
  if (chain_.progress().are_all_stuck(index_, epoch)) chain_.resolve(epoch);
  return Round::kStuck;
}

/// Joins the launches that have begun.
void Runner::join() {
  for (auto &launch : chain_.begun_since(&num_seen_))
    shares_.push_back(std::make_unique<LaunchPartition>(std::move(launch), index_, worker_));
}

/// Returns the index of the partition that runs first.
size_t Runner::choose_share() {
  if (shares_.size() <= 1) return 0;
  if (options().is_random()) {
    if (num_rounds_++ == 0 || random_below(worker_, kLoyalty) == 0) favourite_ = worker_.random();
    return favourite_ % shares_.size();
  }
  return ++num_rounds_ % kHeadStart == 0 ? 0 : shares_.size() - 1;
}

/// Runs a round of partitions, from the selected one to older ones, until one makes progress or the
/// dependent grid begins.  Returns false if nothing has happened.
bool Runner::run_a_share() {
  const size_t first = choose_share(), n = shares_.size();
  bool any_ended = false, any_ran = false;
  for (size_t i = 0; i < n && !any_ran; i++) {
    LaunchPartition &share = *shares_[(first + n - i) % n];
    const uint64_t progress = share.round();
    any_ran = progress != 0 || chain_.begin_dependent();
    any_ended |= share.has_ended();
    num_instructions_ += progress;
    if (!share.launch().note_instructions(progress))
      chain_.progress().stop(Progress::State::kTooLong);
  }
  if (any_ended) std::erase_if(shares_, [](const auto &share) { return share->has_ended(); });
  return any_ran || any_ended;
}

bool Runner::unblock_a_share(uint64_t epoch) {
  for (const auto &share : shares_)
    if (share->unblock()) return true;
  bool any = false;
  if (chain_.is_last_resort(epoch))
    for (const auto &share : shares_) any |= share->give_up_waits();
  return any;
}

// ---- progress

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
