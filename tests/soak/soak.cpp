#include "tests/soak/soak.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>

#include "tests/soak/memory_use.h"

namespace mptest {

namespace {

bool same_bits(float x, float y) {
  return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
}

uint64_t hash_of(const Bytes &bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

/// Offset of the first flipped bit; Training::checkpoint defines the order.
size_t place_of(Sabotage sabotage, const Bytes &saved) {
  switch (sabotage) {
    case Sabotage::tracker:
      return offsetof(mp_scaler_state_t, growth_tracker);
    case Sabotage::counter:
      return sizeof(mp_scaler_state_t);
    case Sabotage::weight:
      return sizeof(mp_scaler_state_t) + sizeof(int64_t);
    case Sabotage::moment:
      return sizeof(mp_scaler_state_t) + sizeof(int64_t) + Network::kSavedBytes;
    default:
      return saved.size() - 1;
  }
}

class Soak {
 public:
  Soak(const SoakProgram &soak, const SoakPlan &plan)
      : soak_(soak),
        plan_(plan),
        model_(soak.model()),
        uninterrupted_(soak.program, &counting_allocator()),
        resumed_(std::make_unique<Training>(soak.program, &counting_allocator())) {}

  SoakResult run(const std::function<void(int64_t)> &progress) {
    constexpr int64_t kProgressEvery = 1000;
    result_.scale = result_.lowest_scale = result_.highest_scale = uninterrupted_.scale();
    for (int64_t n = 1; n <= plan_.steps && result_.failure.empty(); ++n) {
      step(n);
      if (n % plan_.resume_every == 0 || n == plan_.steps) save_and_resume(n);
      if (n % kProgressEvery == 0) progress(n);
    }
    if (result_.failure.empty()) compare_counts();
    return result_;
  }

 private:
  void fail(int64_t number, const std::string &why) {
    if (result_.failure.empty()) result_.failure = "step " + std::to_string(number) + ": " + why;
  }

  void step(int64_t n) {
    const Fault fault = fault_of(plan_.seed, n);
    bool skips = overflows(fault, model_->scale());
    if (skips && plan_.sabotage == Sabotage::skip) skips = false;
    uninterrupted_.step(n, fault);
    resumed_->step(n, fault);
    constexpr float kAboveAllFaults = 16384;  // every step overflows there
    above_all_faults_ += result_.scale > kAboveAllFaults;
    count(fault, skips);
    const mp_step_outcome_t foretold = skips ? MP_STEP_OUTCOME_OVERFLOW : MP_STEP_OUTCOME_TAKEN;
    if (uninterrupted_.outcome(n) != foretold)
      fail(n, skips ? "it was taken, with a gradient that is not finite" : "it was skipped");
    if (resumed_->outcome(n) != foretold) fail(n, "the resumed training has another outcome");
    model_->update(skips, uninterrupted_.scaled_amax());
    const float scale = uninterrupted_.scale();
    if (!same_bits(scale, static_cast<float>(model_->scale())))
      fail(n, "S is " + std::to_string(scale) + ", not " + std::to_string(model_->scale()));
    if (!same_bits(scale, resumed_->scale())) fail(n, "the resumed training has another S");
    result_.lowest_scale = std::min(result_.lowest_scale, scale);
    result_.highest_scale = std::max(result_.highest_scale, scale);
    result_.scale = scale;
  }

  void count(const Fault &fault, bool skips) {
    ++result_.steps;
    result_.applied += !skips;
    result_.injected_infinities += fault.kind == Fault::Kind::infinity;
    result_.injected_nans += fault.kind == Fault::Kind::nan;
    result_.hot_overflows += fault.kind == Fault::Kind::hot && skips;
  }

  /// Destroys the resumed training, including its context, before creating the next one.
  void save_and_resume(int64_t n) {
    {
      const Bytes wanted = uninterrupted_.checkpoint();
      Bytes saved = resumed_->checkpoint();
      compare(n, wanted, saved, "before it is saved");
      if (is_one_of_checkpoint(plan_.sabotage)) saved[place_of(plan_.sabotage, saved)] ^= 1;
      resumed_.reset();
      resumed_ = std::make_unique<Training>(soak_.program, &counting_allocator(), saved);
      compare(n, wanted, resumed_->checkpoint(), "after it is restored");
      result_.hash = hash_of(wanted);
    }
    ++result_.resumes;
    if (plan_.sabotage == Sabotage::leak) leaked_ = new char[64];
    watch_memory();
  }

  /// Called when only the two trainings exist.  The first resumes fill caches.
  void watch_memory() {
    constexpr int64_t kWarm = 3;
    const MemoryUse now = memory_use();
    if (result_.resumes == kWarm) warm_ = now;
    if (result_.resumes < kWarm) return;
    result_.more_blocks = now.blocks - warm_.blocks;
    result_.more_device_bytes = now.device_bytes - warm_.device_bytes;
  }

  static bool is_one_of_checkpoint(Sabotage sabotage) {
    return sabotage != Sabotage::none && sabotage != Sabotage::skip && sabotage != Sabotage::leak;
  }

  void compare(int64_t n, const Bytes &wanted, const Bytes &got, const char *when) {
    if (wanted == got) return;
    const auto at = std::mismatch(wanted.begin(), wanted.end(), got.begin(), got.end()).first;
    fail(n, std::string("the resumed training differs ") + when + ", first in byte " +
                std::to_string(at - wanted.begin()) + " of " + std::to_string(wanted.size()));
  }

  void compare_counts() {
    const mp_scaler_state_t state = uninterrupted_.scaler_state();
    result_.skipped = state.skipped;
    result_.skipped_nan = state.skipped_nan;
    const auto expect = [&](const char *what, int64_t got, int64_t wanted) {
      if (got != wanted)
        fail(plan_.steps,
             std::string(what) + " is " + std::to_string(got) + ", not " + std::to_string(wanted));
    };
    expect("steps", state.steps, result_.steps);
    expect("skipped", state.skipped,
           result_.injected_infinities + result_.injected_nans + result_.hot_overflows);
    // An overflow in the network may become a NaN before it is detected at such a large S.
    const int64_t other_nans = state.skipped_nan - result_.injected_nans;
    if (other_nans < 0 || other_nans > above_all_faults_)
      fail(plan_.steps, "skipped_nan is " + std::to_string(state.skipped_nan) + " with " +
                            std::to_string(result_.injected_nans) + " injected");
    expect("growth of memory, in blocks,", result_.more_blocks, 0);
    expect("growth of device memory", result_.more_device_bytes, 0);
    expect("t of the optimizer", uninterrupted_.applied(), result_.applied);
  }

  const SoakProgram &soak_;
  const SoakPlan plan_;
  std::unique_ptr<upstream::Scaler> model_;
  Training uninterrupted_;
  std::unique_ptr<Training> resumed_;
  SoakResult result_;
  MemoryUse warm_ = {};
  int64_t above_all_faults_ = 0;
  char *leaked_ = nullptr;
};

}  // namespace

SoakResult soak(const SoakProgram &soak, const SoakPlan &plan,
                const std::function<void(int64_t)> &progress) {
  return Soak(soak, plan).run(progress);
}

}  // namespace mptest
