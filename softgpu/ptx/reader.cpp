#include "softgpu/ptx/reader.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "softgpu/ptx/syntax.h"

namespace softgpu::ptx {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

/// Lookup table of characters.  Modules have megabytes of text, so a character must cost about one
/// cycle.
using CharacterSet = std::array<bool, 256>;

constexpr CharacterSet set_of(std::string_view characters) {
  CharacterSet set{};
  for (char c : characters) set[static_cast<unsigned char>(c)] = true;
  return set;
}

constexpr CharacterSet kWordCharacters = set_of(
    "abcdefghijklmnopqrstuvwxyz"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    "0123456789_$%.");
constexpr CharacterSet kOpcodeCharacters = [] {
  CharacterSet set = kWordCharacters;
  set[':'] = true;
  return set;
}();
constexpr CharacterSet kBraces = set_of("{}/\"");

bool is_in(const CharacterSet &set, char c) {
  return set[static_cast<unsigned char>(c)];
}

}  // namespace

/// Called at '/' or '"': skips a comment or string, or the character if it starts neither.
void Reader::skip_comment_or_string() {
  const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
  size_t length = 1;
  if (rest.starts_with("//")) {
    length = rest.find('\n');
  } else if (rest.starts_with("/*")) {
    length = rest.find("*/", 2);
    if (length != rest.npos) length += 2;
  } else if (rest[0] == '"') {
    length = rest.find('"', 1);
    if (length != rest.npos) length += 1;
  }
  const char *behind = length == rest.npos ? end_ : at_ + length;
  line_ += static_cast<uint32_t>(std::count(at_, behind, '\n'));
  at_ = behind;
}

void Reader::skip_blanks() {
  while (at_ != end_) {
    if (*at_ == '\n') {
      line_++;
      at_++;
    } else if (is_blank(*at_)) {
      at_++;
    } else if (*at_ == '/' && end_ - at_ > 1 && (at_[1] == '/' || at_[1] == '*')) {
      skip_comment_or_string();
    } else {
      return;
    }
  }
}

char Reader::peek() {
  skip_blanks();
  return at_ == end_ ? '\0' : *at_;
}

bool Reader::take(char c) {
  if (peek() != c || at_ == end_) return false;
  at_++;
  return true;
}

void Reader::expect(char c) {
  if (!take(c)) fail(std::string("expected '") + c + "'");
}

std::string_view Reader::word() {
  skip_blanks();
  const char *begin = at_;
  while (at_ != end_ && is_in(kWordCharacters, *at_)) at_++;
  return {begin, static_cast<size_t>(at_ - begin)};
}

std::string_view Reader::opcode() {
  skip_blanks();
  const char *begin = at_;
  while (at_ != end_ && is_in(kOpcodeCharacters, *at_)) at_++;
  return {begin, static_cast<size_t>(at_ - begin)};
}

uint32_t Reader::number() {
  skip_blanks();
  if (at_ == end_ || *at_ < '0' || *at_ > '9') fail("expected a number");
  uint64_t value = 0;
  for (; at_ != end_ && *at_ >= '0' && *at_ <= '9'; at_++) {
    value = 10 * value + static_cast<uint64_t>(*at_ - '0');
    if (value > UINT32_MAX) fail("a number that is too large");
  }
  return static_cast<uint32_t>(value);
}

std::string_view Reader::until(char c) {
  const char *begin = at_;
  while (at_ != end_ && *at_ != c) {
    if (*at_ == '/' || *at_ == '"') {
      skip_comment_or_string();
    } else {
      line_ += *at_ == '\n';
      at_++;
    }
  }
  if (at_ == end_) {
    at_ = begin;
    fail(std::string("expected '") + c + "' behind");
  }
  return {begin, static_cast<size_t>(at_++ - begin)};
}

std::string_view Reader::block() {
  skip_blanks();
  const char *begin = at_, *counted = at_;
  int depth = 0;
  while (at_ != end_) {
    if (!is_in(kBraces, *at_)) {
      at_++;
      continue;
    }
    if (*at_ == '/' || *at_ == '"') {
      line_ += static_cast<uint32_t>(std::count(counted, at_, '\n'));
      skip_comment_or_string();
      counted = at_;
      continue;
    }
    depth += *at_ == '{' ? 1 : -1;
    at_++;
    if (depth == 0) {
      line_ += static_cast<uint32_t>(std::count(counted, at_, '\n'));
      return {begin, static_cast<size_t>(at_ - begin)};
    }
  }
  at_ = begin;
  fail("a block without an end");
}

void Reader::skip_line() {
  const void *newline = std::memchr(at_, '\n', static_cast<size_t>(end_ - at_));
  at_ = newline == nullptr ? end_ : static_cast<const char *>(newline);
}

void Reader::fail(const std::string &what) const {
  const std::string_view rest(at_, std::min<size_t>(static_cast<size_t>(end_ - at_), 200));
  fail_at(*file_, line_, what, rest.substr(0, rest.find('\n')));
}

void fail_at(const std::string &file, uint32_t line, const std::string &what,
             std::string_view statement) {
  throw Error(file + ":" + std::to_string(line) + ": " + what + ": " + on_one_line(statement));
}

std::string on_one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (char c : text) {
    if (!is_blank(c)) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace softgpu::ptx
