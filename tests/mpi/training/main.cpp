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
#include "support/program.h"

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
