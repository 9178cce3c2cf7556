// mp_scaler_query_step: outcomes of steps, without waiting for them.
#include <atomic>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "checked_optimizer.h"
#include "tests/support/log_lines.h"

using namespace mptest;

namespace {

constexpr int64_t kDepth = MP_SCALER_QUERY_DEPTH;
const mp_scaler_config_t kBackoff = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
constexpr auto kForgotten =
    static_cast<mp_step_outcome_t>(7);  // not an outcome, but in the range of the enum

/// Waits for all enqueued work, then returns the outcome, or kForgotten.
mp_step_outcome_t query(const UniqueScaler &scaler, int64_t step) {
  require_ok(mp_stream_sync(context(), kStream));
  mp_step_outcome_t outcome = kForgotten;
  const mp_status_t status = mp_scaler_query_step(scaler.get(), step, &outcome);
  if (status != MP_ERROR_NOT_FOUND) require_ok(status);
  return outcome;
}

mp_step_outcome_t outcome_of(bool skipped) {
  return skipped ? MP_STEP_OUTCOME_OVERFLOW : MP_STEP_OUTCOME_TAKEN;
}

/// Takes steps that overflow on request.
struct Steps : StepRun {
  explicit Steps(mp_scaler_policy_t policy = MP_SCALER_POLICY_BACKOFF,
                 const OptimizerSpec &optimizer = momentum_spec())
      : StepRun(with_gradients(optimizer), mp_scaler_config_default(policy)) {}

  static OptimizerSpec with_gradients(OptimizerSpec spec) {
    spec.grads = {{MP_FP16, 9, 1}, {MP_FP32, 0}, {MP_BF16, 3}};
    return spec;
  }

  void step(bool overflow, uint32_t flags = 0) {
    set_grads(1.0);
    if (overflow) run.grads().inject(2, 1, encode(MP_BF16, HUGE_VAL));
    StepRun::step(step_options(flags));
  }

  void update(bool overflow) {
    write_float(mp_scaler_get_found_inf_address(scaler.get()), overflow ? 1.0f : 0.0f);
    require_ok(mp_scaler_update(scaler.get(), nullptr, kStream));
  }
};

/// Lines that mp_scaler_query_step logs.
struct InfoLines : LogLines {
  using LogLines::LogLines;
  std::vector<std::string> get() const { return starting_with("mp_scaler_query_step"); }
};

/// Returns the expected line; without `after` if the step is queried before the update.
std::string overflow_in(int64_t step, float before, std::optional<float> after) {
  const auto shortest = [](float x) {
    char digits[32];
    return std::string(digits, std::to_chars(digits, digits + sizeof digits, x).ptr);
  };
  return "mp_scaler_query_step: overflow in step " + std::to_string(step) + ": S " +
         shortest(before) + (after ? " -> " + shortest(*after) : "");
}

}  // namespace

TEST_CASE("query: every step changes from pending to its outcome, which is logged",
          "[query][short]") {
  for (const mp_scaler_policy_t policy : kScalerPolicies) {
    CAPTURE(policy);
    Steps steps(policy);
    Random random(1);
    InfoLines lines(MP_LOG_INFO);
    std::vector<bool> skipped;
    std::vector<std::string> expected;
    for (int64_t n = 1; n <= 25; ++n) {
      CHECK(query(steps.scaler, n) == MP_STEP_OUTCOME_PENDING);
      skipped.push_back(random.integer(0, 2) == 0);
      const float before = scale_of(steps.scaler);
      steps.step(skipped.back());
      for (int64_t i = n; i >= 1; --i)
        CHECK(query(steps.scaler, i) == outcome_of(skipped[static_cast<size_t>(i - 1)]));
      if (skipped.back()) expected.push_back(overflow_in(n, before, scale_of(steps.scaler)));
    }
    CHECK(lines.get() == expected);
    CHECK(query(steps.scaler, 26 + kDepth) == MP_STEP_OUTCOME_PENDING);
    CHECK(query(steps.scaler, std::numeric_limits<int64_t>::max()) == MP_STEP_OUTCOME_PENDING);
  }
}

TEST_CASE("query: steps of every kind of optimizer have outcomes", "[query][short]") {
  for (const OptimizerSpec &optimizer : all_kinds()) {
    Steps steps(MP_SCALER_POLICY_BACKOFF, optimizer);
    InfoLines lines(MP_LOG_INFO);
    steps.step(true);
    CHECK(query(steps.scaler, 1) == MP_STEP_OUTCOME_OVERFLOW);
    steps.step(false);
    CHECK(query(steps.scaler, 2) == MP_STEP_OUTCOME_TAKEN);
    CHECK(lines.get() == std::vector{overflow_in(1, 65536.0f, 32768.0f)});
  }
}

TEST_CASE("query: only the last MP_SCALER_QUERY_DEPTH outcomes are stored", "[query]") {
  Steps steps;
  const auto overflows = [](int64_t n) { return n % 3 == 0 || n % 7 == 0; };
  const int64_t last = 2 * kDepth + 5;
  for (int64_t n = 1; n <= last; ++n) steps.update(overflows(n));
  int wrong = 0;
  for (int64_t n = 1; n <= last; ++n) {
    const bool remembered = n > last - kDepth;
    wrong += query(steps.scaler, n) != (remembered ? outcome_of(overflows(n)) : kForgotten);
  }
  CHECK(wrong == 0);
  CHECK(query(steps.scaler, last + 1) == MP_STEP_OUTCOME_PENDING);
}

