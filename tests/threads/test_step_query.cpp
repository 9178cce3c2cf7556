// Tests of mp_scaler_query_step while another thread steps: the answer is correct at every moment.
#include <array>
#include <atomic>
#include <charconv>
#include <string>
#include <string_view>

#include "gang.h"
#include "tests/step/step_fixtures.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

constexpr int kAskers = 4;
constexpr int64_t kSteps = 3000;
constexpr int64_t kDepth = MP_SCALER_QUERY_DEPTH;

bool is_to_overflow(int64_t step) {
  return Random(static_cast<uint64_t>(step)).integer(0, 3) == 0;
}

mp_step_outcome_t wanted_of(int64_t step) {
  return is_to_overflow(step) ? MP_STEP_OUTCOME_OVERFLOW : MP_STEP_OUTCOME_TAKEN;
}

/// A scaler that one thread steps, with the number of completed steps.
class Stepped {
 public:
  mp_scaler_t get() const { return scaler_.get(); }
  int64_t done() const { return done_; }

  /// Contains no test macros, like all functions of this class.
  bool step() {
    const float flag = is_to_overflow(done_ + 1) ? 1.0f : 0.0f;
    *mp_scaler_get_found_inf_address(get()) = flag;
    if (mp_scaler_update(get(), nullptr, kStream) != MP_SUCCESS) return false;
    ++done_;
    return true;
  }
  bool restore_itself() {
    auto state = initialized<mp_scaler_state_t>();
    return mp_scaler_get_state_sync(get(), &state, kStream) == MP_SUCCESS &&
           mp_scaler_set_state_sync(get(), &state, kStream) == MP_SUCCESS;
  }

 private:
  UniqueScaler scaler_ = make_scaler(mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF));
  std::atomic<int64_t> done_ = 0;
};

/// Counts of one thread's answers, by kind.
struct Answers {
  int64_t pending = 0, taken = 0, skipped = 0, forgotten = 0;
  std::string wrong;

  void ask(const Stepped &stepped, int64_t step, bool may_be_restored) {
    const int64_t before = stepped.done();
    mp_step_outcome_t outcome = MP_STEP_OUTCOME_PENDING;
    const mp_status_t status = mp_scaler_query_step(stepped.get(), step, &outcome);
    const int64_t after = stepped.done();
    if (status == MP_ERROR_NOT_FOUND) {
      ++forgotten;
      // The outcome may be known for one step more than `after`.
      if (!may_be_restored && after + 1 - step < kDepth) note(step, before, after, "forgotten");
      return;
    }
    if (status != MP_SUCCESS) return note(step, before, after, "an error");
    if (outcome == MP_STEP_OUTCOME_PENDING) {
      ++pending;
      if (step <= before) note(step, before, after, "pending");
      return;
    }
    ++(outcome == MP_STEP_OUTCOME_TAKEN ? taken : skipped);
    if (outcome != wanted_of(step)) note(step, before, after, "another outcome");
    if (step > after + 1) note(step, before, after, "known before it is done");
  }

 private:
  void note(int64_t step, int64_t before, int64_t after, const char *what) {
    wrong = "step " + std::to_string(step) + " is " + what + ", with " + std::to_string(before) +
            " to " + std::to_string(after) + " done";
  }
};

/// The first thread steps; the others query until it has finished.
std::array<Answers, kAskers> ask_meanwhile(Stepped &stepped, const std::function<bool()> &step,
                                           bool may_be_restored) {
  std::array<Answers, kAskers> answers;
  std::atomic<bool> is_over = false, has_failed = false;
  together(1 + kAskers, [&](int thread) {
    if (thread == 0) {
      while (stepped.done() < kSteps && !has_failed) {
        has_failed = !step();
        if (stepped.done() % 16 == 0) std::this_thread::yield();  // works on a single core too
      }
      is_over = true;
      return;
    }
    Random random(static_cast<uint64_t>(thread));
    while (!is_over) {
      // Most queries are about the newest steps, some about the ones just forgotten.
      const int64_t back = random.integer(0, 7) == 0 ? random.integer(kDepth - 20, kDepth + 20)
                                                     : random.integer(-2, 30);
      const int64_t step = std::max<int64_t>(stepped.done() - back, 1);
      answers[static_cast<size_t>(thread - 1)].ask(stepped, step, may_be_restored);
    }
  });
  CHECK_FALSE(has_failed);
  return answers;
}

/// Counts how often each step was logged.
class LoggedSteps {
 public:
  LoggedSteps() { mp_set_log_callback(hear, this, MP_LOG_INFO); }
  ~LoggedSteps() { quiet_log(); }
  int64_t lines() const { return lines_; }
  int64_t wrong() const { return wrong_; }

 private:
  static void hear(mp_log_level_t, const char *text, void *user) {
    constexpr std::string_view kStart = "mp_scaler_query_step: overflow in step ";
    auto &self = *static_cast<LoggedSteps *>(user);
    const std::string_view line = text;
    if (!line.starts_with(kStart)) return;
    int64_t step = 0;
    std::from_chars(line.data() + kStart.size(), line.data() + line.size(), step);
    ++self.lines_;
    const bool is_known = step >= 1 && step <= kSteps && is_to_overflow(step);
    self.wrong_ += !is_known || self.times_[static_cast<size_t>(step)]++ > 0;
  }

  std::array<std::atomic<int>, kSteps + 1> times_{};
  std::atomic<int64_t> lines_ = 0, wrong_ = 0;
};

}  // namespace

TEST_CASE("threads: outcomes of thousands of steps are correct for concurrent queries",
          "[threads][query]") {
  Stepped stepped;
  const LoggedSteps logged;
  Answers all;
  for (const Answers &answers : ask_meanwhile(
           stepped, [&] { return stepped.step(); }, false)) {
    CHECK(answers.wrong == "");
    all.pending += answers.pending;
    all.taken += answers.taken;
    all.skipped += answers.skipped;
    all.forgotten += answers.forgotten;
  }
  CHECK(all.pending > 0);
  CHECK(all.taken > 0);
  CHECK(all.skipped > 0);
  CHECK(all.forgotten > 0);
  CHECK(logged.lines() > 0);
  CHECK(logged.wrong() == 0);
  int64_t skipped = 0;
  for (int64_t step = 1; step <= kSteps; ++step) skipped += is_to_overflow(step);
  CHECK(state_of(stepped.get()).skipped == skipped);
}

TEST_CASE("threads: a step with a known outcome is not pending after a restore",
          "[threads][query]") {
  Stepped stepped;
  const auto step = [&] {
    constexpr int64_t kRestoredEvery = 5;
    if (!stepped.step()) return false;
    return stepped.done() % kRestoredEvery != 0 || stepped.restore_itself();
  };
  int64_t known = 0, forgotten = 0;
  for (const Answers &answers : ask_meanwhile(stepped, step, true)) {
    CHECK(answers.wrong == "");
    known += answers.taken + answers.skipped;
    forgotten += answers.forgotten;
  }
  CHECK(known > 0);
  CHECK(forgotten > 0);
}
