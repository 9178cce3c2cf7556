// Helpers for text from users: names of configurations, environment variables.
#pragma once

#include <algorithm>
#include <string_view>

namespace mp {

/// Compares ASCII, independent of the locale.
inline bool equals_ignore_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

/// Returns the start of a text, short enough for a message.
inline std::string_view truncated(std::string_view text) {
  return text.substr(0, 100);
}

}  // namespace mp
