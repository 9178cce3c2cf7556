// Defaults that the library itself needs, too; the public headers document them at mp_*_init.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "capi/check.h"

namespace mp {

/// Returns a struct whose defaults are all 0.
template <class Struct>
Struct zero_struct() {
  Struct s{};
  s.struct_size = sizeof s;
  return s;
}

/// Stores an argument of a C caller in fields.  Copies bytes, because an enumerator may be invalid
/// (see enum_value).
template <class Argument, class... Fields>
void store(const Argument &value, Fields &...fields) {
  static_assert((std::is_same_v<Argument, Fields> && ...));
  (std::memcpy(&fields, &value, sizeof value), ...);
}

/// Stores arguments in the fields of the same names: MP_STORE_FIELDS(d, rows, columns).
#define MP_STORE_FIELDS(s, ...)              \
  do {                                       \
    auto &stored_struct = s;                 \
    MP_FOR_EACH(MP_STORE_FIELD, __VA_ARGS__) \
  } while (false)
#define MP_STORE_FIELD(name) store(name, stored_struct.name);

mp_context_config_t default_context_config();
mp_scaler_state_t default_scaler_state(const mp_scaler_config_t &config);
mp_comm_t default_comm();
mp_scaler_config_t default_scaler_config(const mp_scaler_policy_t &policy);

/// Implements mp_*_init.
/// @param value  () -> Struct: defaults of this version
template <class Struct, class Value>
mp_status_t init(const char *function, Struct *user, const char *name, size_t struct_size,
                 const Value &value) {
  return call(function, [&] {
    require_pointer(user, name);
    // On failure the struct stays zero, and so do the additional fields of newer callers.
    if (struct_size <= kLargestStruct) std::memset(user, 0, struct_size);
    require_struct_size<Struct>(struct_size, "", "", "; pass the size of the struct");
    const Struct defaults = value();
    std::memcpy(user, &defaults, std::min(struct_size, sizeof defaults));
    user->struct_size = static_cast<uint32_t>(struct_size);
  });
}

/// Implements mp_*_desc_init.
/// @param fill  (Struct &): sets the other fields whose defaults are not 0
template <class Struct, class Fill>
mp_status_t init_desc(const char *function, Struct *user, size_t struct_size,
                      const mp_dtype_t &dtype, const Fill &fill) {
  return init(function, user, "desc", struct_size, [&] {
    auto desc = zero_struct<Struct>();
    store(dtype, desc.dtype);
    fill(desc);
    return desc;
  });
}

}  // namespace mp
