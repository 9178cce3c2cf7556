// mpinfo doctor: whether all is well with the library on this machine, and what to do where it is not.
#pragma once

#include <string>
#include <vector>

namespace mpinfo {

enum class Verdict {
  ok,
  note,  ///< everything works, but not as it could
  problem
};

/// One line of the answer.
struct Finding {
  Verdict verdict;
  std::string what;    ///< without the full stop
  std::string remedy;  ///< what to do, a sentence; empty where all is well
  std::string check;   ///< that found it
};

/// All checks, one after the other.  None ends the others: what one cannot find out is a finding.
std::vector<Finding> examine();

std::string as_text(const std::vector<Finding> &findings);
std::string as_json(const std::vector<Finding> &findings);

/// Prints what examine() finds.
/// @return the exit code: 1 where there is a problem
int run_doctor(bool json);

}  // namespace mpinfo
