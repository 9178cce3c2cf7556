// Reports how far each rank has come in a step in which one of them fails.
//
// A rank that waits in a collective cannot report.  A separate thread reports for it when the call
// has taken a second.  A thread of rank 0 receives the reports of all ranks, prints them in order,
// and ends the job with the code kReported.
#pragma once

#include <mpi.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "mpcore.h"
#include "options.h"

namespace mptest {

/// Log of one rank, on stderr and in a separate file: mpirun may lose output printed right before
/// MPI_Abort.
class Log {
 public:
  explicit Log(std::filesystem::path path) : path_(std::move(path)) {
    std::filesystem::remove(path_);
  }

  /// Thread-safe.
  void tell(const std::string &line) const {
    std::ofstream(path_, std::ios::app) << line + '\n' << std::flush;
    std::fprintf(stderr, "%s\n", line.c_str());
  }

 private:
  std::filesystem::path path_;
};

enum Call { kReduce, kStep };
constexpr std::array<const char *, 2> kCallNames = {"mp_grads_all_reduce", "mp_scale_step"};

class ProgressReporter {
 public:
  /// @param comm       contains all ranks; used by the reporters only
  /// @param on_report  called once before this rank reports, on any thread
  ProgressReporter(MPI_Comm comm, const Log &log, std::function<void()> on_report)
      : comm_(comm), log_(log), on_report_(std::move(on_report)) {
    MPI_Comm_rank(comm_, &report_.rank);
    report_.outcomes.fill(kNotReached);
    std::thread(&ProgressReporter::watch, this).detach();
    if (report_.rank == 0) std::thread(&ProgressReporter::hear_all, this).detach();
  }
  ~ProgressReporter() = delete;  // ends the job
  ProgressReporter(const ProgressReporter &) = delete;
  ProgressReporter &operator=(const ProgressReporter &) = delete;

  void enter(Call call) {
    const std::lock_guard lock(mutex_);
    is_inside_ = true;
    report_.outcomes[call] = kWaits;
    changed_.notify_all();
  }

  void leave(Call call, mp_status_t status) {
    const std::lock_guard lock(mutex_);
    is_inside_ = false;
    report_.outcomes[call] = status;
    changed_.notify_all();
  }

  /// Reports that this rank has finished; does not return.
  [[noreturn]] void finish() {
    std::unique_lock lock(mutex_);
    report();
    changed_.wait(lock, [] { return false; });
    std::abort();
  }

 private:
  static constexpr std::chrono::milliseconds kPatience{1000};
  static constexpr int kTag = 1;

  enum Outcome : int { kNotReached = -2, kWaits = -1 };  // or a status
  struct Report {
    int rank;
    std::array<int, 2> outcomes;
  };

  void watch() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return is_inside_; });
      if (!changed_.wait_for(lock, kPatience, [&] { return !is_inside_; })) return report();
    }
  }

  void hear_all() {
    int ranks = 0;
    MPI_Comm_size(comm_, &ranks);
    std::vector<Report> reports(static_cast<size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank)
      MPI_Recv(&reports[static_cast<size_t>(rank)], sizeof(Report), MPI_BYTE, rank, kTag, comm_,
               MPI_STATUS_IGNORE);
    for (const Report &report : reports) {
      std::string line = "rank " + std::to_string(report.rank) + ":";
      for (size_t call = 0; call < kCallNames.size(); ++call) {
        const int outcome = report.outcomes[call];
        if (outcome == kNotReached) continue;
        line += std::string(call > 0 ? ", " : " ") + kCallNames[call] + " ";
        line += outcome == kWaits ? "waits" : mp_status_string(static_cast<mp_status_t>(outcome));
      }
      log_.tell(line);
    }
    MPI_Abort(MPI_COMM_WORLD, kReported);
  }

  void report() {
    if (std::exchange(has_reported_, true)) return;
    on_report_();
    MPI_Send(&report_, sizeof report_, MPI_BYTE, 0, kTag, comm_);
  }

  MPI_Comm comm_;
  const Log &log_;
  std::function<void()> on_report_;
  Report report_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_inside_ = false, has_reported_ = false;
};

}  // namespace mptest
