// soak: long fp16 training runs on the host target, one without interruption, and one that is
// repeatedly saved, destroyed and recreated.  They must be bit-identical, and steps must be skipped
// as predicted.
#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/command_line.h"
#include "support/program.h"
#include "tests/soak/memory_use.h"
#include "tests/soak/programs.h"

namespace mptest {
namespace {

/// An injected error, which must be found.
enum class Sabotage {
  none,
  flip,  ///< one bit of each checkpoint
  skip,  ///< one overflow is not predicted
  leak   ///< a block is lost at each resume
};

struct SoakPlan {
  int64_t steps;
  int64_t resume_every;
  uint64_t seed;
  Sabotage sabotage = Sabotage::none;
  size_t flipped = 0;  ///< byte with the flipped bit
};

struct SoakResult {
  int64_t steps = 0;
  int64_t skipped = 0, skipped_nan = 0;
  int64_t injected_infinities = 0, injected_nans = 0, hot_overflows = 0;
  int64_t applied = 0;  ///< t of the optimizer, from predicted skips
  int64_t resumes = 0;
  float lowest_scale = 0, highest_scale = 0, scale = 0;
  /// Growth of memory from an early resume to the last one.
  int64_t more_blocks = 0, more_device_bytes = 0;
  uint64_t hash = 0;    ///< FNV-1a of the last checkpoint
  std::string failure;  ///< empty = none
};

bool same_bits(float x, float y) {
  return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
}

uint64_t hash_of(const Bytes &bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
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
    bool skips = overflows(fault, model_scale_);
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
    model_scale_ = model_(skips, uninterrupted_.scaled_amax());
    const float scale = uninterrupted_.scale();
    if (!same_bits(scale, static_cast<float>(model_scale_)))
      fail(n, "S is " + std::to_string(scale) + ", not " + std::to_string(model_scale_));
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
      if (plan_.sabotage == Sabotage::flip) saved.at(plan_.flipped) ^= 1;
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
  const upstream::Update model_;
  Training uninterrupted_;
  double model_scale_ = uninterrupted_.scale();
  std::unique_ptr<Training> resumed_;
  SoakResult result_;
  MemoryUse warm_ = {};
  int64_t above_all_faults_ = 0;
  char *leaked_ = nullptr;
};

constexpr const char *kDescription =
    "soak trains a small network in fp16 under every policy of the loss scale, with overflows at\n"
    "random steps, once without interruption and once saved, destroyed and resumed again and\n"
    "again.  All bits of both must agree, the skips must be those that were predicted, and memory\n"
    "must not grow.";
constexpr const char *kNotes =
    "Equal options give equal results.\n"
    "Exit code: 0 all is well, 1 something is not, 2 wrong arguments.";

struct Options {
  int64_t steps = 3200;
  int64_t resume_every = 37;
  uint64_t seed = 1;
  bool sabotage = false;
};

Options parse_options(int argc, char **argv) {
  Options options;
  mptools::CommandLine app("soak", kDescription, kNotes);
  mptools::add_integer(app, "--steps", options.steps, int64_t{1},
                       "steps of all trainings together (default 3200)");
  mptools::add_integer(app, "--resume-every", options.resume_every, int64_t{1},
                       "steps between resumes (default 37)");
  mptools::add_integer(app, "--seed", options.seed, uint64_t{0}, "of the overflows (default 1)");
  app.add_flag("--sabotage", options.sabotage,
               "make mistakes on purpose, each of which must be noticed");
  app.parse(argc, argv);
  return options;
}

/// The rounding of an allocation's size depends on the position of its chunk.
constexpr int64_t kMaxAllocatedGrowth = 64 << 10;
/// Pages that the C library keeps.
constexpr int64_t kMaxResidentGrowth = 1 << 20;

class SoakRun {
 public:
  explicit SoakRun(const Options &options) : options_(options), programs_(soak_programs()) {}

  int run() {
    options_.sabotage ? run_sabotage() : run_soak();
    std::printf("%d passed, %d failed\n", passed_, failed_);
    return failed_ > 0 ? 1 : 0;
  }

 private:
  void judge(bool is_well) { ++(is_well ? passed_ : failed_); }

  SoakPlan plan() const {
    const auto count = static_cast<int64_t>(programs_.size());
    return {std::max<int64_t>(options_.steps / count, 1), options_.resume_every, options_.seed};
  }

