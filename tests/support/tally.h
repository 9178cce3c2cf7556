// How every Catch2 program of the tests ends: "N passed, N failed[, N skipped]", test cases.
#pragma once

#include <string>

namespace mptest {

/// Counts the running test case as skipped and prints why; the test returns after it.
void skip(const std::string &reason);

/// Runs Catch2 and prints the sums, unless it was asked for something else than to run tests.
/// @return what main returns
int run_tests(int argc, char **argv);

}  // namespace mptest
