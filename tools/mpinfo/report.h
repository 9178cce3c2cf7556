// Text and JSON of the facts.
#pragma once

#include "facts.h"
#include "machine.h"

namespace mpinfo {

struct Report {
  std::vector<Place> devices = {};       ///< empty for a problem
  std::vector<Variable> variables = {};  ///< empty for a problem
  std::string device_name = {};          ///< device of the problems
  std::vector<Problem> problems = {};
  std::vector<std::string> warnings = {};
};

/// Version, e.g. "0.2.0", of the header at compile time, and of the loaded library.
std::string header_version();
std::string loaded_version();

std::string as_text(const Report &report, bool all);
std::string as_json(const Report &report);

}  // namespace mpinfo
