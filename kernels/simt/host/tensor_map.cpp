// Tensor maps of the host machine.
#include "kernels/simt/host/tensor_map.h"

namespace mp::host {

namespace {

TensorMap encode(const TensorMapSpec &spec) {
  engine::TensorMapFields fields{};
  fields.magic = fields.kMagic;
  fields.base = static_cast<std::byte *>(const_cast<void *>(spec.base));
  for (int i = 0; i < 3; i++) fields.extent[i] = spec.extent[i];
  for (int i = 0; i < 2; i++) {
    fields.stride_bytes[i] = tensor_map_stride_bytes(spec, i + 1);
    fields.box[i] = spec.box[i];
  }
  fields.element_bytes = spec.dtype == MP_FP32 ? 4 : 2;
  fields.swizzle_128 = spec.swizzle_128;
  return std::bit_cast<TensorMap>(fields);
}

}  // namespace

const TensorMap &tensor_map(const TensorMapSpec &spec) {
  return cached_tensor_map(encode, spec);
}

}  // namespace mp::host
