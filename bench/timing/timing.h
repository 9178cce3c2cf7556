// How long a call takes when such calls follow each other on one stream.
//
// Rules.  Whatever is compared is timed in turns in one process, each round in another order, so
// that a change of clocks meets all of it.  A batch is a run of equal calls between two events, long enough for
// their resolution; the figure is the median over batches, with its quartiles.  Before a batch the
// GPU gets work that lasts while the host enqueues it, so that short calls are not measured at the
// speed of the host.
// Source: CUTLASS, "GEMM performance measurement methodology guidelines".
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpu_watch.h"
#include "machine.h"
#include "quartiles.h"

namespace mpbench {

/// Enqueues one call on the machine's stream.
class Work {
 public:
  template <typename Call>
  requires std::is_invocable_v<Call &> Work(Call call) : call_(std::move(call)) {}
  /// For calls that use up what they find, such as a backward pass that overwrites what it reads.
  /// @param prepare     enqueues what makes `most_calls` calls, at least 2, possible; it comes before each
  ///                    batch and is not timed
  Work(std::function<void()> call, std::function<void()> prepare, int64_t most_calls)
      : call_(std::move(call)), prepare_(std::move(prepare)), most_calls_(most_calls) {}

  void operator()() const { call_(); }
  void prepare() const {
    if (prepare_) prepare_();
  }
  int64_t most_calls() const { return most_calls_; }

 private:
  std::function<void()> call_, prepare_;
  int64_t most_calls_ = std::numeric_limits<int64_t>::max();
};

/// Of one call, over all batches.
struct Timing {
  double median_us, q1_us, q3_us;
  double enqueue_us;  ///< time that the host spends in the call; on the host target all of it
  int64_t batches, calls_per_batch;
  std::optional<GpuLoad> gpu = {};    ///< meanwhile: while all that took turns was timed
  std::vector<double> batch_us = {};  ///< of one call, by batch, in the order of the rounds

  double iqr_us() const { return q3_us - q1_us; }
  /// `amount` per call -> 1e9 of it per second.
  double giga_per_s(double amount) const { return amount / median_us * 1e-3; }
};

/// Times of one / times of the other, of two that took turns: a ratio for each round, so that what slows down
/// both for a while is in neither.
Quartiles ratio_between(const Timing &one, const Timing &other);

/// Index of the least median.
size_t fastest_of(const std::vector<Timing> &timings);

/// How much time to spend.
struct Pace {
  double warm_up_us;      ///< per work, not timed
  double batch_us;        ///< aimed at
  double budget_us;       ///< per work, for timed batches
  int64_t least_batches;  ///< at least so many, also beyond the budget
};

Pace normal_pace(const Machine &machine);
/// For lists of many works.
Pace brief_pace(const Machine &machine);
struct Options;
/// The brief one with --quick or --brief.
Pace pace_of(const Options &options, const Machine &machine);

/// About how long Stopwatch::time takes for a work of so many operations; for progress.
double measuring_us(const Machine &machine, const Pace &pace, double flop);

/// NVML is asked while the GPU works through a queue of about two seconds.
std::optional<GpuState> gpu_state_under(const Machine &machine, const Work &work,
                                        const Timing &timing, const std::string &during);

class Stopwatch {
 public:
  explicit Stopwatch(const Machine &machine);

  /// All of `works`, in turns: each has one batch per round.
  /// @param other  called once per round, when the device is idle: what is timed elsewhere has its
  ///               turn then; NULL = nothing is
  std::vector<Timing> time(const std::vector<Work> &works, const Pace &pace,
                           const std::function<void()> &other = nullptr) const;

  /// `work` alone for so long, so that clocks settle as its own power and heat let them; of the second half.
  Timing sustain(const Work &work, double seconds) const;

  /// How long the host spends in a call of each of `works`, in turns.  The device has other work
  /// meanwhile and its queue is never full, so that no call waits; a call of many launches says by its
  /// most_calls() how many fit.
  std::vector<Timing> time_host(const std::vector<Work> &works,
                                int64_t batches = kHostBatches) const;

 private:
  static constexpr int64_t kHostBatches = 51;

  struct Batch {
    double call_us, enqueue_us;
  };

  /// @param calls  fewer than work.most_calls()
  Batch run_batch(const Work &work, int64_t calls, double enqueue_us) const;
  /// Repeats `work` for pace.warm_up_us; what a call costs at the end of it.
  Batch warm_up(const Work &work, const Pace &pace) const;
  void keep_busy(double us) const;

  const Machine &machine_;
  Buffer filler_;
  double filler_us_ = 0;
};

}  // namespace mpbench