TEST_CASE("query: restoring a state clears stored outcomes", "[query][short]") {
  for (const int64_t restored : {int64_t{0}, int64_t{2}, int64_t{5}, int64_t{4000}}) {
    Steps steps;
    for (int i = 0; i < 5; ++i) steps.step(false);
    mp_scaler_state_t state = state_of(steps.scaler.get());
    state.steps = restored;
    set_state(steps.scaler.get(), state);
    CAPTURE(restored);
    if (restored > 0) CHECK(query(steps.scaler, restored) == kForgotten);
    for (int64_t i = 1; i <= 5; ++i)
      CHECK(query(steps.scaler, restored + i) == MP_STEP_OUTCOME_PENDING);
    steps.step(true);
    CHECK(query(steps.scaler, restored + 1) == MP_STEP_OUTCOME_OVERFLOW);
    CHECK(query(steps.scaler, restored + 2) == MP_STEP_OUTCOME_PENDING);
    CHECK(query(steps.scaler, std::max<int64_t>(restored, 1)) ==
          (restored > 0 ? kForgotten : MP_STEP_OUTCOME_OVERFLOW));
  }
}

TEST_CASE("query: optimizers that share a scaler take one step together", "[query][short]") {
  for (const bool overflow : {false, true}) {
    Steps steps;
    steps.step(overflow, MP_STEP_FLAG_KEEP_SCALER);
    CHECK(query(steps.scaler, 1) == MP_STEP_OUTCOME_PENDING);
    steps.step(false);
    CHECK(query(steps.scaler, 1) == outcome_of(overflow));
    steps.step(false, MP_STEP_FLAG_KEEP_SCALER);
    steps.step(overflow, MP_STEP_FLAG_KEEP_SCALER);
    CHECK(query(steps.scaler, 2) == MP_STEP_OUTCOME_PENDING);
    require_ok(mp_scaler_update(steps.scaler.get(), nullptr, kStream));
    CHECK(query(steps.scaler, 2) == outcome_of(overflow));
  }
}

TEST_CASE("query: a skipped step is logged once, when it is queried", "[query][short]") {
  Steps steps;
  for (const bool overflow : {false, true, false, true}) steps.update(overflow);
  InfoLines lines(MP_LOG_WARN);
  query(steps.scaler, 2);
  lines.listen(MP_LOG_INFO);
  for (const int step : {1, 2, 2, 3, 4, 5, 2, 4}) query(steps.scaler, step);
  const std::string second = "mp_scaler_query_step: overflow in step 2: S 65536 -> 32768";
  const std::string fourth = "mp_scaler_query_step: overflow in step 4: S 32768 -> 16384";
  CHECK(lines.get() == std::vector{second, fourth});

  set_state(steps.scaler.get(), mp_scaler_state_default(&kBackoff));
  steps.update(true);
  query(steps.scaler, 1);
  const std::string first = "mp_scaler_query_step: overflow in step 1: S 65536 -> 32768";
  CHECK(lines.get() == std::vector{second, fourth, first});
}

TEST_CASE("query: S after a pending update is not logged", "[query][short]") {
  Steps steps;
  TensorSet grads({{MP_FP16, 9, 1}}), sums({{MP_FP32, 9}});
  grads.fill(HUGE_VAL);
  const auto accumulate = [&](uint32_t flags) {
    require_ok(
        mp_grads_accumulate(steps.scaler.get(), grads.list(), sums.list(), 1.0f, flags, kStream));
  };
  InfoLines lines(MP_LOG_INFO);
  std::vector<std::string> expected;
  // The second run repeats steps 1 and 2 and must not reuse the log state of the first.
  for (int run = 0; run < 2; ++run) {
    set_state(steps.scaler.get(), mp_scaler_state_default(&kBackoff));
    for (int64_t n = 1; n <= 2; ++n) {
      const bool in_two_calls = n == 2;
      if (in_two_calls) accumulate(MP_ACCUMULATE_FLAG_FIRST);
      accumulate(MP_ACCUMULATE_FLAG_LAST | (in_two_calls ? 0 : MP_ACCUMULATE_FLAG_FIRST));
      expected.push_back(overflow_in(n, scale_of(steps.scaler), std::nullopt));
      query(steps.scaler, n);
      require_ok(mp_scaler_update(steps.scaler.get(), nullptr, kStream));
      query(steps.scaler, n);
    }
  }
  CHECK(lines.get() == expected);
}

TEST_CASE("query: concurrent queries from another thread are correct", "[query]") {
  Steps steps;
  constexpr int64_t kSteps = 300;
  std::atomic<bool> give_up = false;
  int64_t known = 0, wrong = 0;
  std::thread other([&] {
    while (known < kSteps && !give_up) {
      mp_step_outcome_t outcome;
      if (mp_scaler_query_step(steps.scaler.get(), known + 1, &outcome) != MP_SUCCESS) break;
      if (outcome == MP_STEP_OUTCOME_PENDING) continue;
      ++known;
      wrong += outcome != outcome_of(known % 4 == 0);
    }
  });
  for (int64_t n = 1; n <= kSteps; ++n) steps.update(n % 4 == 0);
  give_up =
      query(steps.scaler, kSteps) == MP_STEP_OUTCOME_PENDING;  // otherwise the loop ends by itself
  other.join();
  CHECK(known == kSteps);
  CHECK(wrong == 0);
}
