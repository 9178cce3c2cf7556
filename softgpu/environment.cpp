#include "softgpu/environment.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace softgpu {

std::string_view text_of(const char *name) {
  const char *text = std::getenv(name);
  return text ? text : "";
}

void refuse(const char *name, std::string_view value, const std::string &what) {
  std::fprintf(stderr, "softgpu: %s=%.*s is not %s\n", name, static_cast<int>(value.size()),
               value.data(), what.c_str());
  std::_Exit(2);
}

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

uint64_t number_of(const char *name, uint64_t otherwise, uint64_t least, uint64_t largest) {
  const std::string_view text = text_of(name);
  if (text.empty()) return otherwise;
  const std::optional<uint64_t> number = parse_number(text);
  if (!number || *number < least || *number > largest)
    refuse(name, text, "a number from " + std::to_string(least) + " to " + std::to_string(largest));
  return *number;
}

bool read_switch(const char *name) {
  return number_of(name, 0, 0, 1) != 0;
}

}  // namespace softgpu
