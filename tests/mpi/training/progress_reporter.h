// Reports how far each rank has come in a step in which one of them fails.
//
// A rank that waits in a collective cannot report.  A separate thread reports for it when the call
// has taken a second.  A thread of rank 0 receives the reports of all ranks, prints them in order,
// and ends the job with the code kReported.
#pragma once

#include <mpi.h>

#include <array>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "log.h"
#include "mpcore.h"
#include "options.h"

namespace mptest {

enum Call { kReduce, kStep };
constexpr std::array<const char *, 2> kCallNames = {"mp_grads_all_reduce", "mp_scale_step"};

class ProgressReporter {
 public:
  /// @param comm       contains all ranks; used by the reporters only
  /// @param on_report  called once before this rank reports, on any thread
  ProgressReporter(MPI_Comm comm, const Log &log, std::function<void()> on_report);
  ~ProgressReporter() = delete;  // ends the job
  ProgressReporter(const ProgressReporter &) = delete;
  ProgressReporter &operator=(const ProgressReporter &) = delete;

  void enter(Call call);
  void leave(Call call, mp_status_t status);
  /// Reports that this rank has finished; does not return.
  [[noreturn]] void finish();

 private:
  enum Outcome : int { kNotReached = -2, kWaits = -1 };  // or a status
  struct Report {
    int rank;
    std::array<int, 2> outcomes;
  };

  void watch();
  void hear_all();
  void report();

  MPI_Comm comm_;
  const Log &log_;
  std::function<void()> on_report_;
  Report report_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_inside_ = false, has_reported_ = false;
};

}  // namespace mptest
