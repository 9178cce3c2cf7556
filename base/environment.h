// Environment variables of the library.  An invalid value is logged once and treated as unset.
#pragma once

#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/escape.h"

namespace mp {

/// Returns the value, or an empty string if the variable is not set.
inline std::string_view environment_value(const char *name) {
  const char *const value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// Log function; capi/ sets it to the library's log.
using EnvironmentLog = void (*)(const char *line);
inline void print_environment_line(const char *line) {
  std::fputs("mpcore: warn: ", stderr);
  for_each_escaped(line,
                   [](std::string_view part) { std::fwrite(part.data(), 1, part.size(), stderr); });
  std::fputc('\n', stderr);
}
inline constinit std::atomic<EnvironmentLog> environment_log{print_environment_line};

/// An environment variable.  Must be static: it stores whether its value has been logged.
class EnvironmentVariable {
 public:
  /// @param rule  e.g. "must be error, warn, info or debug"
  constexpr EnvironmentVariable(const char *name, const char *rule) : name_(name), rule_(rule) {}

  std::string_view value() const { return environment_value(name_); }
  const char *name() const { return name_; }

  /// Returns a number from `least` to `most`, or nullopt if the variable is unset or invalid.
  std::optional<int64_t> integer(int64_t least, int64_t most) {
    const std::string_view text = value();
    if (text.empty()) return std::nullopt;
    int64_t number = 0;
    const char *const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && stop == end && number >= least && number <= most) return number;
    refuse();
    return std::nullopt;
  }

  /// Returns the index of a word, or nullopt if the variable is unset or invalid.
  std::optional<size_t> word(std::initializer_list<std::string_view> words) {
    const std::string_view text = value();
    for (size_t i = 0; i < words.size(); i++)
      if (text == words.begin()[i]) return i;
    if (!text.empty()) refuse();
    return std::nullopt;
  }

  void refuse() { log_once(rule_, "; using the default"); }

  /// Logs "NAME = value: TEXT", once.
  void log_once(const char *text, const char *consequence = "") {
    if (is_logged_.test_and_set()) return;
    char line[512];
    const std::string_view word = value().substr(0, 200);
    std::snprintf(line, sizeof line, "%s = %.*s: %s%s", name_, static_cast<int>(word.size()),
                  word.data(), text, consequence);
    environment_log.load()(line);
  }

 private:
  const char *name_, *rule_;
  std::atomic_flag is_logged_;
};

}  // namespace mp
