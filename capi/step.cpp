// mpcore/step.h: the fused step, two passes over the lists of an optimizer; between them, the
// results of the first are reduced over ranks.  Queries of outcomes that the device has written
// (kernels/step/loss_scale.h).  Unscaling of gradients to fp32, for sums over micro-batches and for
// optimizers of the host program.
#include <bit>

#include "capi/comm.h"
#include "capi/defaults.h"
#include "capi/nvtx_payload.h"
#include "capi/objects.h"

using namespace mp;

namespace {

bool has(const mp_step_options_t &options, mp_step_flags_t flag) {
  return (options.flags & flag) != 0;
}

void check_flags(const mp_step_options_t &options) {
  require_flags(options.flags,
                MP_STEP_FLAG_KEEP_SCALER | MP_STEP_FLAG_UNSCALED | MP_STEP_FLAG_CHECKED |
                    MP_STEP_FLAG_SHARDED | MP_STEP_FLAG_SUM_DENOMINATOR,
                "flags");
  MP_REQUIRE(!has(options, MP_STEP_FLAG_SUM_DENOMINATOR), MP_ERROR_UNSUPPORTED,
             "flags = ", Flags{options.flags},
             ": MP_STEP_FLAG_SUM_DENOMINATOR is not supported by this version");
  MP_REQUIRE(!has(options, MP_STEP_FLAG_SHARDED) || options.comm != nullptr,
             MP_ERROR_INVALID_ARGUMENT, "flags = ", Flags{options.flags},
             ": MP_STEP_FLAG_SHARDED requires options->comm");
}

mp_step_options_t read_options(const mp_step_options_t *user, const mp_scaler &scaler) {
  if (user == nullptr) return {};
  const mp_step_options_t options = read_struct(user, "options");
  check_flags(options);
  MP_REQUIRE(!has(options, MP_STEP_FLAG_UNSCALED) || !needs_amax(scaler), MP_ERROR_INVALID_ARGUMENT,
             "flags = ", Flags{options.flags},
             ": MP_STEP_FLAG_UNSCALED requires the largest scaled gradient, which has not been "
             "measured since the scaler's last update");
  require_zero(options.reserved0, "reserved0");
  MP_REQUIRE(options.max_grad_norm >= 0.0f, MP_ERROR_INVALID_ARGUMENT,
             "max_grad_norm = ", options.max_grad_norm, " is negative or NaN");
  MP_CHECK_FIELDS(require_aligned, options, grad_norm, found_inf, tensor_norms, amax, report,
                  tensor_reports, model_overflows, outcome, rejected_updates);
  MP_CHECK_FIELDS(require_unset, options, skip, norm_limit, denominator);
  MP_REQUIRE(options.amax == nullptr || has(options, MP_STEP_FLAG_CHECKED),
             MP_ERROR_INVALID_ARGUMENT, "amax = ", options.amax,
             " requires MP_STEP_FLAG_CHECKED; without it, the step computes amax");
  // The step clears the scaler's flag at its end, so the flag cannot hold the result.
  MP_REQUIRE(options.found_inf != &scaler.device->found_inf, MP_ERROR_INVALID_ARGUMENT,
             "found_inf = ", options.found_inf, " must not be the flag of the scaler");
  return options;
}

/// Fails if an option requires the pass that MP_STEP_FLAG_CHECKED skips.
void check_checked(const mp_optimizer &optimizer, const mp_scaler &scaler,
                   const mp_step_options_t &options) {
  const auto refuse = [](auto value, const char *name) {
    MP_REQUIRE(
        !value, MP_ERROR_INVALID_ARGUMENT, name, " = ", value,
        " is not supported by MP_STEP_FLAG_CHECKED, which skips the pass over the gradients");
  };
  MP_CHECK_FIELDS(refuse, options, max_grad_norm, grad_norm, tensor_norms, report, tensor_reports);
  MP_REQUIRE(optimizer.tensor_norms == nullptr, MP_ERROR_INVALID_ARGUMENT,
             "max_tensor_norm of a group is not supported by MP_STEP_FLAG_CHECKED, which skips the "
             "pass over the gradients");
  MP_REQUIRE(
      options.amax != nullptr || has(options, MP_STEP_FLAG_KEEP_SCALER) || !needs_amax(scaler),
      MP_ERROR_INVALID_ARGUMENT,
      "amax = NULL, but MP_STEP_FLAG_CHECKED requires it with policy = "
      "MP_SCALER_POLICY_LOGNORMAL or MP_SCALER_POLICY_LOGMAX");
}

/// Arguments of pass 1, of the reduction over ranks, and of pass 2.
struct Passes {
  StatisticsOutputs statistics;
  RankReductionArgs rank_reduction;
  UpdateArgs update;
};

/// Inserts the reduction: pass 2 reads the results of all ranks.  Clipping by a norm that is summed
/// over ranks moves to the reduction.
void plan_rank_reduction(const mp_optimizer &optimizer, const mp_scaler &scaler, bool sums_norms,
                         Passes &passes) {
  StatisticsOutputs &statistics = passes.statistics;
  RankReductionArgs &reduction = passes.rank_reduction;
  UpdateArgs &update = passes.update;
  reduction.message = optimizer.message;
  reduction.found_inf = statistics.found_inf;
  MP_COPY_FIELDS(reduction, update, scaler_amax, grad_amax);
  reduction.scaler = scaler.device;
  update.scaler_amax = &optimizer.message->amax;
  update.grad_amax = &optimizer.message->grad_amax;
  update.rank_code = &optimizer.message->code;
  if (!sums_norms) return;
  reduction.sum_squares = statistics.sum_squares = optimizer.sum_squares;
  reduction.clip = statistics.clip;
  statistics.clip.grad_scale = nullptr;
}

Passes plan(const mp_optimizer &optimizer, const mp_scaler &scaler,
            const mp_step_options_t &options) {
  Passes passes{};
  StatisticsOutputs &statistics = passes.statistics;
  UpdateArgs &update = passes.update;

  statistics.found_inf = &scaler.device->found_inf;
  statistics.amax = optimizer.amax;
  update.scaler = scaler.device;
  update.keep_scaler = has(options, MP_STEP_FLAG_KEEP_SCALER);
  const float *const measured = has(options, MP_STEP_FLAG_CHECKED) ? options.amax : optimizer.amax;
  if (!has(options, MP_STEP_FLAG_UNSCALED)) {
    update.grad_scale = &scaler.device->inv_scale;
    update.scaler_amax = update.grad_amax = measured;
  } else {
    // options.amax is still multiplied by S; these gradients are not.
    (has(options, MP_STEP_FLAG_CHECKED) ? update.scaler_amax : update.grad_amax) = measured;
  }
  update.found_inf = statistics.found_inf;
  update.skipped = options.found_inf;
  MP_COPY_FIELDS(update, options, outcome, rejected_updates, model_overflows);
  update.tensor_norms = statistics.wide_norms = optimizer.tensor_norms;
  MP_COPY_FIELDS(statistics, options, report, tensor_reports);

  if (options.max_grad_norm > 0.0f || options.grad_norm != nullptr ||
      options.tensor_norms != nullptr) {
    statistics.clip = {.scaled_norm = nullptr,
                       .inv_scale = update.grad_scale,
                       .max_norm = options.max_grad_norm,
                       .grad_scale = optimizer.grad_scale,
                       .grad_norm = options.grad_norm,
                       .tensor_norms = options.tensor_norms};
    update.grad_scale = optimizer.grad_scale;
  }
  return passes;
}

void reduce_over_ranks(const mp_optimizer &optimizer, const RankReductionArgs &reduction,
                       const mp_comm_t &comm, mp_stream_t stream) {
  const Context &c = *optimizer.context;
  c.backend.pack_rank_message(c.device, reduction, stream);
  RankMessage *const message = reduction.message;
  ReductionGroup group(comm);
  all_reduce(comm, {&message->code, kRankMaxima, MP_FP32, MP_REDUCE_MAX}, stream);
  if (reduction.sum_squares != nullptr)
    all_reduce(comm, {message->sum_squares, kRankSums, MP_FP32, MP_REDUCE_SUM}, stream);
  group.end();
  c.backend.unpack_rank_message(c.device, reduction, stream);
}

}  // namespace

