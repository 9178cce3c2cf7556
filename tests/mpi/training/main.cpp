// Trains a model on all ranks of an MPI program, with injected faults.
//
//   mpirun -n 4 build/tests/mpitraining --folder FOLDER --steps 300
//   mpirun -n 4 .../mpitraining --folder FOLDER --fault killed --rank 2 --at 25 --callback 1
//
// Random samples overflow.  After every step the ranks compare their states bit by bit; a
// difference ends the job.  At the end every rank has the same checkpoints, for any number of
// ranks. tests/tools/test_mpi_faults.py compares the checkpoint of the last step.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "faulty_comm.h"
#include "impatient_comm.h"
#include "options.h"
#include "progress_reporter.h"
#include "support/command_line.h"
#include "support/program.h"
#include "support/text.h"
#include "trainer.h"

namespace mptest {
namespace {

template <typename T>
T over_ranks(T mine, MPI_Datatype type, MPI_Op op) {
  T all{};
  MPI_Allreduce(&mine, &all, 1, type, op, MPI_COMM_WORLD);
  return all;
}

/// Training loop of one rank, with its fault.
class Run {
 public:
  explicit Run(const Options &options)
      : options_(options), context_(mptools::make_context(MP_DEVICE_HOST)) {
    if (mp_mpi_init(&mpi_, MPI_COMM_WORLD, &comm_) != MPI_SUCCESS)
      throw std::runtime_error("mp_mpi_init has failed.");
    rank_ = comm_.rank;
    ranks_ = comm_.world_size;
    if (kSamples % ranks_ != 0) throw std::runtime_error("the ranks cannot share 16 samples.");
    MPI_Comm_dup(MPI_COMM_WORLD, &progress_comm_);
    const int64_t share = kSamples / ranks_;
    faulty_.emplace(options.gives_up ? impatient_.table(comm_) : comm_);
    trainer_.emplace(context_.get(), rank_ * share, share);
    std::filesystem::create_directories(options.folder);
    log_.emplace(options.folder / mptools::text("told.rank%d", rank_));
  }
  ~Run() {
    MPI_Comm_free(&progress_comm_);
    mp_mpi_free(&mpi_);
  }

  Run(const Run &) = delete;
  Run &operator=(const Run &) = delete;

  /// Runs the training; ends the job by MPI_Abort after a failed check.
  void run() {
    if (options_.resumes) resume();
    while (trainer_->steps() < options_.steps) take_step(trainer_->steps() + 1);
    if (rank_ == 0) tell_end();
  }

 private:
  void resume() {
    const int64_t step = over_ranks(last_saved(options_.steps), MPI_INT64_T, MPI_MIN);
    if (step == 0)
      throw std::runtime_error("there is no step of which all ranks have a checkpoint.");
    load(step);
    if (rank_ == 0)
      log_->tell(mptools::text("resumed from step %lld", static_cast<long long>(step)));
    require_equal(step, "checkpoint", trainer_->checkpoint());
  }

  void take_step(int64_t step) {
    // A fault may end the job; all ranks must have saved the previous step by then.
    if (step == options_.fault.step) MPI_Barrier(MPI_COMM_WORLD);
    const Fault mine = fault_of(step);
    Batch batch = batch_of(step);
    if (mine.kind == Fault::kOtherTarget)
      for (int64_t w = 0; w < kWeights; ++w)
        batch.wanted[static_cast<size_t>(rank_ * kSamples / ranks_ * kWeights + w)] *= -1;
    faulty_->begin_step(mine);
    if (step == options_.fault.step) impatient_.set_patience(std::chrono::milliseconds(300));
    if (options_.on_failure == Options::OnFailure::kReport && step == options_.fault.step)
      progress_ = new ProgressReporter(progress_comm_, *log_, [this] {
        mptools::write_file(options_.folder / mptools::text("stopped.rank%d", rank_),
                            trainer_->weights());
      });

    const int64_t loss = trainer_->compute_gradients(batch);
    if (mine.kind == Fault::kSlow) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    if (mine.kind == Fault::kRaisedFlag)
      *mp_scaler_get_found_inf_address(trainer_->scaler()) = 1.0f;
    const bool is_taken = reduce(mine) && update(mine);
    if (progress_ != nullptr) progress_->finish();
    if (!is_taken) return go_back();

    if (mine.kind == Fault::kFlippedBit) trainer_->master().at<uint32_t>(0)[7] ^= 1;
    check_outcome(step, batch.overflow);
    losses_.push_back(over_ranks(loss, MPI_INT64_T, MPI_SUM));
    ++overflows_[batch.overflow.kind];
    if (step % options_.save_every == 0 || step == options_.steps) save(step);
  }

