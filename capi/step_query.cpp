// mp_scaler_query_step of mpcore/step.h: reads outcomes that the device has written
// (kernels/step/outcome.h).
#include <bit>

#include "capi/check.h"
#include "capi/objects.h"
#include "mpcore.h"

namespace mp {

namespace {

uint64_t load(uint64_t &word) {
  return std::atomic_ref(word).load(std::memory_order_acquire);
}

const char *cause_of(mp_step_outcome_t skip) {
  return skip == MP_STEP_OUTCOME_OVERFLOW   ? "overflow"
         : skip == MP_STEP_OUTCOME_NO_SCALE ? "no usable scale"
                                            : "gradients out of range";
}

}  // namespace

bool OutcomeRing::find(int64_t step, mp_step_outcome_t &outcome) const {
  const auto wanted = static_cast<uint64_t>(step);
  const uint64_t word = load(slot(step).verdict);
  if (step <= forgotten_.load() || word >> 3 > wanted) return false;
  const bool is_known = word >> 3 == wanted;
  outcome = is_known ? static_cast<mp_step_outcome_t>(word & 7) : MP_STEP_OUTCOME_PENDING;
  return true;
}

std::optional<ScaleChange> OutcomeRing::scale_change(int64_t step) const {
  const auto scale_in = [&](uint64_t &word) -> std::optional<float> {
    const uint64_t found = load(word);
    if (found >> 32 != static_cast<uint32_t>(step)) return {};
    return std::bit_cast<float>(static_cast<uint32_t>(found));
  };
  const auto before = scale_in(slot(step).scale);
  if (!before) return {};
  return ScaleChange{*before, scale_in(slot(step).next_scale)};
}

bool OutcomeRing::is_first_occurrence(int64_t step) {
  int64_t told = told_.load();
  while (step > told)
    if (told_.compare_exchange_weak(told, step)) return true;
  return false;
}

// forgotten_ is set first: a recorded step whose outcome is cleared would appear to be pending.
void OutcomeRing::restart(int64_t steps) {
  forgotten_.store(steps);
  for (int64_t i = 0; i < MP_SCALER_QUERY_DEPTH; i++) {
    for (uint64_t *word : {&slot(i).verdict, &slot(i).scale, &slot(i).next_scale})
      std::atomic_ref(*word).store(0);
  }
  told_.store(steps);
}

}  // namespace mp

mp_status_t mp_scaler_query_step(mp_scaler_t scaler, int64_t step, mp_step_outcome_t *outcome) {
  return mp::call(__func__, [&] {
    mp_scaler &s = mp::require_pointer(scaler, "scaler");
    MP_REQUIRE(step >= 1, MP_ERROR_INVALID_ARGUMENT, "step = ", step, " must be at least 1");
    mp_step_outcome_t found;
    mp::require_pointer(outcome, "outcome");
    MP_REQUIRE(s.outcomes->find(step, found), MP_ERROR_NOT_FOUND, "step = ", step,
               " is not recorded: it is ", mp::kOutcomes,
               " or more steps ago, or precedes the restored state");
    *outcome = found;
    if (found < MP_STEP_OUTCOME_SKIPPED || !mp::log_enabled(MP_LOG_INFO)) return;
    const auto scale = s.outcomes->scale_change(step);
    if (!scale || !s.outcomes->is_first_occurrence(step)) return;
    const auto what = [&](auto... after) {
      mp::log(MP_LOG_INFO, "mp_scaler_query_step: ", mp::cause_of(found), " in step ", step, ": S ",
              scale->before, after...);
    };
    scale->after ? what(" -> ", *scale->after) : what();
  });
}
