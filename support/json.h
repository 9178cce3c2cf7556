// Just enough JSON for report.json: nested objects and arrays, written as they come.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>

#include "text.h"

namespace mptools {

class JsonWriter {
 public:
  /// `key` is empty inside arrays and at the top.
  void open(char bracket, std::string_view key = {}) {
    item(key);
    text_ += bracket;
    ++depth_;
    is_first_ = true;
  }
  void close(char bracket) {
    --depth_;
    new_line();
    text_ += bracket;
    is_first_ = false;
  }
  void string(std::string_view key, std::string_view value) {
    item(key);
    quote(value);
  }
  void number(std::string_view key, std::integral auto value) {
    item(key);
    text_ += std::to_string(value);
  }
  /// The shortest digits that read back as the same value; null for what JSON has no number for.
  void number(std::string_view key, double value) {
    item(key);
    char digits[32];
    const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, value);
    text_ += std::isfinite(value) ? std::string(digits, end.ptr) : "null";
  }
  void boolean(std::string_view key, bool value) {
    item(key);
    text_ += value ? "true" : "false";
  }
  void null(std::string_view key) {
    item(key);
    text_ += "null";
  }

  std::string finish() const { return text_ + "\n"; }

 private:
  void item(std::string_view key) {
    if (!is_first_) text_ += ',';
    if (depth_ > 0) new_line();
    is_first_ = false;
    if (key.empty()) return;
    quote(key);
    text_ += ": ";
  }
  void new_line() { text_ += '\n' + std::string(static_cast<size_t>(2 * depth_), ' '); }
  void quote(std::string_view value) {
    text_ += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') text_ += '\\';
      const bool is_control = static_cast<unsigned char>(c) < 0x20;
      text_ += is_control ? text("\\u%04x", static_cast<unsigned>(c)) : std::string(1, c);
    }
    text_ += '"';
  }

  std::string text_;
  int depth_ = 0;
  bool is_first_ = true;
};

}  // namespace mptools