  bool reduce(const Fault &mine) {
    const bool is_refused = mine.kind == Fault::kRefused && mine.callback < 3;
    const float pre = is_refused ? 0.0f : 1.0f / static_cast<float>(ranks_);
    mp_tensor_list_t grads = trainer_->grads();
    if (mine.kind == Fault::kFewer || mine.kind == Fault::kMore) {
      std::array<int64_t, 2> numels = kNumels;
      int64_t &numel = numels[static_cast<size_t>(mine.callback - 1)];
      numel = mine.kind == Fault::kFewer ? numel / 2 : numel * 2;
      others_.emplace(context_.get(), MP_FP16, numels);
      grads = others_->list();
    }
    return make_call(kReduce, [&] {
      return mp_grads_all_reduce(grads, &faulty_->table(), pre, 1.0f, mptools::kStream);
    });
  }

  bool update(const Fault &mine) {
    mp_step_options_t options = mp_step_options_default();
    const bool is_refused = mine.kind == Fault::kRefused && mine.callback == 3;
    options.max_grad_norm = is_refused ? -1.0f : 1.0f;
    if (options_.fault.kind != Fault::kWithoutComm) options.comm = &faulty_->table();
    if (mine.kind == Fault::kSharded) options.flags = MP_STEP_FLAG_SHARDED;
    return make_call(kStep, [&] { return trainer_->step(options); });
  }

  /// @return whether this rank, and with kRestore every rank, may continue
  bool make_call(Call call, const std::function<mp_status_t()> &function) {
    if (progress_ != nullptr) progress_->enter(call);
    const mp_status_t status = function();
    const std::string sentence = mp_last_error();
    if (progress_ != nullptr) progress_->leave(call, status);
    if (status != MP_SUCCESS)
      log_->tell(mptools::text("rank %d, step %lld: %s", rank_,
                               static_cast<long long>(trainer_->steps() + 1), sentence.c_str()));
    if (options_.on_failure == Options::OnFailure::kRestore)
      return over_ranks<int>(status, MPI_INT, MPI_MAX) == MP_SUCCESS;
    if (status != MP_SUCCESS && options_.on_failure == Options::OnFailure::kAbort)
      MPI_Abort(MPI_COMM_WORLD, status);
    return status == MP_SUCCESS;
  }

  /// Restores the last checkpoint: some ranks may have taken the step, and others not.
  void go_back() {
    const int64_t step = last_saved(options_.fault.step - 1);
    load(step);
    options_.fault = {};
    if (rank_ == 0)
      log_->tell(mptools::text("all ranks go back to step %lld", static_cast<long long>(step)));
  }

