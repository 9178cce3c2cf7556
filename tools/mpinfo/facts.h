// The library's environment variables, and its kernels for one problem.
#pragma once

#include <string>
#include <vector>

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

}  // namespace mpinfo
