// mpinfo doctor: checks the library's installation on this machine and suggests remedies.
#pragma once

#include <string>
#include <vector>

namespace mpinfo {

enum class Verdict {
  ok,
  note,  ///< works, but not at its best
  problem
};

/// Line of the report.
struct Finding {
  Verdict verdict;
  std::string what;    ///< no period at the end
  std::string remedy;  ///< a sentence; empty if there is no problem
  std::string check;   ///< name of the check
};

/// Runs all checks in order.  A failed check is a finding and does not stop the others.
std::vector<Finding> examine();

std::string as_text(const std::vector<Finding> &findings);
std::string as_json(const std::vector<Finding> &findings);

/// Prints the findings of examine().
/// @return the exit code: 1 if there is a problem
int run_doctor(bool json);

}  // namespace mpinfo