  /// Called on all ranks; none of them changes its state afterwards.
  [[noreturn]] void end_job(const std::string &why, ExitCode code) {
    if (rank_ == 0) {
      log_->tell(why);
      MPI_Abort(MPI_COMM_WORLD, code);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    std::abort();
  }

  void check_outcome(int64_t step, const Overflow &overflow) {
    require_equal(step, "weights, moments, t or S", trainer_->weights());
    require_equal(step, "scaler state", trainer_->checkpoint());
    require_equal(step, "outcome", trainer_->outcome());
    if (trainer_->steps() == step && trainer_->was_skipped() == (overflow.kind != Overflow::kNone))
      return;
    end_job(mptools::text("step %lld: another outcome than its overflow has to have",
                          static_cast<long long>(step)),
            kWrongOutcome);
  }

  void require_equal(int64_t step, const char *what, const std::string &mine) {
    const int size = static_cast<int>(mine.size());
    std::string all(mine.size() * static_cast<size_t>(ranks_), '\0');
    MPI_Allgather(mine.data(), size, MPI_BYTE, all.data(), size, MPI_BYTE, MPI_COMM_WORLD);
    ++compared_;
    for (int rank = 1; rank < ranks_; ++rank) {
      const size_t begin = mine.size() * static_cast<size_t>(rank);
      if (all.compare(begin, mine.size(), all, 0, mine.size()) == 0) continue;
      end_job(mptools::text("step %lld: rank %d and rank 0 differ: %s",
                            static_cast<long long>(step), rank, what),
              kRanksDiffer);
    }
  }

  /// Returns the fault of this rank.
  Fault fault_of(int64_t step) const {
    const Fault &fault = options_.fault;
    return fault.rank == rank_ && fault.step == step ? fault : Fault{};
  }

  std::filesystem::path checkpoint_path(int64_t step) const {
    return options_.folder /
           mptools::text("step%04lld.rank%d", static_cast<long long>(step), rank_);
  }

  /// A rank that is killed during the call leaves no partial checkpoint.
  void save(int64_t step) { mptools::write_file(checkpoint_path(step), trainer_->checkpoint()); }
  /// Last step with a checkpoint of this rank, at most `most`; 0: there is none.
  int64_t last_saved(int64_t most) const {
    while (most > 0 && !std::filesystem::exists(checkpoint_path(most))) --most;
    return most;
  }

  void load(int64_t step) {
    std::ifstream file(checkpoint_path(step), std::ios::binary);
    trainer_->restore(std::string(std::istreambuf_iterator<char>(file), {}));
  }

  void tell_end() const {
    const mp_scaler_state_t state = trainer_->state();
    const auto count = [](int64_t number) { return std::to_string(number); };
    log_->tell(count(state.steps) + " steps, " + count(state.skipped) +
               " skipped: " + count(overflows_[Overflow::kInfinity]) + " infinite, " +
               count(overflows_[Overflow::kNan]) + " NaN, " + count(overflows_[Overflow::kUnseen]) +
               " unseen");
    log_->tell(count(compared_) + " comparisons");
    std::string losses;
    for (const int64_t loss : losses_) losses += count(loss) + '\n';
    mptools::write_file(options_.folder / "losses", losses);
  }

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

const mptools::Words<Fault::Kind> kFaults = {
    {"none", Fault::kNone},
    {"refused", Fault::kRefused},
    {"fails-before", Fault::kFailsBefore},
    {"fails-after", Fault::kFailsAfter},
    {"exits", Fault::kExits},
    {"killed", Fault::kKilled},
    {"fewer", Fault::kFewer},
    {"more", Fault::kMore},
    {"sharded", Fault::kSharded},
    {"slow", Fault::kSlow},
    {"flipped-bit", Fault::kFlippedBit},
    {"other-target", Fault::kOtherTarget},
    {"raised-flag", Fault::kRaisedFlag},
    {"without-comm", Fault::kWithoutComm},
};

const mptools::Words<Options::OnFailure> kOnFailure = {
    {"abort", Options::OnFailure::kAbort},
    {"report", Options::OnFailure::kReport},
    {"restore", Options::OnFailure::kRestore},
};

Options parse_options(int argc, const char *const *argv) {
  Options options;
  mptools::CommandLine line("training", "Trains a small model on all ranks of an MPI program.", "");
  mptools::add_integer(line, "--steps", options.steps, int64_t{1},
                       "total, including resumed steps");
  line.add_option("--folder", options.folder, "folder of checkpoints, one per rank")->required();
  mptools::add_integer(line, "--save-every", options.save_every, int64_t{1},
                       "steps per checkpoint");
  line.add_flag("--resume", options.resumes, "resume from the last step that all ranks saved");
  mptools::add_choice(line, "--fault", options.fault.kind, kFaults, "kind of fault");
  mptools::add_integer(line, "--rank", options.fault.rank, 0, "rank of the fault");
  mptools::add_integer(line, "--at", options.fault.step, int64_t{1}, "step of the fault");
  mptools::add_integer(line, "--callback", options.fault.callback, 1,
                       "callback of the fault in this step");
  line.add_flag("--give-up", options.gives_up, "callbacks of other ranks time out in this step");
  mptools::add_choice(line, "--on-failure", options.on_failure, kOnFailure,
                      "behavior of the other ranks");
  line.parse(argc, argv);
  return options;
}

}  // namespace
}  // namespace mptest

int main(int argc, char **argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  const int code = mptools::run_program("training", [&] {
    if (provided != MPI_THREAD_MULTIPLE)
      throw std::runtime_error("this MPI takes no calls from several threads.");
    mptest::Run(mptest::parse_options(argc, argv)).run();
    return 0;
  });
  // Other ranks may wait for this one.
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return 0;
}
