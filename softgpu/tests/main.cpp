// Runs the tests of the software device.
#include "tests/support/tally.h"

int main(int argc, char **argv) {
  return mptest::run_tests(argc, argv);
}