  void run_soak() {
    // Allocations for the lifetime of the process are complete after this.
    constexpr int64_t kWarmSteps = 1000;
    SoakPlan warm = plan();
    warm.steps = std::min(warm.steps, kWarmSteps / static_cast<int64_t>(programs_.size()));
    for (const SoakProgram &program : programs_) Soak(program, warm).run([](int64_t) {});
    const MemoryUse before = memory_use();
    for (const SoakProgram &program : programs_) run_program(program);
    compare_memory(before, memory_use());
  }

  void run_program(const SoakProgram &program) {
    const std::string name = program.program.scaler_name + " + " + program.program.rule_name;
    const SoakResult r = Soak(program, plan()).run([&](int64_t done) {
      std::fprintf(stderr, "soak: %s: step %" PRId64 " of %" PRId64 "\n", name.c_str(), done,
                   plan().steps);
    });
    judge(r.failure.empty());
    std::printf("%-20s %" PRId64 " steps, %" PRId64 " resumes, %" PRId64 " skipped = %" PRId64
                " inf + %" PRId64 " NaN + %" PRId64
                " too large, S %g in [%g, %g], weights %016" PRIx64 "%s%s\n",
                name.c_str(), r.steps, r.resumes, r.skipped, r.injected_infinities, r.injected_nans,
                r.hot_overflows, double{r.scale}, double{r.lowest_scale}, double{r.highest_scale},
                r.hash, r.failure.empty() ? "" : ": FAILED: ", r.failure.c_str());
    std::fflush(stdout);
  }

  void compare_memory(const MemoryUse &before, const MemoryUse &after) {
    const int64_t blocks = after.blocks - before.blocks;
    const int64_t allocated = after.allocated_bytes - before.allocated_bytes;
    const int64_t resident = after.resident_bytes - before.resident_bytes;
    judge(blocks == 0 && after.device_bytes == 0 && allocated <= kMaxAllocatedGrowth &&
          resident <= kMaxResidentGrowth);
    std::printf("memory: more than before: %" PRId64 " blocks, %" PRId64
                " bytes of malloc, %" PRId64 " resident of %" PRId64 "; %" PRId64
                " of device memory left\n",
                blocks, allocated, resident, after.resident_bytes, after.device_bytes);
  }

  /// Runs each injected error with a training that fails only because of it.
  void run_sabotage() {
    struct Mistake {
      const char *name;
      Sabotage sabotage;
      size_t flipped;
      std::string sentence;
    };
    constexpr int64_t kResumes = 5;  // enough to show growth of memory
    const SoakProgram &adam = programs_[1];
    // capi/optimizer.cpp: header with t; sizes of the four tensors of masters and of two moments;
    // their elements; scaler state.
    constexpr size_t kStep = 24, kMasters = 32 + 3 * 4 * sizeof(int64_t);
    constexpr size_t kListBytes = Network::kNumel * sizeof(float);
    constexpr size_t kScaler = kMasters + 3 * kListBytes;
    std::vector<Mistake> mistakes = {
        {"overflow that is not predicted", Sabotage::skip, 0, "step 1: it was skipped"},
        {"leak", Sabotage::leak, 0, "growth of memory, in blocks, is "}};
    for (const auto &[name, flipped] :
         {std::pair{"growth_tracker", kScaler + offsetof(mp_scaler_state_t, growth_tracker)},
          {"t of the optimizer", kStep},
          {"master weight", kMasters},
          {"moment", kMasters + kListBytes},
          {"running mean", kScaler + sizeof(mp_scaler_state_t)}})
      mistakes.push_back({name, Sabotage::flip, flipped,
                          "after it is restored, first in byte " + std::to_string(flipped) + " "});
    for (const Mistake &mistake : mistakes) {
      SoakPlan plan = this->plan();
      plan.sabotage = mistake.sabotage;
      plan.flipped = mistake.flipped;
      plan.steps = std::max(plan.steps, kResumes * plan.resume_every);
      const std::string failure = Soak(adam, plan).run([](int64_t) {}).failure;
      judge(failure.find(mistake.sentence) != std::string::npos);
      std::printf("mistake: %s: %s\n", mistake.name,
                  failure.empty() ? "NOT NOTICED" : failure.c_str());
    }
  }

  const Options options_;
  const std::vector<SoakProgram> programs_;
  int passed_ = 0, failed_ = 0;
};

}  // namespace
}  // namespace mptest

int main(int argc, char **argv) {
  // Each thread of the host target keeps the memory of its largest launch, and launches are
  // assigned to threads at random.  With a single thread, memory use is exact.
  setenv("MP_HOST_THREADS", "1", 0);
  return mptools::run_program(
      "soak", [&] { return mptest::SoakRun(mptest::parse_options(argc, argv)).run(); });
}
