// Runs the same tests on every rank of an MPI program; rank 0 prints the summary.
//
//   mpirun -n 4 build/tests/mpitests
//
// A rank that fails would leave the others waiting, so the first failure ends all ranks.
#include "tests/support/catch_session.h"
// Must follow it, since it compiles the main part of Catch2.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "tests/support/testing.h"

namespace {

int passed = 0;
std::ostringstream report;  ///< report of this rank; printed on failure

class EndsAllRanks : public Catch::EventListenerBase {
 public:
  using Catch::EventListenerBase::EventListenerBase;

  void testCaseEnded(const Catch::TestCaseStats &stats) override {
    if (stats.totals.testCases.failed == 0) {
      ++passed;
      return;
    }
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::fprintf(stderr, "rank %d:\n%s\n", rank, report.str().c_str());
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  }
};
CATCH_REGISTER_LISTENER(EndsAllRanks)

}  // namespace

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  mptest::quiet_log();
  std::streambuf *const console = std::cout.rdbuf(report.rdbuf());
  const int code = Catch::Session().run(argc, argv);
  std::cout.rdbuf(console);
  mptest::destroy_context();
  if (rank == 0) std::printf("%d ranks\n%d passed, 0 failed\n", ranks, passed);
  MPI_Finalize();
  return code;
}
