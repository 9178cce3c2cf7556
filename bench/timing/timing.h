// Time per call of equal calls that follow each other on one stream.
//
// Compared calls are timed interleaved in one process, in another order each round, so that a
// change of clocks affects all of them.  A batch is a sequence of equal calls between two events,
// long enough for the events' resolution.  The result is the median over batches, with quartiles.
// Before a batch the GPU gets work that lasts while the host enqueues it, so that the speed of the
// host does not limit short calls.
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
  /// Work that consumes its input, such as a backward pass that overwrites the tensors it reads.
  /// @param prepare     enqueues untimed work before each batch that makes `most_calls` calls (at
  ///                    least 2) possible
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

/// Times of one call over all batches.
struct Timing {
  double median_us, q1_us, q3_us;
  double enqueue_us;  ///< host time per call; on the host target the entire call
  int64_t batches, calls_per_batch;
  std::optional<GpuLoad> gpu = {};    ///< state during the interleaved measurement
  std::vector<double> batch_us = {};  ///< time per call of each batch, in the order of rounds

  double iqr_us() const { return q3_us - q1_us; }
  /// `amount` per call -> 1e9 of it per second.
  double giga_per_s(double amount) const { return amount / median_us * 1e-3; }
};

/// Returns the times of a call from one value per batch, the median also as the host time.
Timing timing_of(std::vector<double> call_us, int64_t calls_per_batch);

/// Ratio of the times of two interleaved works, one value per round, so that a slowdown of both
/// cancels out.
Quartiles ratio_between(const Timing &one, const Timing &other);

/// Index of the smallest median.
size_t fastest_of(const std::vector<Timing> &timings);

/// Time to spend on a measurement.
struct Pace {
  double warm_up_us;      ///< per work, not timed
  double batch_us;        ///< target
  double budget_us;       ///< per work, for timed batches
  int64_t least_batches;  ///< minimum, even if it exceeds the budget
};

Pace normal_pace(const Machine &machine);
/// Pace for long lists of works.
Pace brief_pace(const Machine &machine);
struct Options;
/// Returns brief_pace() with --quick or --brief, otherwise normal_pace().
Pace pace_of(const Options &options, const Machine &machine);

/// Estimated duration of Stopwatch::time for a work of `flop` operations, for progress reports.
double measuring_us(const Machine &machine, const Pace &pace, double flop);

/// Reads NVML while the GPU works through a queue of about two seconds.
std::optional<GpuState> gpu_state_under(const Machine &machine, const Work &work,
                                        const Timing &timing, const std::string &during);

class Stopwatch {
 public:
  explicit Stopwatch(const Machine &machine);

  /// Times all `works` interleaved: one batch of each per round.
  /// @param other  called once per round, when the device is idle, to time work outside this
  ///               process; may be NULL
  std::vector<Timing> time(const std::vector<Work> &works, const Pace &pace,
                           const std::function<void()> &other = nullptr) const;

  /// Runs `work` alone for `seconds`, so that clocks settle at its power and heat; times the second
  /// half.
  Timing sustain(const Work &work, double seconds) const;

  /// Measures the host time per call of each of `works`, interleaved.  Meanwhile the device has
  /// other work and its queue is never full, so that no call waits.  For calls of many launches,
  /// most_calls() is the number that fits the queue.
  std::vector<Timing> time_host(const std::vector<Work> &works,
                                int64_t batches = kHostBatches) const;

 private:
  static constexpr int64_t kHostBatches = 51;

  struct Batch {
    double call_us, enqueue_us;
  };

  /// @param calls  fewer than work.most_calls()
  Batch run_batch(const Work &work, int64_t calls, double enqueue_us) const;
  /// Repeats `work` for pace.warm_up_us and returns the time of a call at the end.
  Batch warm_up(const Work &work, const Pace &pace) const;
  void keep_busy(double us) const;

  const Machine &machine_;
  Buffer filler_;
  double filler_us_ = 0;
};

}  // namespace mpbench
