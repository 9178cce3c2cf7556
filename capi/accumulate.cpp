// mpcore/step.h: unscaling of gradients to fp32, for sums over micro-batches and for optimizers of
// the host program.
#include "capi/check.h"
#include "capi/nvtx_payload.h"
#include "capi/objects.h"
#include "capi/optimizer_desc.h"
#include "kernels/backend.h"
#include "mpcore.h"

namespace mp {

namespace {

void accumulate(mp_scaler_t handle, mp_tensor_list_t grads, mp_tensor_list_t sums,
                const char *sums_name, float weight, uint32_t flags, mp_stream_t stream) {
  mp_scaler &scaler = require_pointer(handle, "scaler");
  const mp_tensor_list &from = require_pointer(grads, "grads");
  const mp_tensor_list &to = require_pointer(sums, sums_name);
  require_parallel(from, "grads", to, sums_name);
  MP_REQUIRE(scaler.context == from.context, MP_ERROR_INVALID_ARGUMENT,
             "scaler and grads belong to different contexts");
  require_fp32(to, sums_name);
  require_data(from, "grads");
  require_writable(to, sums_name);
  require_finite(weight, "weight");
  require_flags(flags, MP_ACCUMULATE_FLAG_FIRST | MP_ACCUMULATE_FLAG_LAST, "flags");

  const Context &c = *scaler.context;
  c.backend.accumulate(c.device,
                       {.in = from.device,
                        .out = to.device,
                        .inv_scale = &scaler.device->inv_scale,
                        .weight = weight,
                        .first = (flags & MP_ACCUMULATE_FLAG_FIRST) != 0,
                        .last = (flags & MP_ACCUMULATE_FLAG_LAST) != 0,
                        .found_inf = &scaler.device->found_inf,
                        .scaler = scaler.device,
                        .blocks_done = from.scratch.blocks_done},
                       stream);
  scaler.has_kept_amax = true;
}

}  // namespace

}  // namespace mp

mp_status_t mp_grads_accumulate(mp_scaler_t scaler, mp_tensor_list_t grads, mp_tensor_list_t sums,
                                float weight, uint32_t flags, mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(grads),
                  [&] { mp::accumulate(scaler, grads, sums, "sums", weight, flags, stream); });
}

mp_status_t mp_grads_to_fp32(mp_scaler_t scaler, mp_tensor_list_t grads, mp_tensor_list_t out,
                             mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload(grads), [&] {
    mp::accumulate(scaler, grads, out, "out", 1.0f,
                   MP_ACCUMULATE_FLAG_FIRST | MP_ACCUMULATE_FLAG_LAST, stream);
  });
}
