// Dispatch of mbarrier, bulk copies, tensormap and cluster addresses.
#include "softgpu/isa/async.h"

namespace softgpu {

bool decode_async(Decoder &d, Instruction &i) {
  return decode_mbarrier(d, i) || decode_bulk_group(d, i) || decode_tensor_copy(d, i) ||
         decode_plain_copy(d, i) || decode_tensor_map(d, i) || decode_proxy_fence(d, i) ||
         decode_cluster_address(d, i);
}

}  // namespace softgpu
