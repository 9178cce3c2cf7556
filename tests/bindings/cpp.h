// Helpers of the tests of mpcore.hpp, with and without exceptions.
#pragma once

#define MP_ENABLE_EXPERIMENTAL
#include "mpcore.hpp"

#include <cstring>
#include <string>

#include "tests/support/catch.h"

inline mp_context_config_t on_host() {
  mp_context_config_t config = mp_context_config_default();
  config.device = MP_DEVICE_HOST;
  return config;
}

#if defined(__cpp_exceptions)
template <class Call>
std::string message_of(const Call &call) {
  try {
    call();
  } catch (const mp::error &error) {
    return error.what();
  }
  return "nothing is thrown";
}
#endif

inline const mp_gemm_desc_t kNegative = mp_gemm_desc_default(-1, 1, 1, MP_FP16, MP_FP16);
inline constexpr char kMessage[] = "mp_gemm: m = -1 is negative";
