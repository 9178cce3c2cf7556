// Runs the tests of internals and of the selection of kernels.
#include "tests/support/tally.h"

int main(int argc, char **argv) {
  return mptest::run_tests(argc, argv);
}
