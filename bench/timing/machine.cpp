#define MP_ENABLE_EXPERIMENTAL
#include "machine.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "support/progress.h"
namespace mpbench {
namespace {

// A prime: no row length divides it, so rows of a matrix do not repeat.
constexpr int64_t kPoolElems = 4194301;

/// Errors are thrown as exceptions or expected; only warnings are printed.
void print_warning(mp_log_level_t level, const char *message, void *) {
  if (level != MP_LOG_WARN) return;
  const char *const over_progress = isatty(STDERR_FILENO) ? mptools::kClearLine : "";
  std::fprintf(stderr, "%smpcore: %s\n", over_progress, message);
}

Context make_quiet_context(int32_t device, int32_t sm_limit) {
  mp_set_log_callback(print_warning, nullptr, MP_LOG_WARN);
  return make_context(device, sm_limit);
}

}  // namespace

Machine::Machine(int32_t device, int32_t sm_limit)
    : context_(make_quiet_context(device, sm_limit)) {
  MP_INIT_STRUCT(&info_);
  check(mp_context_get_info(context(), &info_));
  if (info_.target != MP_TARGET_CUDA) return;
  cuda_.emplace(device);
  try {
    nvml_.emplace(cuda_->pci_bus_id());
  } catch (const std::exception &error) {
    nvml_gap_ = error.what();
  }
}

bool Machine::has_estimated_costs() const {
  const mp_gemm_desc_t any = mp_gemm_desc_default(64, 64, 64, MP_FP16, MP_FP16);
  mp_kernel_info_t kernel;
  MP_INIT_STRUCT(&kernel);
  check(mp_gemm_kernel_info(context(), &any, 0, &kernel));
  return kernel.is_estimated != 0;
}

int64_t Machine::sets_beyond_l2(int64_t bytes) const {
  if (is_counted()) return 1;
  return std::max<int64_t>(1, ceil_div(2 * info_.l2_bytes, std::max<int64_t>(1, bytes)));
}

std::optional<GpuState> Machine::gpu_state(std::string during) const {
  if (!nvml_) return std::nullopt;
  const GpuReading reading = nvml_->read();
  return GpuState{.during = std::move(during),
                  .sm_mhz = reading.sm_mhz,
                  .max_sm_mhz = nvml_->max_sm_mhz(),
                  .memory_mhz = reading.memory_mhz,
                  .power_w = reading.power_w,
                  .power_limit_w = nvml_->power_limit_w(),
                  .temperature_c = reading.temperature_c};
}

RandomPool::RandomPool(const Machine &machine, mp_dtype_t dtype, float most)
    : machine_(machine), elem_bytes_(dtype_bytes(dtype)) {
  std::vector<float> values(kPoolElems);
  std::mt19937 bits(1);
  for (float &value : values) value = most * (static_cast<float>(bits()) * 0x1p-31f - 1.0f);

  const Buffer exact = machine.upload(values);
  values_ = make_buffer(machine.context(), kPoolElems, dtype);
  machine.call(mp_cast, exact.data(), MP_FP32, values_.data(), dtype, kPoolElems);
  machine.synchronize();
}

void RandomPool::fill(void *dst, int64_t count) {
  char *to = static_cast<char *>(dst);
  while (count > 0) {
    const int64_t elems = std::min(count, kPoolElems - position_);
    const auto bytes = static_cast<size_t>(elems * elem_bytes_);
    machine_.call(mp_memcpy, to, values_.as<char>() + position_ * elem_bytes_, bytes);
    to += bytes;
    count -= elems;
    position_ = (position_ + elems) % kPoolElems;
  }
}

}  // namespace mpbench
