#include "step_data.h"

#include <vector>

namespace mpbench {

Tensors::Tensors(const Machine &machine, const Layout &layout, mp_dtype_t dtype) {
  int64_t bytes = 0;
  std::vector<int64_t> offsets;
  for (const int64_t numel : layout.numel) {
    offsets.push_back(bytes);
    bytes += aligned_bytes(numel * dtype_bytes(dtype));
  }
  elems_ = bytes / dtype_bytes(dtype);
  memory_ = Buffer(machine.context(), bytes);
  std::vector<void *> data;
  for (const int64_t offset : offsets) data.push_back(memory_.as<char>() + offset);

  mp_tensor_list_desc_t desc;
  MP_INIT_STRUCT(&desc);
  desc.dtype = dtype;
  desc.count = static_cast<uint32_t>(layout.numel.size());
  desc.data = data.data();
  desc.numel = layout.numel.data();
  mp_tensor_list_t list = nullptr;
  check(mp_tensor_list_create(&list, machine.context(), &desc));
  list_.reset(list);
}

Scaler make_scaler(const Machine &machine) {
  const mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  mp_scaler_t scaler = nullptr;
  check(mp_scaler_create(&scaler, machine.context(), &config));
  return Scaler(scaler);
}

}  // namespace mpbench
