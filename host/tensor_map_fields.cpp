// Encoding of tensor maps for the simulator.
#include "host/tensor_map_fields.h"

namespace mp::host {

namespace {

template <class Spec>
engine::TensorMapFields tensor_fields(const Spec &spec) {
  constexpr int kDimensions = std::extent_v<decltype(Spec::extent)>;
  engine::TensorMapFields fields{};
  fields.magic = fields.kMagic;
  fields.base = static_cast<std::byte *>(const_cast<void *>(spec.base));
  for (int i = 0; i < kDimensions; i++) fields.extent[i] = spec.extent[i];
  for (int i = 1; i < kDimensions; i++)
    fields.stride_bytes[i - 1] = tensor_map_stride_bytes(spec, i);
  fields.element_bytes = spec.dtype == MP_FP32 ? 4 : 2;
  fields.swizzle_128 = spec.swizzle_128;
  return fields;
}

TensorMap encode(const TensorMapSpec &spec) {
  engine::TensorMapFields fields = tensor_fields(spec);
  for (int i = 0; i < 2; i++) fields.box[i] = spec.box[i];
  return std::bit_cast<TensorMap>(fields);
}

TensorMap encode_im2col(const Im2colSpec &spec) {
  engine::TensorMapFields fields = tensor_fields(spec);
  fields.im2col = true;
  fields.box[0] = spec.channels;
  fields.box[1] = spec.pixels;
  for (int i = 0; i < 2; i++) {
    fields.lower[i] = static_cast<int8_t>(spec.lower[i]);
    fields.upper[i] = static_cast<int8_t>(spec.upper[i]);
    fields.step[i] = static_cast<int8_t>(spec.step[i]);
  }
  return std::bit_cast<TensorMap>(fields);
}

}  // namespace

const TensorMap &tensor_map(const TensorMapSpec &spec) {
  return cached_tensor_map(encode, spec);
}
const TensorMap &im2col_map(const Im2colSpec &spec) {
  return cached_tensor_map(encode_im2col, spec);
}

}  // namespace mp::host
