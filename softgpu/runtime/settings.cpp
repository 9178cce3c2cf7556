#include "softgpu/runtime/settings.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "softgpu/environment.h"
#include "softgpu/runtime/errors.h"

namespace softgpu::runtime {

namespace {

/// Per device; more than any device has.
constexpr uint64_t kMaxMemory = uint64_t{1} << 42;
/// One hour, in microseconds.
constexpr uint64_t kMaxDelay = 3'600'000'000;

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Injection read_injection(const std::string &text) {
  constexpr char kName[] = "SOFTGPU_FAIL";
  constexpr char kForm[] = "FUNCTION:N or FUNCTION:N=cudaErrorName, with commas between several";
  const size_t colon = text.find(':'), equals = text.find('=');
  if (colon == std::string::npos || equals < colon) refuse(kName, text, kForm);
  const std::string number = text.substr(colon + 1, equals - colon - 1);
  const std::optional<uint64_t> n = parse_number(number);
  if (!n || *n == 0) refuse(kName, text, kForm);
  Injection injection{text, text.substr(0, colon), *n, -1};
  if (!can_fail(injection.function))
    refuse(kName, text, "of a function of the runtime that can fail, or of a launch");
  if (equals != std::string::npos) {
    injection.error = error_of_name(text.substr(equals + 1));
    if (injection.error <= 0) refuse(kName, text, kForm);
  }
  return injection;
}

/// Returns a file name in which %p is replaced by the process ID.
std::string file_of(const char *name) {
  std::string file(text_of(name));
  const size_t at = file.find("%p");
  if (at != std::string::npos) file.replace(at, 2, std::to_string(getpid()));
  return file;
}

Settings read_settings() {
  Settings s;
  s.is_synchronous = read_switch("SOFTGPU_SYNC");
  s.delay = std::chrono::microseconds(
      number_of("SOFTGPU_DELAY", static_cast<uint64_t>(s.delay.count()), 0, kMaxDelay));
  s.ptx_folders = split(text_of("SOFTGPU_PTX"), ':');
  for (const std::string &text : split(text_of("SOFTGPU_FAIL"), ','))
    s.injections.push_back(read_injection(text));
  s.count_file = file_of("SOFTGPU_COUNT");
  if (s.count_file == "1") s.count_file.clear();  // 1 counts without writing a file
  s.cover_file = file_of("SOFTGPU_COVER");
  read_number("SOFTGPU_MEMORY", 1, kMaxMemory, &s.memory_bytes);
  return s;
}

}  // namespace

const Settings &settings() {
  static const Settings *const read =
      new Settings(read_settings());  // never destroyed: the exit report uses it
  return *read;
}

}  // namespace softgpu::runtime
