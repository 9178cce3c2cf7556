// Command line of mpdemo.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "architectures.h"

namespace mpdemo {

/// Options of the user for the mixed runs.
struct MixedPrecision {
  std::vector<mp_dtype_t> dtypes;            ///< empty: the network's types
  std::string loss_scale;                    ///< keyword of mp_scaler_config_from_name, or empty
  std::optional<mp_scaler_config_t> scaler;  ///< parsed; none: the demo's default
};

struct Options {
  int32_t device = MP_DEVICE_AUTO;
  std::string net = "all";
  MixedPrecision mixed;
  bool full = false;
  std::optional<double> epochs;  ///< for ordinary training; none: the network's default
  int ranks = 1;
  uint64_t seed = 1;
  std::filesystem::path data = "/usr/share/datasets/fashion-mnist";
  std::filesystem::path text;  ///< empty: the King James Bible
  std::filesystem::path out;   ///< empty: no files are written
  bool json = false;

  /// Networks to train, on the same data.
  std::vector<Architecture> selected() const;
};

/// @throws mptools::UsageError, mptools::HelpRequest
Options parse_options(int argc, const char *const *argv);

}  // namespace mpdemo