mp_status_t mp_scale_step(mp_optimizer_t optimizer, mp_scaler_t scaler,
                          const mp_step_options_t *options, mp_stream_t stream) {
  return call(__func__, optimizer, "optimizer", [&](const Context &c, const mp_optimizer &o) {
    MP_REQUIRE(scaler == nullptr || scaler->context == o.context, MP_ERROR_INVALID_ARGUMENT,
               "optimizer and scaler belong to different contexts");
    require_data(o);
    mp_scaler &s = scaler != nullptr ? *scaler : *o.own_scaler;
    const mp_step_options_t read = read_options(options, s);
    const mp_comm_t comm = read.comm != nullptr ? read_comm(read.comm) : default_comm();
    const bool checked = has(read, MP_STEP_FLAG_CHECKED);
    if (checked) check_checked(o, s, read);
    Passes passes = plan(o, s, read);
    const bool has_ranks = comm.world_size > 1;
    const bool sums_norms = has(read, MP_STEP_FLAG_SHARDED) && !checked;
    if (has_ranks) plan_rank_reduction(o, s, sums_norms, passes);

    try {
      if (!checked)
        c.backend.statistics(c.device, o.args.grads, o.desc.grads->scratch, passes.statistics,
                             stream);
      if (has_ranks) reduce_over_ranks(o, passes.rank_reduction, comm, stream);
      c.backend.optimizer_step(c.device, o.args, passes.update, stream);
    } catch (...) {
      // Pass 2, which clears this flag, did not run.  Only callers with a scaler clear it
      // themselves.
      float *const flag = &s.device->found_inf;
      if (scaler == nullptr) c.backend.fill(c.device, flag, 0, sizeof *flag, stream);
      throw;
    }
    const bool has_amax = !checked || read.amax != nullptr;
    s.has_kept_amax = has(read, MP_STEP_FLAG_KEEP_SCALER) && (s.has_kept_amax || has_amax);
  });
}

