// Options of the training, and injected faults.
#pragma once

#include <cstdint>
#include <filesystem>

namespace mptest {

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
  /// Folder of checkpoints and other output.
  std::filesystem::path folder;
  int64_t save_every = 1;
  bool resumes = false;
  Fault fault;
  /// Callbacks of other ranks have a timeout in the step of the fault.
  bool gives_up = false;
  /// Reaction of a rank to a failed call.
  enum class OnFailure {
    kAbort,    ///< ends the job, with the status as exit code
    kReport,   ///< all ranks report their progress
    kRestore,  ///< all ranks agree on the status of each call, and restore the last checkpoint
  } on_failure = OnFailure::kAbort;
};

}  // namespace mptest
