// What the training is told to do, and what is to go wrong.
#pragma once

#include <cstdint>
#include <filesystem>

namespace mptest {

/// Exit codes of the job, beside those of run_program and, where a call has failed, mp_status_t.
enum ExitCode { kRanksDiffer = 70, kWrongOutcome = 71, kReported = 72 };

/// One mistake of one rank in one step.
struct Fault {
  enum Kind {
    kNone,
    kRefused,      ///< it makes its call with an argument out of range
    kFailsBefore,  ///< its callback returns an error, and has not called MPI
    kFailsAfter,   ///< its callback returns an error behind MPI's own success
    kExits,        ///< _exit(3) within the callback
    kKilled,       ///< SIGKILL within the callback
    kFewer,        ///< half as many elements of a gradient as the others have
    kMore,         ///< twice as many
    kSharded,      ///< MP_STEP_FLAG_SHARDED, which the others do not have: one all_reduce more
    kSlow,         ///< it sleeps first
    // Mistakes that the checks of this program have to find.
    kFlippedBit,   ///< in its weights, behind the step
    kOtherTarget,  ///< one of its samples is to become something else
    kRaisedFlag,   ///< its scaler's flag is up, and there was no overflow
    kWithoutComm   ///< it steps without options.comm, and so does every other rank in every step
  } kind = kNone;
  int rank = 0;
  int64_t step = 0;
  /// In which callback of this step, or in its call: 1 and 2 are of mp_grads_all_reduce, for one
  /// gradient each; 3 is of mp_scale_step.
  int callback = 1;
};

struct Options {
  int64_t steps = 30;
  uint64_t seed = 1;
  /// Where checkpoints are, and what else is written.
  std::filesystem::path folder;
  int64_t save_every = 1;
  bool resumes = false;
  Fault fault;
  /// Callbacks of other ranks do not wait for ever in the step of the fault.
  bool gives_up = false;
  /// What a rank does whose call has failed.
  enum class OnFailure {
    kAbort,    ///< it ends the job, with the status for an exit code
    kReport,   ///< all ranks tell how far they have come
    kRestore,  ///< all ranks agree on the status of each call, and go back to the last checkpoint
  } on_failure = OnFailure::kAbort;
};

/// @throws mptools::UsageError, mptools::HelpRequest
Options parse_options(int argc, const char *const *argv);

}  // namespace mptest
