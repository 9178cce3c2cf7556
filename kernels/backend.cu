// Function table of a backend, compiled once per target.
#include "kernels/backend.h"

#include "kernels/simt/device.h"

namespace mp::MP_TARGET {

#define MP_DECLARE_LAUNCH(name, ...) void name(const Device &, __VA_ARGS__, mp_stream_t);
MP_LAUNCHES(MP_DECLARE_LAUNCH)

const Backend &backend() {
#define MP_LAUNCH_ENTRY(name, ...) .name = name,
  static const Backend table{.kind = kTargetKind,
                             .device_count = device_count,
                             .why_no_device = why_no_device,
                             .current_device = current_device,
                             .has_code_for = has_code_for,
                             .describe = describe,
                             .allocate = allocate,
                             .release = release,
                             .allocate_mapped = allocate_mapped,
                             .release_mapped = release_mapped,
                             .copy = copy,
                             .fill = fill,
                             .synchronize = synchronize,
                             .release_idle = release_idle,
                             MP_LAUNCHES(MP_LAUNCH_ENTRY)};
  return table;
}

}  // namespace mp::MP_TARGET
