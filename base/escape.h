// Escaping of external text (names, paths, values of variables) in reports, logs and JSON.  Escaped
// text cannot end a line, move a cursor, reorder the display or make a line invalid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mp {

/// First character of a text.
struct Utf8Character {
  uint32_t code;
  size_t bytes;  ///< 0 if the text does not begin with a valid UTF-8 character
};

constexpr Utf8Character first_character(std::string_view text) {
  const auto byte = [text](size_t i) -> uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xc2 || lead > 0xf4) return {0, 0};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  uint32_t code = lead & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; i++) {
    if ((byte(i) & 0xc0U) != 0x80) return {0, 0};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr uint32_t kMin[] = {0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kMin[bytes - 2] || code > 0x10ffff || is_surrogate) return {0, 0};
  return {code, bytes};
}

/// Returns whether a character is a control character (C0, DEL, C1), a line separator or an
/// override of the text direction.
constexpr bool is_control(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

/// Calls emit(std::string_view) for each character in order: control characters as \u000a, invalid
/// UTF-8 bytes as U+FFFD.  Allocates no memory.
template <class Emit>
void for_each_escaped(std::string_view text, const Emit &emit) {
  while (!text.empty()) {
    const Utf8Character c = first_character(text);
    if (c.bytes == 0) {
      emit(std::string_view("\xef\xbf\xbd"));
    } else if (is_control(c.code)) {
      constexpr std::string_view kHex = "0123456789abcdef";
      const char escape[] = {'\\',
                             'u',
                             kHex[c.code >> 12],
                             kHex[c.code >> 8 & 15],
                             kHex[c.code >> 4 & 15],
                             kHex[c.code & 15]};
      emit(std::string_view(escape, sizeof escape));
    } else {
      emit(text.substr(0, c.bytes));
    }
    text.remove_prefix(c.bytes == 0 ? 1 : c.bytes);
  }
}

/// Escapes text for output within a line.
inline std::string escaped(std::string_view text) {
  std::string line;
  for_each_escaped(text, [&](std::string_view part) { line += part; });
  return line;
}

/// Quotes and escapes text as a JSON string.
inline std::string json_string(std::string_view text) {
  std::string json = "\"";
  for_each_escaped(text, [&](std::string_view part) {
    if (part == "\"" || part == "\\") json += '\\';
    json += part;
  });
  return json + '"';
}

}  // namespace mp
