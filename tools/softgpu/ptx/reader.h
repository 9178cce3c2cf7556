// Reads a PTX text from left to right and knows on which line it is.
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

  /// White space and comments.
  void skip_blanks();
  /// The next character that is no blank, 0 at the end.
  char peek();
  /// Takes this character if it comes next.
  bool take(char);
  void expect(char);
  /// The longest run of letters, digits and _ $ % . that comes next.
  std::string_view word();
  /// A word that may have `::` in it.
  std::string_view opcode();
  /// A decimal number.
  uint32_t number();
  /// What stands before the next such character that is in no comment and no string; takes the
  /// character too.
  std::string_view until(char);
  /// A block in braces, from the one that comes next to its partner.
  std::string_view block();
  void skip_line();

  /// Throws Error: "FILE.ptx:120: WHAT: what comes next".
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

/// The text on one line: a run of blanks becomes a space.
std::string on_one_line(std::string_view text);

}  // namespace softgpu::ptx
