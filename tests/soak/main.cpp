// soak: long fp16 training runs on the host target.  See soak.h.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/command_line.h"
#include "support/program.h"
#include "tests/soak/memory_use.h"
#include "tests/soak/soak.h"

namespace mptest {
namespace {

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
    for (const SoakProgram &program : programs_) soak(program, warm, [](int64_t) {});
    const MemoryUse before = memory_use();
    for (const SoakProgram &program : programs_) run_program(program);
    compare_memory(before, memory_use());
  }

  void run_program(const SoakProgram &program) {
    const std::string name = program.program.scaler_name + " + " + program.program.rule_name;
    const SoakResult r = soak(program, plan(), [&](int64_t done) {
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
      size_t program;
      const char *sentence;
    };
    constexpr int64_t kResumes = 5;  // enough to show growth of memory
    constexpr size_t kAdam = 1, kRoundedAtRandom = 5;
    constexpr Mistake kMistakes[] = {
        {"growth_tracker", Sabotage::tracker, kAdam, "after it is restored, first in byte 12 "},
        {"t of the optimizer", Sabotage::counter, kAdam,
         "after it is restored, first in byte 120 "},
        {"master weight", Sabotage::weight, kAdam, "after it is restored, first in byte 128 "},
        {"moment", Sabotage::moment, kAdam, "after it is restored, first in byte 2816 "},
        {"16-bit copy", Sabotage::copy, kRoundedAtRandom, "after it is restored, first in byte "},
        {"overflow that is not predicted", Sabotage::skip, kAdam, "step 1: it was skipped"},
        {"leak", Sabotage::leak, kAdam, "growth of memory, in blocks, is "}};
    for (const Mistake &mistake : kMistakes) {
      SoakPlan plan = this->plan();
      plan.sabotage = mistake.sabotage;
      plan.steps = std::max(plan.steps, kResumes * plan.resume_every);
      const std::string failure = soak(programs_[mistake.program], plan, [](int64_t) {}).failure;
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
