// The library's environment variables, its kernels for one problem, and the text and JSON of both.
#pragma once

#include <string>
#include <vector>

#include "machine.h"
#include "options.h"

namespace mpinfo {

struct Variable {
  const char *name;
  const char *meaning;
  const char *value = nullptr;  ///< NULL = not set
};

struct Kernel {
  std::string name;
  std::string why_not;  ///< empty: the kernel can run the problem
  double predicted_us;
  size_t workspace_bytes;
};

/// A GEMM, one pass of a convolution, or attention.
struct Problem {
  std::string title;
  std::string plan;             ///< mp_*_explain; empty: `kernels` are requested
  std::vector<Kernel> kernels;  ///< runnable kernels first, by predicted time
};

/// The environment variables that the library reads.
std::vector<Variable> environment();

/// @throws std::runtime_error with the library's error message
std::vector<Problem> explain(const Options &options, mp_context_t context);

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