// ---------------------------------------------------------------------------- outcomes

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
  int64_t logged = logged_.load();
  while (step > logged)
    if (logged_.compare_exchange_weak(logged, step)) return true;
  return false;
}

// forgotten_ is set first: a recorded step whose outcome is cleared would appear to be pending.
void OutcomeRing::restart(int64_t steps) {
  forgotten_.store(steps);
  for (int64_t i = 0; i < MP_SCALER_QUERY_DEPTH; i++) {
    for (uint64_t *word : {&slot(i).verdict, &slot(i).scale, &slot(i).next_scale})
      std::atomic_ref(*word).store(0);
  }
  logged_.store(steps);
}

mp_status_t mp_scaler_query_step(mp_scaler_t scaler, int64_t step, mp_step_outcome_t *outcome) {
  return call(__func__, scaler, "scaler", [&](const Context &, mp_scaler &s) {
    require_positive(step, "step");
    mp_step_outcome_t found;
    require_pointer(outcome, "outcome");
    MP_REQUIRE(s.outcomes->find(step, found), MP_ERROR_NOT_FOUND, "step = ", step,
               " is not recorded: it is ", kOutcomes,
               " or more steps ago, or precedes the restored state");
    *outcome = found;
    if (found < MP_STEP_OUTCOME_SKIPPED || !log_enabled(MP_LOG_INFO)) return;
    const auto scale = s.outcomes->scale_change(step);
    if (!scale || !s.outcomes->is_first_occurrence(step)) return;
    const auto what = [&](auto... after) {
      log(MP_LOG_INFO, "mp_scaler_query_step: ", cause_of(found), " in step ", step, ": S ",
          scale->before, after...);
    };
    scale->after ? what(" -> ", *scale->after) : what();
  });
}

// ---------------------------------------------------------------------------- unscaling to fp32

namespace {

void accumulate(mp_scaler_t handle, mp_tensor_list_t grads, mp_tensor_list_t sums,
                const char *sums_name, float weight, uint32_t flags, mp_stream_t stream) {
  mp_scaler &scaler = require_pointer(handle, "scaler");
  const mp_tensor_list &from = require_pointer(grads, "grads");
  const mp_tensor_list &to = require_pointer(sums, sums_name);
  require_parallel(from, "grads", to, sums_name);
  MP_REQUIRE(scaler.context == from.context, MP_ERROR_INVALID_ARGUMENT,
             "scaler and grads belong to different contexts");
  require_fp32(to, sums_name);
  require_data(from, "grads");
  require_writable(to, sums_name);
  require_finite(weight, "weight");
  require_flags(flags, MP_ACCUMULATE_FLAG_FIRST | MP_ACCUMULATE_FLAG_LAST, "flags");

  const Context &c = *scaler.context;
  c.backend.accumulate(c.device,
                       {.in = from.device,
                        .out = to.device,
                        .inv_scale = &scaler.device->inv_scale,
                        .weight = weight,
                        .first = (flags & MP_ACCUMULATE_FLAG_FIRST) != 0,
                        .last = (flags & MP_ACCUMULATE_FLAG_LAST) != 0,
                        .found_inf = &scaler.device->found_inf,
                        .scaler = scaler.device,
                        .blocks_done = from.scratch.blocks_done},
                       stream);
  scaler.has_kept_amax = true;
}

}  // namespace

mp_status_t mp_grads_accumulate(mp_scaler_t scaler, mp_tensor_list_t grads, mp_tensor_list_t sums,
                                float weight, uint32_t flags, mp_stream_t stream) {
  return call(__func__, nvtx_payload(grads),
              [&] { accumulate(scaler, grads, sums, "sums", weight, flags, stream); });
}

mp_status_t mp_grads_to_fp32(mp_scaler_t scaler, mp_tensor_list_t grads, mp_tensor_list_t out,
                             mp_stream_t stream) {
  return call(__func__, nvtx_payload(grads), [&] {
    accumulate(scaler, grads, out, "out", 1.0f, MP_ACCUMULATE_FLAG_FIRST | MP_ACCUMULATE_FLAG_LAST,
               stream);
  });
}
