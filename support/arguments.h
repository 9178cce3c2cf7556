// Values of command-line flags, for the programs of this repository.
#pragma once

#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "mpcore.h"

namespace mptools {

/// A wrong command line; what() is one sentence.  Programs print it and return 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// @throws UsageError if `value` is not a whole number of at least `least`.
template <typename Integer>
Integer parse_integer(std::string_view flag, std::string_view value, Integer least) {
  Integer number = 0;
  const char *const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || stop != end || number < least)
    throw UsageError(std::string(flag) + " needs a whole number of at least " +
                     std::to_string(least) + ", not \"" + std::string(value) + "\".");
  return number;
}

/// --device auto|host|cuda|cuda:N, as mp_context_config.device.
inline int32_t parse_device(std::string_view value) {
  constexpr std::string_view kCudaOrdinal = "cuda:";
  if (value == "auto") return MP_DEVICE_AUTO;
  if (value == "host") return MP_DEVICE_HOST;
  if (value == "cuda") return MP_DEVICE_CURRENT;
  if (value.starts_with(kCudaOrdinal))
    return parse_integer<int32_t>("--device cuda:N", value.substr(kCudaOrdinal.size()), 0);
  throw UsageError("--device is auto, host, cuda or cuda:N, not \"" + std::string(value) + "\".");
}

}  // namespace mptools
