#include "progress_reporter.h"

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace mptest {

namespace {

constexpr std::chrono::milliseconds kPatience{1000};
constexpr int kTag = 1;

}  // namespace

ProgressReporter::ProgressReporter(MPI_Comm comm, const Log &log, std::function<void()> on_report)
    : comm_(comm), log_(log), on_report_(std::move(on_report)) {
  MPI_Comm_rank(comm_, &report_.rank);
  report_.outcomes.fill(kNotReached);
  std::thread(&ProgressReporter::watch, this).detach();
  if (report_.rank == 0) std::thread(&ProgressReporter::hear_all, this).detach();
}

void ProgressReporter::enter(Call call) {
  const std::lock_guard lock(mutex_);
  is_inside_ = true;
  report_.outcomes[call] = kWaits;
  changed_.notify_all();
}

void ProgressReporter::leave(Call call, mp_status_t status) {
  const std::lock_guard lock(mutex_);
  is_inside_ = false;
  report_.outcomes[call] = status;
  changed_.notify_all();
}

void ProgressReporter::finish() {
  std::unique_lock lock(mutex_);
  report();
  changed_.wait(lock, [] { return false; });
  std::abort();
}

void ProgressReporter::watch() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_inside_; });
    if (!changed_.wait_for(lock, kPatience, [&] { return !is_inside_; })) return report();
  }
}

void ProgressReporter::report() {
  if (std::exchange(has_reported_, true)) return;
  on_report_();
  MPI_Send(&report_, sizeof report_, MPI_BYTE, 0, kTag, comm_);
}

void ProgressReporter::hear_all() {
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

}  // namespace mptest
