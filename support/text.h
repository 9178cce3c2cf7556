// Formatting with printf (std::format is missing from the oldest supported g++, 12), dates as text,
// and writing of files.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "base/escape.h"
#include "base/files.h"

namespace mptools {

[[gnu::format(printf, 1, 2)]] inline std::string text(const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  std::string result(static_cast<size_t>(std::vsnprintf(nullptr, 0, format, arguments)), '\0');
  std::vsnprintf(result.data(), result.size() + 1, format, again);
  va_end(again);
  va_end(arguments);
  return result;
}

/// Escapes control characters, which a name or a command line may contain, so that the text is one
/// line.
inline std::string one_line(std::string_view line) {
  return mp::escaped(line);
}

/// Returns the date and time in ISO 8601.
inline std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return date;
}

/// Writes the complete file or nothing; see mp::replace_file.
inline void write_file(const std::filesystem::path &path, const std::string &content) {
  const int error = mp::replace_file(path.string(), content);
  if (error != 0)
    throw std::runtime_error("cannot write " + path.string() + ": " +
                             std::generic_category().message(error));
}

}  // namespace mptools
