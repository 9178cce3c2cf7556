// A training that is saved as bytes, destroyed and made anew goes on as if nothing had happened:
// every rule with all its options, every policy, saved after any of the first steps.
#include <cstring>

#include "checked_optimizer.h"

using namespace mptest;

namespace {

// ---------------------------------------------------------------------------- what is saved

/// All that a program writes to disk, one thing after the other.
class Checkpoint {
 public:
  template <typename T>
  void save(const T &plain) {
    const auto *const first = reinterpret_cast<const uint8_t *>(&plain);
    bytes_.insert(bytes_.end(), first, first + sizeof plain);
  }
  void save(const std::vector<uint8_t> &bits) {
    bytes_.insert(bytes_.end(), bits.begin(), bits.end());
  }

  template <typename T>
  T restore() {
    T plain;
    const std::vector<uint8_t> bits = restore(sizeof plain);
    std::memcpy(&plain, bits.data(), sizeof plain);
    return plain;
  }
  std::vector<uint8_t> restore(size_t size) {
    REQUIRE(read_ + size <= bytes_.size());
    const auto first = bytes_.begin() + static_cast<ptrdiff_t>(read_);
    read_ += size;
    return {first, first + static_cast<ptrdiff_t>(size)};
  }

  bool operator==(const Checkpoint &other) const { return bytes_ == other.bytes_; }

 private:
  std::vector<uint8_t> bytes_;
  size_t read_ = 0;
};

// ---------------------------------------------------------------------------- a training

struct Program {
  OptimizerSpec optimizer;
  mp_scaler_config_t scaler;
};

class Training {
 public:
  explicit Training(const Program &program)
      : run_(program.optimizer), scaler_(make_scaler(program.scaler)) {
    Random random(1);
    run_.master().upload(real_values(run_.master().specs(), random, 2.0));
    run_.model()->upload(constant_values(run_.model()->specs(), -7.0));
  }

  Training(const Program &program, Checkpoint saved) : Training(program) {
    set_state(scaler_.get(), saved.restore<mp_scaler_state_t>());
    run_.set_t(saved.restore<int64_t>());
    for (TensorSet *set : sets()) set->upload_bits(saved.restore(set->bits().size()));
  }

  Checkpoint checkpoint() {
    Checkpoint saved;
    saved.save(state_of(scaler_.get()));
    saved.save(run_.t());
    for (TensorSet *set : sets()) saved.save(set->bits());
    return saved;
  }

  /// One step of the data that belongs to its number.
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
  /// The 16-bit copy too: a skipped step does not write it.
  std::vector<TensorSet *> sets() {
    std::vector<TensorSet *> all;
    for (TensorSet *set : {&run_.master(), run_.model(), run_.m(), run_.v()}) {
      if (set != nullptr) all.push_back(set);
    }
    return all;
  }

  OptimizerRun run_;
  UniqueScaler scaler_;
};

/// Overflows where anything begins, alone, and more in a row than hysteresis forgives.
const std::string kSequence = "x..x.xxx...x..";

/// Saves after every step; from each of these on, another program must come to the same bytes.
/// @return whether a save was in the middle of a hysteresis
bool check_program(const Program &program, int steps_after) {
  const int steps = static_cast<int>(kSequence.size());
  const auto take = [](Training &training, int number) {
    training.step(number, kSequence[static_cast<size_t>(number)] == 'x');
  };
  Training uninterrupted(program);
  std::vector<Checkpoint> saved = {uninterrupted.checkpoint()};
  bool is_amid_hysteresis = false;
  for (int number = 0; number < steps; ++number) {
    take(uninterrupted, number);
    saved.push_back(uninterrupted.checkpoint());
    const int32_t left = uninterrupted.scaler_state().hysteresis_left;
    is_amid_hysteresis = is_amid_hysteresis || (left > 0 && left < program.scaler.hysteresis);
  }
  for (int cut = 0; cut < steps; ++cut) {
    Training resumed(program, saved[static_cast<size_t>(cut)]);
    CAPTURE(cut);
    CHECK(resumed.checkpoint() == saved[static_cast<size_t>(cut)]);
    for (int number = cut; number < std::min(cut + steps_after, steps); ++number) {
      take(resumed, number);
      CAPTURE(number);
      CHECK(resumed.checkpoint() == saved[static_cast<size_t>(number) + 1]);
    }
  }
  return is_amid_hysteresis;
}

// ---------------------------------------------------------------------------- cases

/// Every preset, and a scale that never changes; with intervals that end within the sequence.
std::vector<mp_scaler_config_t> all_scalers() {
  std::vector<mp_scaler_config_t> scalers = {mp_scaler_config_default(MP_SCALER_STATIC)};
  scalers[0].init_scale = 96.0f;  // with an inexact reciprocal
  for (int preset = MP_SCALER_PRESET_LOGNORMAL; preset <= MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX;
       ++preset) {
    scalers.push_back(mp_scaler_config_preset(static_cast<mp_scaler_preset_t>(preset)));
    scalers.back().growth_interval = 3;
    scalers.back().diverged_after = 2;
    if (scalers.back().hysteresis > 1) scalers.back().hysteresis = 3;
  }
  return scalers;
}

}  // namespace

TEST_CASE("resume: every rule goes on bit for bit", "[step][resume]") {
  const std::vector<mp_scaler_config_t> scalers = all_scalers();
  size_t next = 0;
  for (const OptimizerSpec &rule : all_rules()) {
    const Program program{with_everything(rule), scalers[next++ % scalers.size()]};
    CAPTURE(rule.kind, rule.flags, program.scaler.policy);
    check_program(program, 2);
  }
}

TEST_CASE("resume: every policy goes on bit for bit", "[step][resume][strict]") {
  int amid_hysteresis = 0;
  for (const mp_scaler_config_t &scaler : all_scalers()) {
    CAPTURE(scaler.policy, scaler.hysteresis, scaler.flags);
    OptimizerSpec spec = with_everything(momentum_spec());
    amid_hysteresis += check_program({spec, scaler}, 2);
  }
  CHECK(amid_hysteresis == 3);  // the presets that have one: apex, Megatron, DeepSpeed
}
