// Small host arrays to device memory inside the parameters of a launch.
#pragma once

#include "kernels/simt/simt.h"

namespace mp::MP_TARGET {

/// Enqueues the copy of `bytes` bytes to `dst`, 16-byte aligned.  They are read before this
/// returns: the source may then change, and a captured graph holds its own copy of them.  Tensor maps
/// among them can be used after tensor_map_acquire.
void upload(const Device &, void *dst, const void *host_src, size_t bytes, mp_stream_t);

}  // namespace mp::MP_TARGET
