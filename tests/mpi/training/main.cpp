// Trains a model on all ranks of an MPI program, with injected faults.
//
//   mpirun -n 4 build/tests/mpitraining --folder FOLDER --steps 300
//   mpirun -n 4 .../mpitraining --folder FOLDER --fault killed --rank 2 --at 25 --callback 1
//
// Random samples overflow.  After every step the ranks compare their states bit by bit; a
// difference ends the job.  At the end every rank has the same checkpoints, for any number of
// ranks. tests/tools/test_mpi_faults.py compares the checkpoint of the last step.
#include <mpi.h>

#include "options.h"
#include "run.h"
#include "support/command_line.h"
#include "support/program.h"

namespace mptest {
namespace {

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
  mptools::add_integer(line, "--seed", options.seed, uint64_t{0},
                       "seed of weights, data and overflows");
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
