// Summary line of every Catch2 program of the tests: "N passed, N failed[, N skipped]" test cases.
#pragma once

#include <string>

namespace mptest {

/// Counts the running test case as skipped and prints why; the test returns after it.
void skip(const std::string &reason);

/// Runs Catch2 and prints the summary, unless the options only list tests or help.
/// @return the exit code of main
int run_tests(int argc, char **argv);

}  // namespace mptest
