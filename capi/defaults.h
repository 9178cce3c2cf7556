// The defaults that the library itself needs too; the public headers document them at mp_*_init.
#pragma once

#include "mpcore.h"

namespace mp {

/// A struct of which every default is 0.
template <class Struct>
Struct zero_struct() {
  Struct s{};
  s.struct_size = sizeof s;
  return s;
}

mp_context_config_t default_context_config();
mp_scaler_state_t default_scaler_state(const mp_scaler_config_t &config);
mp_comm_t default_comm();

}  // namespace mp
