// What everything below capi/ knows of a device, of memory that both sides see, and of failure.
// Every kernel includes it: no header of the C++ library that is long to compile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpcore/core.h"

namespace mp {

/// Throws TargetError (target_error.h) with a text as of printf.
[[noreturn, gnu::format(printf, 2, 3)]] void throw_target_error(mp_status_t status,
                                                                const char *format, ...);

/// What selection and launch need to know of a device.  Pure data: selection can be tested for a
/// device that is not there.
struct Device {
  mp_target_t target;
  int32_t ordinal;         ///< CUDA ordinal; 0 on the host target
  int32_t arch;            ///< 75, 80, 90...; the host target reports the generation it models
  int32_t num_sms;         ///< after sm_limit; OS threads on the host target
  int64_t smem_per_block;  ///< bytes a kernel may opt in to
  int64_t l2_bytes;
  bool has_wgmma;  ///< the code that the device runs was compiled for sm_90a
  char name[64];
};

/// Device memory that a call may write, and reads nothing from.
struct Workspace {
  void *ptr;
  size_t bytes;
};

/// Memory of the host that kernels write to while the host reads, with the address of either side.
struct MappedMemory {
  void *host;
  void *device;
};

}  // namespace mp
