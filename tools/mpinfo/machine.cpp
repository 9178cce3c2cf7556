#include "machine.h"

#include <algorithm>
#include <cstdint>
#include <regex>
#include <utility>

namespace mpinfo {
namespace {

Place open_place(std::string flag, int32_t device) {
  Place place{std::move(flag), nullptr, {}, MP_SUCCESS, ""};
  mp_context_config_t config = mp_context_config_default();
  config.device = device;
  mp_context_t raw = nullptr;
  place.status = mp_context_create(&raw, &config);
  if (place.status == MP_SUCCESS) {
    place.context.reset(raw);
    MP_INIT_STRUCT(&place.info);
    place.status = mp_context_get_info(raw, &place.info);
  }
  if (place.status == MP_SUCCESS) return place;
  place.why_not = mp_last_error();
  place.context.reset();
  return place;
}

/// Opens an ordinal that no machine has.  The error shows whether there is a cuda target, and
/// whether it has a device.
Place ask_for_too_many() {
  return open_place("cuda", INT32_MAX);
}

/// Parses mp_build_info(), the only source, though its format is meant for readers.  If the format
/// changes, checks are skipped.
std::optional<CudaBuild> read_build() {
  const std::string info = mp_build_info();
  std::smatch found;
  if (!std::regex_search(info, found,
                         std::regex(R"(cuda \(CUDA (\d+\.\d+), code for ([0-9a-z ]+)\))")))
    return std::nullopt;
  return CudaBuild{found[1], found[2]};
}

}  // namespace

Log::Log() {
  const auto keep = [](mp_log_level_t level, const char *message, void *user) {
    Log &log = *static_cast<Log *>(user);
    const std::lock_guard lock(log.mutex_);
    log.lines_.push_back({level, message});
  };
  // MP_LOG_INFO includes the message that a tuning table is used.
  mp_set_log_callback(keep, this, MP_LOG_INFO);
}

Log::~Log() {
  mp_set_log_callback(nullptr, nullptr, MP_LOG_WARN);
}

std::optional<Log::Line> Log::take(const std::string &words) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(lines_.begin(), lines_.end(), [&](const Line &line) {
    return line.message.find(words) != std::string::npos;
  });
  if (found == lines_.end()) return std::nullopt;
  const Line line = *found;
  lines_.erase(found);
  return line;
}

std::vector<std::string> Log::take_warnings() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> warnings;
  for (const Line &line : lines_)
    if (line.level == MP_LOG_WARN) warnings.push_back(line.message);
  lines_.clear();
  return warnings;
}

Machine::Machine() : host(open_place("host", MP_DEVICE_HOST)) {
  // An error may make all later calls fail, so the loop also ends if the runtime has lost its
  // devices.
  Place beyond = ask_for_too_many();
  for (int32_t ordinal = 0; beyond.status == MP_ERROR_INVALID_ARGUMENT; ordinal++) {
    Place place = open_place("cuda:" + std::to_string(ordinal), ordinal);
    if (place.status == MP_ERROR_INVALID_ARGUMENT) break;
    gpus.push_back(std::move(place));
    beyond = ask_for_too_many();
  }
  why_no_gpu_status = beyond.status;
  if (gpus.empty()) why_no_gpu = open_place("cuda:0", 0).why_not;
  build = read_build();
}

std::vector<const Place *> Machine::usable() const {
  std::vector<const Place *> places;
  if (host.context != nullptr) places.push_back(&host);
  for (const Place &gpu : gpus)
    if (gpu.context != nullptr) places.push_back(&gpu);
  return places;
}

}  // namespace mpinfo
