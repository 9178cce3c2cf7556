// Trains a model on all ranks of an MPI program, with injected faults.
//
//   mpirun -n 4 build/tests/mpitraining --folder FOLDER --steps 300
//   mpirun -n 4 .../mpitraining --folder FOLDER --fault killed --rank 2 --at 25 --callback 1
//
// Random samples overflow.  After every step the ranks compare their states bit by bit; a
// difference ends the job.  At the end every rank has the same checkpoints, for any number of
// ranks. tests/tools/test_mpi_faults.py compares the checkpoint of the last step.
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
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

#include "mpcore_mpi.h"
#include "support/command_line.h"
#include "support/program.h"
#include "support/text.h"
#include "trainer.h"

namespace mptest {
namespace {

/// Exit codes of the job, in addition to those of run_program and, after a failed call,
/// mp_status_t.
enum ExitCode { kRanksDiffer = 70, kWrongOutcome = 71, kReported = 72 };

/// A fault of one rank in one step.
struct Fault {
  enum Kind {
    kNone,
    kRefused,      ///< a call with an argument out of range
    kFailsBefore,  ///< a callback returns an error without calling MPI
    kFailsAfter,   ///< a callback returns an error after MPI's success
    kExits,        ///< _exit(3) within the callback
    kKilled,       ///< SIGKILL within the callback
    kFewer,        ///< half as many elements of a gradient as the others have
    kMore,         ///< twice as many
    kSharded,      ///< MP_STEP_FLAG_SHARDED on this rank only: one more all_reduce
    kSlow,         ///< sleeps first
    // Errors that the checks of this program must find.
    kFlippedBit,   ///< in its weights, after the step
    kOtherTarget,  ///< the wanted signs of one of its samples are inverted
    kRaisedFlag,   ///< the flag of its scaler is set without an overflow
    kWithoutComm   ///< no rank has options.comm in any step
  } kind = kNone;
  int rank = 0;
  int64_t step = 0;
  /// Callback of the step in which the fault occurs, or its call: 1 and 2 are of
  /// mp_grads_all_reduce, for one gradient each; 3 is of mp_scale_step.
  int callback = 1;
};

struct Options {
  int64_t steps = 30;
  std::filesystem::path folder;  ///< for checkpoints and other output
  int64_t save_every = 1;
  bool resumes = false;
  Fault fault;
  /// Reaction of a rank to a failed call.
  enum class OnFailure {
    kAbort,    ///< ends the job, with the status as exit code
    kReport,   ///< each rank writes how far it has come in the step of the fault
    kRestore,  ///< all ranks agree on the status of each call, and restore the last checkpoint
  } on_failure = OnFailure::kAbort;
};

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
    faulty_ = comm_;
    faulty_.all_reduce = all_reduce;
    faulty_.user = this;
    const int64_t share = kSamples / ranks_;
    trainer_.emplace(context_.get(), rank_ * share, share);
    std::filesystem::create_directories(options.folder);
    std::filesystem::remove(path("told"));
  }
  ~Run() { mp_mpi_free(&mpi_); }

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
    if (rank_ == 0) tell(mptools::text("resumed from step %lld", static_cast<long long>(step)));
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
    fault_ = mine;
    callbacks_ = 0;
    progress_.clear();
    reports_ = options_.on_failure == Options::OnFailure::kReport && step == options_.fault.step;
    const int64_t loss = trainer_->compute_gradients(batch);
    if (mine.kind == Fault::kSlow) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    if (mine.kind == Fault::kRaisedFlag)
      *mp_scaler_get_found_inf_address(trainer_->scaler()) = 1.0f;
    const bool is_taken = reduce(mine) && update(mine);
    if (reports_) {  // the other ranks have ended their calls by then, or wait for this rank
      std::this_thread::sleep_for(std::chrono::seconds(1));
      MPI_Abort(MPI_COMM_WORLD, kReported);
    }
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
    return make_call("mp_grads_all_reduce", [&] {
      return mp_grads_all_reduce(grads, &faulty_, pre, 1.0f, mptools::kStream);
    });
  }

  bool update(const Fault &mine) {
    mp_step_options_t options = mp_step_options_default();
    const bool is_refused = mine.kind == Fault::kRefused && mine.callback == 3;
    options.max_grad_norm = is_refused ? -1.0f : 1.0f;
    if (options_.fault.kind != Fault::kWithoutComm) options.comm = &faulty_;
    if (mine.kind == Fault::kSharded) options.flags = MP_STEP_FLAG_SHARDED;
    return make_call("mp_scale_step", [&] { return trainer_->step(options); });
  }

  /// @return whether this rank, and with kRestore every rank, may continue
  bool make_call(const char *name, const std::function<mp_status_t()> &function) {
    report(progress_ + name + " waits");
    const mp_status_t status = function();
    const std::string sentence = mp_last_error();
    report(progress_ + name + " " + mp_status_string(status));
    progress_ += std::string(name) + " " + mp_status_string(status) + ", ";
    if (status != MP_SUCCESS)
      tell(mptools::text("rank %d, step %lld: %s", rank_,
                         static_cast<long long>(trainer_->steps() + 1), sentence.c_str()));
    if (options_.on_failure == Options::OnFailure::kRestore)
      return over_ranks<int>(status, MPI_INT, MPI_MAX) == MP_SUCCESS;
    if (status != MP_SUCCESS && options_.on_failure == Options::OnFailure::kAbort)
      MPI_Abort(MPI_COMM_WORLD, status);
    return status == MP_SUCCESS;
  }

  /// The callback of this rank, with its fault.
  static int all_reduce(const void *send, void *recv, size_t count, mp_dtype_t dtype,
                        mp_reduce_op_t op, mp_stream_t stream, void *user) {
    Run &self = *static_cast<Run *>(user);
    const bool is_now = ++self.callbacks_ == self.fault_.callback;
    const Fault::Kind kind = is_now ? self.fault_.kind : Fault::kNone;
    if (kind == Fault::kFailsBefore) return MPI_ERR_OTHER;
    if (kind == Fault::kExits) _exit(3);
    if (kind == Fault::kKilled) (void)std::raise(SIGKILL);
    if (self.reports_) mptools::write_file(self.path("stopped"), self.trainer_->weights());
    const mp_comm_t &inner = self.comm_;
    const int code = inner.all_reduce(send, recv, count, dtype, op, stream, inner.user);
    return kind == Fault::kFailsAfter ? MPI_ERR_OTHER : code;
  }

  /// Restores the last checkpoint: some ranks may have taken the step, and others not.
  void go_back() {
    const int64_t step = last_saved(options_.fault.step - 1);
    load(step);
    options_.fault = {};
    if (rank_ == 0)
      tell(mptools::text("all ranks go back to step %lld", static_cast<long long>(step)));
  }

  // ------------------------------------------------------------------------- output

  std::filesystem::path path(const char *name) const {
    return options_.folder / mptools::text("%s.rank%d", name, rank_);
  }

  /// Writes a line to stderr and to a file of this rank: mpirun may lose output printed right
  /// before MPI_Abort.
  void tell(const std::string &line) const {
    std::ofstream(path("told"), std::ios::app) << line + '\n' << std::flush;
    std::fprintf(stderr, "%s\n", line.c_str());
  }

  /// Writes the calls of this rank and their statuses, and its weights.
  void report(const std::string &calls) const {
    if (!reports_) return;
    mptools::write_file(path("progress"), calls);
    mptools::write_file(path("stopped"), trainer_->weights());
  }

  /// Called on all ranks; none of them changes its state afterwards.
  [[noreturn]] void end_job(const std::string &why, ExitCode code) {
    if (rank_ == 0) {
      tell(why);
      MPI_Abort(MPI_COMM_WORLD, code);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    std::abort();
  }

  void check_outcome(int64_t step, const Overflow &overflow) {
    require_equal(step, "checkpoint", trainer_->checkpoint());
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
    return path(mptools::text("step%04lld", static_cast<long long>(step)).c_str());
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
    tell(count(state.steps) + " steps, " + count(state.skipped) +
         " skipped: " + count(overflows_[Overflow::kInfinity]) + " infinite, " +
         count(overflows_[Overflow::kNan]) + " NaN, " + count(overflows_[Overflow::kUnseen]) +
         " unseen");
    tell(count(compared_) + " comparisons");
    std::string losses;
    for (const int64_t loss : losses_) losses += count(loss) + '\n';
    mptools::write_file(options_.folder / "losses", losses);
  }

  Options options_;
  mp_mpi_t mpi_{};
  mp_comm_t comm_ = mp_comm_default(), faulty_ = comm_;
  int rank_ = 0, ranks_ = 1;
  mptools::Context context_;
  std::optional<Trainer> trainer_;
  std::optional<Tensors> others_;  ///< gradients of another size, for a rank that disagrees
  Fault fault_;                    ///< this rank's in the current step
  int callbacks_ = 0;              ///< in the current step
  bool reports_ = false;           ///< in the current step
  std::string progress_;           ///< completed calls of that step
  std::vector<int64_t> losses_;    ///< sum over all ranks, for each step taken here
  int64_t overflows_[4] = {};      ///< count per kind
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
  mptools::add_choice(line, "--on-failure", options.on_failure, kOnFailure,
                      "behavior of the other ranks");
  line.parse(argc, argv);
  return options;
}

}  // namespace
}  // namespace mptest

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  const int code = mptools::run_program("training", [&] {
    mptest::Run(mptest::parse_options(argc, argv)).run();
    return 0;
  });
  // Other ranks may wait for this one.
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return 0;
}
