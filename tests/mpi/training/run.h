// Training loop of one rank, with its fault.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "faulty_comm.h"
#include "impatient_comm.h"
#include "log.h"
#include "mpcore_mpi.h"
#include "options.h"
#include "progress_reporter.h"
#include "trainer.h"

namespace mptest {

class Run {
 public:
  explicit Run(const Options &options);
  ~Run();
  Run(const Run &) = delete;
  Run &operator=(const Run &) = delete;

  /// Runs the training; ends the job by MPI_Abort after a failed check.
  void run();

 private:
  void resume();
  void take_step(int64_t step);
  bool reduce(const Fault &mine);
  bool update(const Fault &mine);
  bool make_call(Call call, const std::function<mp_status_t()> &function);
  void go_back();
  [[noreturn]] void end_job(const std::string &why, ExitCode code);
  void check_outcome(int64_t step, const Overflow &overflow);
  void require_equal(int64_t step, const char *what, const std::string &mine);
  Fault fault_of(int64_t step) const;
  std::filesystem::path checkpoint_path(int64_t step) const;
  void save(int64_t step);
  /// Last step with a checkpoint of this rank, at most `most`; 0: there is none.
  int64_t last_saved(int64_t most) const;
  void load(int64_t step);
  void tell_end() const;

  Options options_;
  mp_mpi_t mpi_{};
  mp_comm_t comm_ = mp_comm_default();
  int rank_ = 0, ranks_ = 1;
  mptools::Context context_;
  std::optional<Log> log_;
  ImpatientComm impatient_{mpi_};
  std::optional<FaultyComm> faulty_;
  std::optional<Trainer> trainer_;
  std::optional<Tensors> others_;  ///< gradients of another size, for a rank that disagrees
  MPI_Comm progress_comm_ = MPI_COMM_NULL;
  ProgressReporter *progress_ = nullptr;  ///< used in the step of the fault; ends the job
  std::vector<int64_t> losses_;           ///< sum over all ranks, for each step taken here
  int64_t overflows_[4] = {};             ///< count per kind
  int64_t compared_ = 0;
};

}  // namespace mptest
