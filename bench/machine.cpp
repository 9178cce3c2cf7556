#include "machine.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>

#include "common/progress.h"
#include "peers/command.h"

namespace mpbench {
namespace {

// A prime: no row length divides it, so rows of a matrix do not repeat.
constexpr int64_t kPoolElems = 4194301;

/// Errors come back as exceptions, or were expected; warnings are for the user.
void print_warning(mp_log_level_t level, const char *message, void *) {
  if (level != MP_LOG_WARN) return;
  const char *const over_progress = isatty(STDERR_FILENO) ? mptools::kClearLine : "";
  std::fprintf(stderr, "%smpcore: %s\n", over_progress, message);
}

Context make_quiet_context(int32_t device, int32_t sm_limit) {
  mp_set_log_callback(print_warning, nullptr, MP_LOG_WARN);
  return make_context(device, sm_limit);
}

/// The comma-separated values of nvidia-smi's one line.
std::vector<std::string> split_values(const std::string &line) {
  std::vector<std::string> values;
  size_t begin = 0;
  while (begin < line.size()) {
    const size_t end = std::min(line.find_first_of(",\n", begin), line.size());
    values.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(", \n", end);
  }
  return values;
}

double parse_value(const std::string &value) {
  char *end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  return end != value.c_str() ? number : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

Machine::Machine(int32_t device, int32_t sm_limit)
    : context_(make_quiet_context(device, sm_limit)) {
  MP_INIT_STRUCT(&info_);
  check(mp_context_get_info(context(), &info_));
  if (info_.target == MP_TARGET_CUDA) cuda_.emplace(device);
}

int64_t Machine::sets_beyond_l2(int64_t bytes) const {
  return std::max<int64_t>(1, ceil_div(2 * info_.l2_bytes, std::max<int64_t>(1, bytes)));
}

std::optional<GpuState> Machine::gpu_state(std::string during) const {
  if (cuda_ == std::nullopt) return std::nullopt;
  const std::vector<std::string> values = split_values(
      output_of("nvidia-smi --format=csv,noheader,nounits --query-gpu=driver_version,clocks.sm,"
                "clocks.max.sm,clocks.mem,power.draw,power.limit,temperature.gpu -i " +
                cuda_->pci_bus_id() + " 2>/dev/null"));
  if (values.size() != 7) return std::nullopt;
  return GpuState{.during = std::move(during),
                  .driver = values[0],
                  .sm_mhz = parse_value(values[1]),
                  .max_sm_mhz = parse_value(values[2]),
                  .memory_mhz = parse_value(values[3]),
                  .power_w = parse_value(values[4]),
                  .power_limit_w = parse_value(values[5]),
                  .temperature_c = parse_value(values[6])};
}

RandomPool::RandomPool(const Machine &machine, mp_dtype_t dtype)
    : machine_(machine), elem_bytes_(dtype_bytes(dtype)) {
  std::vector<float> values(kPoolElems);
  std::mt19937 bits(1);
  for (float &value : values) value = static_cast<float>(bits()) * 0x1p-31f - 1.0f;

  const Buffer exact = make_buffer(machine.context(), kPoolElems, MP_FP32);
  values_ = make_buffer(machine.context(), kPoolElems, dtype);
  check(mp_memcpy(machine.context(), exact.data(), values.data(), values.size() * sizeof(float),
                  machine.stream()));
  check(mp_cast(machine.context(), exact.data(), MP_FP32, values_.data(), dtype, kPoolElems,
                machine.stream()));
  machine.synchronize();
}

void RandomPool::fill(void *dst, int64_t count) {
  char *to = static_cast<char *>(dst);
  while (count > 0) {
    const int64_t elems = std::min(count, kPoolElems - position_);
    const auto bytes = static_cast<size_t>(elems * elem_bytes_);
    check(mp_memcpy(machine_.context(), to, values_.as<char>() + position_ * elem_bytes_, bytes,
                    machine_.stream()));
    to += bytes;
    count -= elems;
    position_ = (position_ + elems) % kPoolElems;
  }
}

}  // namespace mpbench
