// Command line of mpbench.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mpcore.h"

namespace mpbench {

/// Other libraries that are timed next to mpcore, if they are installed.
struct Peers {
  bool cublaslt = true, cudnn = true, torch = true;
};

/// Returns whether the calls of a suite measure kernels with --tune.
constexpr bool has_products(std::string_view suite) {
  return suite == "gemm" || suite == "epilogue" || suite == "batched" || suite == "conv";
}

/// Long enough for clocks to settle.
constexpr double kHeadlineSeconds = 3;

struct Options {
  std::string suite = "all";
  int32_t device = MP_DEVICE_AUTO;
  std::string set = "all";
  std::string filter;
  bool quick = false;
  bool brief = false;
  bool counted = false;  ///< device is softgpu; detected, not an option
  int64_t limit = 0;     ///< per suite; 0 = all
  Peers peers;
  mp_dtype_t dtype = MP_FP16;
  mp_dtype_t out_dtype = MP_DTYPE_NONE;  ///< NONE = see Shape::is_wgrad
  bool rank = false;
  /// Seconds for which each contestant runs alone; below 0: kHeadlineSeconds for the headline
  /// shapes on a GPU.
  double sustained_s = -1;
  std::string once;                       ///< empty = measure
  bool tunes = false;                     ///< --tune: the calls measure kernels
  std::string out = "build/fastest.txt";  ///< file to which --tune appends
  std::string json;                       ///< empty = none, "-" = stdout
  std::string home = "bench";
  std::string command;  ///< command line as typed

  bool has_suite(std::string_view name) const {
    return (suite == "all" || suite == name) && (!tunes || has_products(name));
  }
  double sustained_seconds(bool is_headline, bool on_host) const {
    return sustained_s >= 0 ? sustained_s : is_headline && !on_host ? kHeadlineSeconds : 0;
  }
  bool is_brief() const { return quick || brief; }
  /// True with --quick, and without --filter or --limit also on the host target and software
  /// devices, where all shapes would take days or hours.
  bool is_quick(bool on_host) const {
    return quick || ((on_host || counted) && filter.empty() && limit == 0);
  }
};

/// @throws mptools::UsageError, mptools::HelpRequest
Options parse_options(int argc, const char *const *argv);

}  // namespace mpbench
