// The facts as text and as JSON.
#pragma once

#include "facts.h"

namespace mpinfo {

struct Report {
  std::vector<Device> devices;      ///< without a problem
  std::vector<Variable> variables;  ///< without a problem
  std::string device_name;          ///< of the problems
  std::vector<Problem> problems;
  std::vector<std::string> warnings;
};

/// "0.1.0", of the header that mpinfo was compiled with, and of the library that was loaded.
std::string header_version();
std::string loaded_version();

std::string as_text(const Report &report, bool all);
std::string as_json(const Report &report);

}  // namespace mpinfo
