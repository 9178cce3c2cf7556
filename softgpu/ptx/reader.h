// Reader for PTX text that tracks the line number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace softgpu::ptx {

class Reader {
 public:
  Reader(const std::string &file, std::string_view text, uint32_t line)
      : file_(&file), at_(text.data()), end_(text.data() + text.size()), line_(line) {}

  const std::string &file() const { return *file_; }
  uint32_t line() const { return line_; }
  const char *position() const { return at_; }
  bool is_done() const { return at_ == end_; }

  /// Skips white space and comments.
  void skip_blanks();
  /// Returns the next non-blank character, or 0 at the end.
  char peek();
  /// Consumes the character if it is next.
  bool take(char);
  void expect(char);
  /// Reads the longest sequence of letters, digits and the characters _ $ % .
  std::string_view word();
  /// Reads a word that may contain `::`.
  std::string_view opcode();
  /// Reads a decimal number.
  uint32_t number();
  /// Returns the text before the next such character outside comments and strings, and consumes the
  /// character.
  std::string_view until(char);
  /// Reads a block from the next brace to the matching one.
  std::string_view block();
  void skip_line();

  /// Throws Error: "FILE.ptx:120: WHAT: next text".
  [[noreturn]] void fail(const std::string &what) const;

 private:
  void skip_comment_or_string();

  const std::string *file_;
  const char *at_, *end_;
  uint32_t line_;
};

/// Throws Error: "FILE.ptx:120: WHAT: the statement".
[[noreturn]] void fail_at(const std::string &file, uint32_t line, const std::string &what,
                          std::string_view statement);

/// Returns the text with each run of blanks replaced by one space.
std::string on_one_line(std::string_view text);

}  // namespace softgpu::ptx
