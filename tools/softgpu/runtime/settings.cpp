#include "tools/softgpu/runtime/settings.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "tools/softgpu/runtime/errors.h"

namespace softgpu::runtime {

namespace {

constexpr int kExitOfBadSetting = 2;

[[noreturn]] void reject(const char *name, std::string_view value, const char *form) {
  std::fprintf(stderr, "softgpu: %s=%.*s: it is %s\n", name, static_cast<int>(value.size()),
               value.data(), form);
  std::exit(kExitOfBadSetting);
}

std::string text_of(const char *name) {
  const char *value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<uint64_t> read_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

uint64_t number_of(const char *name, uint64_t otherwise) {
  const std::string text = text_of(name);
  if (text.empty()) return otherwise;
  const std::optional<uint64_t> number = read_number(text);
  if (!number) reject(name, text, "a number");
  return *number;
}

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Injection read_injection(const std::string &text) {
  constexpr char kName[] = "SOFTGPU_FAIL";
  constexpr char kForm[] = "FUNCTION:N or FUNCTION:N=cudaErrorName, with commas between several";
  const size_t colon = text.find(':'), equals = text.find('=');
  if (colon == std::string::npos) reject(kName, text, kForm);
  const std::string number =
      text.substr(colon + 1, equals == std::string::npos ? std::string::npos : equals - colon - 1);
  const std::optional<uint64_t> n = read_number(number);
  if (!n || *n == 0) reject(kName, text, kForm);
  Injection injection{text.substr(0, colon), *n, -1};
  if (equals != std::string::npos) {
    injection.error = error_of_name(text.substr(equals + 1));
    if (injection.error <= 0) reject(kName, text, kForm);
  }
  return injection;
}

/// The name of a file that every process of a run can have for itself.
std::string file_of(const char *name) {
  std::string file = text_of(name);
  const size_t at = file.find("%p");
  if (at != std::string::npos) file.replace(at, 2, std::to_string(getpid()));
  return file;
}

Settings read_settings() {
  Settings s;
  s.is_synchronous = number_of("SOFTGPU_SYNC", 0) != 0;
  s.delay =
      std::chrono::microseconds(number_of("SOFTGPU_DELAY", static_cast<uint64_t>(s.delay.count())));
  s.ptx_folders = split(text_of("SOFTGPU_PTX"), ':');
  for (const std::string &text : split(text_of("SOFTGPU_FAIL"), ','))
    s.injections.push_back(read_injection(text));
  s.count_file = file_of("SOFTGPU_COUNT");
  if (s.count_file == "1") s.count_file.clear();  // counts, and writes nothing
  s.cover_file = file_of("SOFTGPU_COVER");
  s.memory_bytes = number_of("SOFTGPU_MEMORY", s.memory_bytes);
  return s;
}

}  // namespace

const Settings &settings() {
  static const Settings *const read =
      new Settings(read_settings());  // the report at the end needs it
  return *read;
}

}  // namespace softgpu::runtime
