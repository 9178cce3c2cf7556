// Properties of a device, workspace and mapped memory, and the function that reports failures.
// Every kernel includes this header, so it includes no C++ headers that are slow to compile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpcore/core.h"

namespace mp {

/// Throws TargetError (target_error.h) with a printf-style message.
[[noreturn, gnu::format(printf, 2, 3)]] void throw_target_error(mp_status_t status,
                                                                const char *format, ...);

/// Properties of a device for kernel selection and launch.  Plain data, so selection can be tested
/// for devices that are not present.
struct Device {
  mp_target_t target;
  int32_t ordinal;         ///< CUDA ordinal; 0 on the host target
  int32_t arch;            ///< 75, 80, 90...; on the host target, the modeled architecture
  int32_t num_sms;         ///< limited by sm_limit; OS threads on the host target
  int64_t smem_per_block;  ///< bytes a kernel may opt in to
  int64_t l2_bytes;
  bool has_wgmma;  ///< true if the loaded code was compiled for sm_90a
  char name[64];
  bool has_overlapping_maps;  ///< the driver encodes im2col maps whose pixels overlap
  bool has_pdl;               ///< true if the loaded code was compiled from PTX of sm_90 or newer
  bool has_sm_limit;          ///< num_sms is less than the device has
};

/// Device memory that a call may overwrite; its contents are never read.
struct Workspace {
  void *ptr;
  size_t bytes;
};

/// Host memory that kernels write while the host reads it, with its host and device addresses.
struct MappedMemory {
  void *host;
  void *device;
};

}  // namespace mp
