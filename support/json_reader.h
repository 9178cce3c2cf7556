// Reads back what json.h writes.  Numbers are doubles; of \u only what json.h writes, below 128.
#pragma once

#include <charconv>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "text.h"

namespace mptools {

class Json {
 public:
  enum class Kind { null, boolean, number, string, array, object };

  /// @throws std::runtime_error, with the place where it is not JSON.
  static Json parse(std::string_view text);

  /// @throws std::runtime_error where the value is of another kind, or lacks the member.
  double number() const { return of_kind(Kind::number, "a number").number_; }
  bool boolean() const { return of_kind(Kind::boolean, "true or false").number_ != 0; }
  const std::string &string() const { return of_kind(Kind::string, "text").string_; }
  const std::vector<Json> &items() const { return of_kind(Kind::array, "a list").items_; }
  const Json &operator[](const std::string &key) const {
    const auto &members = of_kind(Kind::object, "an object").members_;
    const auto found = members.find(key);
    if (found == members.end()) throw std::runtime_error("it has no \"" + key + "\"");
    return found->second;
  }

 private:
  friend class JsonParser;

  const Json &of_kind(Kind kind, const char *what) const {
    if (kind_ != kind) throw std::runtime_error(std::string("a value in it is not ") + what);
    return *this;
  }

  Kind kind_ = Kind::null;
  double number_ = 0;  ///< and 1 for true
  std::string string_;
  std::vector<Json> items_;
  std::map<std::string, Json> members_;
};

class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : text_(text) {}

  Json parse() {
    Json value = parse_value(0);
    if (next() != '\0') fail("something behind the end");
    return value;
  }

 private:
  static constexpr int kDeepest = 100;

  [[noreturn]] void fail(const char *what) const {
    throw std::runtime_error(text("it is no JSON: %s at byte %zu", what, at_));
  }
  /// The next letter that is no space; 0 at the end.
  char next() {
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char letter) {
    const bool is_there = next() == letter;
    if (is_there) ++at_;
    return is_there;
  }
  bool take_word(std::string_view word) {
    const bool is_there = text_.substr(at_, word.size()) == word;
    if (is_there) at_ += word.size();
    return is_there;
  }

  Json parse_value(int depth) {
    if (depth > kDeepest) fail("too deep");
    Json value;
    const char first = next();
    if (first == '{') {
      parse_members(value, depth);
    } else if (first == '[') {
      parse_items(value, depth);
    } else if (first == '"') {
      value.kind_ = Json::Kind::string;
      value.string_ = parse_string();
    } else if (take_word("true") || take_word("false")) {
      value.kind_ = Json::Kind::boolean;
      value.number_ = first == 't';
    } else if (!take_word("null")) {
      parse_number(value);
    }
    return value;
  }

  void parse_members(Json &value, int depth) {
    value.kind_ = Json::Kind::object;
    take('{');
    if (take('}')) return;
    do {
      if (next() != '"') fail("no name");
      const std::string key = parse_string();
      if (!take(':')) fail("no colon");
      value.members_[key] = parse_value(depth + 1);
    } while (take(','));
    if (!take('}')) fail("no }");
  }

  void parse_items(Json &value, int depth) {
    value.kind_ = Json::Kind::array;
    take('[');
    if (take(']')) return;
    do {
      value.items_.push_back(parse_value(depth + 1));
    } while (take(','));
    if (!take(']')) fail("no ]");
  }

  void parse_number(Json &value) {
    value.kind_ = Json::Kind::number;
    const char *const end = text_.data() + text_.size();
    const std::from_chars_result read = std::from_chars(text_.data() + at_, end, value.number_);
    if (read.ec != std::errc()) fail("no value");
    at_ = static_cast<size_t>(read.ptr - text_.data());
  }

  std::string parse_string() {
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_)
      value += text_[at_] == '\\' ? parse_escaped() : text_[at_];
    if (at_ >= text_.size()) fail("text without an end");
    ++at_;
    return value;
  }

  /// Leaves the last letter to be passed.
  char parse_escaped() {
    if (++at_ >= text_.size()) fail("text without an end");
    if (text_[at_] == '"' || text_[at_] == '\\') return text_[at_];
    unsigned code = 0;
    const char *const digits = text_.data() + at_ + 1;
    if (text_[at_] != 'u' || at_ + 4 >= text_.size() ||
        std::from_chars(digits, digits + 4, code, 16).ptr != digits + 4 || code >= 128)
      fail("an escape that is not known");
    at_ += 4;
    return static_cast<char>(code);
  }

  std::string_view text_;
  size_t at_ = 0;
};

inline Json Json::parse(std::string_view text) {
  return JsonParser(text).parse();
}

}  // namespace mptools
