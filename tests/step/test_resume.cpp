// A training that is saved as bytes, destroyed and created again continues bit for bit: every rule
// with all options, every policy, saved after each of the first steps.
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>

#include "checked_optimizer.h"

using namespace mptest;

namespace {

// ---------------------------------------------------------------------------- saved state

/// A checkpoint, and the 16-bit copies, which it determines but does not contain.
struct Saved {
  std::vector<uint8_t> checkpoint, models;
  bool operator==(const Saved &) const = default;
};

std::vector<uint8_t> save(mp_optimizer_t optimizer, mp_scaler_t scaler) {
  size_t bytes = 0;
  require_ok(mp_optimizer_checkpoint_size(optimizer, scaler, &bytes));
  std::vector<uint8_t> checkpoint(bytes);
  require_ok(mp_optimizer_save_sync(optimizer, scaler, checkpoint.data(), bytes, kStream));
  return checkpoint;
}

// ---------------------------------------------------------------------------- a training

struct Program {
  OptimizerSpec optimizer;
  mp_scaler_config_t scaler;
};

class Training {
 public:
  /// Initializes weights, some of which exceed the range of FP16.
  explicit Training(const Program &program)
      : run_(program.optimizer), scaler_(make_scaler(program.scaler)) {
    Random random(1);
    TensorValues weights = real_values(run_.master().specs(), random, 2.0);
    for (std::vector<double> &tensor : weights)
      if (!tensor.empty()) tensor.back() = 70000.0;
    run_.master().upload(weights);
    require_ok(mp_optimizer_write_model(run_.get(), kStream));
  }

  Training(const Program &program, const Saved &saved) : Training(program) {
    run_.model()->fill(-7.0);
    require_ok(restore(saved.checkpoint));
  }

  mp_status_t restore(const std::vector<uint8_t> &checkpoint) {
    return mp_optimizer_restore_sync(run_.get(), scaler_.get(), checkpoint.data(),
                                     checkpoint.size(), kStream);
  }

  Saved saved() { return {save(run_.get(), scaler_.get()), run_.model()->bits()}; }

  /// Takes step `number`, which determines the data.
  void step(int number, bool overflows) {
    Random random(static_cast<uint64_t>(100 + number));
    TensorValues grads = real_values(run_.grads().specs(), random, std::exp2(random.real(-3, 6)));
    if (overflows) grads.front().back() = number % 2 == 0 ? HUGE_VAL : std::nan("");
    run_.grads().upload(grads);
    run_.extra()->upload(real_values(run_.extra()->specs(), random, 1.0));
    mp_step_options_t options = mp_step_options_default();
    options.max_grad_norm = 0.5f;
    require_ok(mp_scale_step(run_.get(), scaler_.get(), &options, kStream));
  }

  mp_scaler_state_t scaler_state() const { return state_of(scaler_.get()); }

 private:
  OptimizerRun run_;
  UniqueScaler scaler_;
};

/// Overflows in the first step, alone, and more in a row than the hysteresis tolerates.
const std::string kSequence = "x..x.xxx...x..";

/// Saves after every step; from each checkpoint, another program must reach the same bytes.
/// @return whether a checkpoint was taken with the hysteresis partly used
bool check_program(const Program &program, int steps_after) {
  const int steps = static_cast<int>(kSequence.size());
  const auto take = [](Training &training, int number) {
    training.step(number, kSequence[static_cast<size_t>(number)] == 'x');
  };
  Training uninterrupted(program);
  std::vector<Saved> saved = {uninterrupted.saved()};
  bool is_amid_hysteresis = false;
  for (int number = 0; number < steps; ++number) {
    take(uninterrupted, number);
    saved.push_back(uninterrupted.saved());
    const int32_t left = uninterrupted.scaler_state().hysteresis_left;
    is_amid_hysteresis = is_amid_hysteresis || (left > 0 && left < program.scaler.hysteresis);
  }
  for (int cut = 0; cut < steps; ++cut) {
    Training resumed(program, saved[static_cast<size_t>(cut)]);
    CAPTURE(cut);
    CHECK(resumed.saved() == saved[static_cast<size_t>(cut)]);
    for (int number = cut; number < std::min(cut + steps_after, steps); ++number) {
      take(resumed, number);
      CAPTURE(number);
      CHECK(resumed.saved() == saved[static_cast<size_t>(number) + 1]);
    }
  }
  return is_amid_hysteresis;
}

// ---------------------------------------------------------------------------- cases

/// Returns every preset and a static scale, with intervals that end within the sequence.
std::vector<mp_scaler_config_t> all_scalers() {
  std::vector<mp_scaler_config_t> scalers = {mp_scaler_config_default(MP_SCALER_POLICY_STATIC)};
  scalers[0].init_scale = 96.0f;  // its reciprocal is inexact
  for (int preset = MP_SCALER_PRESET_LOGNORMAL; preset <= MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX;
       ++preset) {
    scalers.push_back(mp_scaler_config_preset(static_cast<mp_scaler_preset_t>(preset)));
    scalers.back().growth_interval = 3;
    scalers.back().max_consecutive_skips = 2;
    if (scalers.back().hysteresis > 1) scalers.back().hysteresis = 3;
  }
  return scalers;
}

}  // namespace

