// A whole training on all ranks of an MPI program, in which things go wrong.
//
//   mpirun -n 4 build/tests/mpitraining --folder FOLDER --steps 300
//   mpirun -n 4 build/tests/mpitraining --folder FOLDER --fault killed --rank 2 --at 25 --callback 1
//
// Random samples overflow.  After every step all ranks compare what they have, bit by bit; what differs
// ends the job.  At the end each rank has checkpoints of the same bytes, whatever the number of ranks:
// that of the last step is the result, and tests/tools/test_mpi_faults.py compares it.
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
  // The others may wait for this rank.
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return 0;
}