TEST_CASE("resume: every rule continues bit for bit", "[step][resume]") {
  const std::vector<mp_scaler_config_t> scalers = all_scalers();
  size_t next = 0;
  for (const OptimizerSpec &rule : all_rules()) {
    for (const uint32_t flags : {0u, uint32_t{MP_OPT_FLAG_STOCHASTIC_ROUNDING}}) {
      Program program{with_everything(rule), scalers[next++ % scalers.size()]};
      program.optimizer.flags |= flags;
      program.optimizer.rounding_seed = 7;
      CAPTURE(rule.kind, program.optimizer.flags, program.scaler.policy);
      check_program(program, 2);
    }
  }
}

TEST_CASE("resume: another training's checkpoint is rejected and changes nothing",
          "[step][resume]") {
  const Program program{with_everything(adamw_spec()), all_scalers()[1]};
  Training training(program), other(program);
  for (int number = 0; number < 3; ++number) training.step(number, number == 1);
  const Saved good = training.saved(), before = other.saved();
  const auto refuses = [&](const std::vector<uint8_t> &bytes, const char *word) {
    CHECK(other.restore(bytes) == MP_ERROR_INVALID_ARGUMENT);
    CHECK(std::string(mp_last_error()).find(word) != std::string::npos);
    CHECK(other.saved() == before);
  };
  for (size_t i = 0; i < 32; ++i) {  // the header
    std::vector<uint8_t> bad = good.checkpoint;
    bad[i] ^= 0x80;
    if (i >= 24 && i != 31) continue;  // a different t is valid
    refuses(bad, i < 24 ? "checkpoint" : "t = ");
  }
  std::vector<uint8_t> bad = good.checkpoint;
  bad[7] = 1;
  refuses(bad, "checkpoint: version = 1: must be 2");
  bad = good.checkpoint;
  bad[32] ^= 1;
  refuses(bad, "master: numel[0] = ");
  bad = good.checkpoint;
  bad.pop_back();
  refuses(bad, "bytes = ");
  bad.resize(good.checkpoint.size() + 1);
  refuses(bad, "bytes = ");
  for (const size_t size : {size_t{0}, size_t{31}}) {
    bad.resize(size);
    refuses(bad, "header");
  }
  bad = good.checkpoint;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(&bad[bad.size() - sizeof(mp_scaler_state_t) + offsetof(mp_scaler_state_t, scale)],
              &nan, sizeof nan);
  refuses(bad, "scale = ");
  CHECK(other.restore(good.checkpoint) == MP_SUCCESS);
  CHECK(other.saved() == good);
}

TEST_CASE("resume: every policy continues bit for bit", "[step][resume][short]") {
  int amid_hysteresis = 0;
  for (const mp_scaler_config_t &scaler : all_scalers()) {
    CAPTURE(scaler.policy, scaler.hysteresis, scaler.flags);
    OptimizerSpec spec = with_everything(momentum_spec());
    amid_hysteresis += check_program({spec, scaler}, 2);
  }
  CHECK(amid_hysteresis == 3);  // the presets with hysteresis: Apex, Megatron, DeepSpeed
}
