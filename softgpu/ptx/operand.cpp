#include "softgpu/ptx/operand.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

namespace softgpu::ptx {

void OperandReader::set_register(Operand &x, int reg) const {
  x.reg = reg;
  x.width = body_.registers[static_cast<size_t>(reg)].width;
  x.is_half = body_.registers[static_cast<size_t>(reg)].is_half;
}

Operand OperandReader::read() {
  Operand x = read_one();
  if (reader_.take('|')) x.second = std::make_shared<const Operand>(read_one());
  return x;
}

Operand OperandReader::read_one() {
  Operand x;
  if (reader_.take('{')) {
    x.kind = OperandKind::kVector;
    do {
      x.items.push_back(read_one());
    } while (reader_.take(','));
    reader_.expect('}');
  } else if (reader_.peek() == '[') {
    x = read_address();
  } else if (reader_.take('!')) {
    x = read_register();
    x.is_negated = true;
  } else if (!read_constant(reader_, x)) {
    x = read_named();
  }
  return x;
}

/// Parses a register, special register, symbol or `_`.
Operand OperandReader::read_named() {
  const std::string_view name = reader_.word();
  Operand x;
  if (name.empty()) reader_.fail("expected an operand");
  if (name == "_") return x;
  if (const int reg = scopes_.find_register(name); reg >= 0) {
    x.kind = OperandKind::kRegister;
    set_register(x, reg);
  } else if (name[0] == '%') {
    x.kind = OperandKind::kSpecial;
  } else if (name == "WARP_SZ") {
    x.kind = OperandKind::kImmediate;
    x.bits = 32;
  } else {
    x.kind = OperandKind::kSymbol;
    const std::string_view unique = scopes_.find_symbol(name);
    x.name = unique.empty() ? name : unique;
    x.offset = read_offset();
    return x;
  }
  x.name = name;
  return x;
}

Operand OperandReader::read_register() {
  const Reader begin = reader_;
  Operand x = read_named();
  if (x.kind != OperandKind::kRegister) begin.fail("expected a register");
  return x;
}

/// Parses `+8`, `-8`, `+-8` or nothing.
int64_t OperandReader::read_offset() {
  const bool is_positive = reader_.take('+');
  const bool is_negative = !is_positive && reader_.take('-');
  if (!is_positive && !is_negative) return 0;
  Operand x;
  if (!read_constant(reader_, x) || x.is_float) reader_.fail("expected an offset");
  const auto offset = static_cast<int64_t>(x.bits);
  return is_negative ? -offset : offset;
}

/// Parses `[%rd1+8]`, `[name]`, `[16]` or, for TMA, `[%rd1, {%r1, %r2}]`.
Operand OperandReader::read_address() {
  reader_.expect('[');
  Operand x;
  if (!read_constant(reader_, x)) {
    x = read_named();
    if (x.kind != OperandKind::kRegister && x.kind != OperandKind::kSymbol)
      reader_.fail("expected an address");
    if (x.kind == OperandKind::kRegister) {
      x.name = {};
      x.offset = read_offset();
    }
  } else {
    x.offset = static_cast<int64_t>(std::exchange(x.bits, 0));
  }
  x.kind = OperandKind::kAddress;
  while (reader_.take(',')) x.items.push_back(read_one());
  reader_.expect(']');
  return x;
}

// ---- variables

namespace {

/// Parses the words before the name.
void read_type(Reader &reader, Variable &v, uint32_t &element_size) {
  bool is_pointer = false;
  uint32_t vector_length = 1;
  while (reader.peek() == '.') {
    const std::string_view word = reader.word();
    if (word == ".extern") {
      v.is_extern = true;
    } else if (word == ".ptr") {
      is_pointer = true;
    } else if (word == ".align") {  // alignment of the target if it follows .ptr
      const uint32_t alignment = reader.number();
      if (!is_pointer) v.alignment = alignment;
    } else if (word == ".attribute") {
      reader.until(')');
    } else if (word == ".v2" || word == ".v4") {
      vector_length = word == ".v2" ? 2 : 4;
    } else if (const int size = type_size(word.substr(1)); size != 0) {
      v.type = word.substr(1);
      element_size = static_cast<uint32_t>(size);
    }
  }
  if (element_size == 0) reader.fail("a variable of an unknown type");
  element_size *= vector_length;
  v.alignment = std::max(v.alignment, element_size);
}

/// Parses `[2][3]`.  The first dimension may be empty: its size follows from the initializer or is
/// defined elsewhere.
void read_dimensions(Reader &reader, Variable &v) {
  while (reader.take('[')) {
    if (reader.take(']')) {
      v.size = 0;
      continue;
    }
    v.size *= reader.number();
    reader.expect(']');
  }
}

/// Parses `= 5` or `= {1, {2, 3}}`.
void read_initialiser(Reader &reader, Variable &v) {
  const auto size = static_cast<size_t>(type_size(v.type));
  int depth = 0;
  do {
    if (reader.take('{')) {
      depth++;
    } else if (reader.take('}')) {
      depth--;
    } else if (!reader.take(',')) {
      Operand x;
      if (!read_constant(reader, x)) reader.fail("an initializer that is not a number");
      v.initial.resize(v.initial.size() + size);
      std::memcpy(v.initial.data() + v.initial.size() - size, &x.bits, size);
    }
  } while (depth > 0);
}

}  // namespace

Variable read_variable(Reader &reader) {
  Variable v;
  uint32_t element_size = 0;
  read_type(reader, v, element_size);
  v.name = reader.word();
  if (v.name.empty()) reader.fail("a variable without a name");
  v.size = element_size;
  read_dimensions(reader, v);
  if (reader.take('=')) read_initialiser(reader, v);
  v.size = std::max<uint64_t>(v.size, v.initial.size());
  return v;
}

std::vector<Variable> read_parameters(Reader &reader) {
  std::vector<Variable> parameters;
  reader.expect('(');
  if (reader.take(')')) return parameters;
  do {
    parameters.push_back(read_variable(reader));
  } while (reader.take(','));
  reader.expect(')');
  return parameters;
}

// ---- constants

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Converts the complete text to a number.
bool to_integer(std::string_view text, int base, uint64_t &value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

/// Converts a hexadecimal, octal, binary or decimal number, with an optional suffix U.
bool to_integer(std::string_view text, uint64_t &value) {
  if (text.ends_with('U') || text.ends_with('u')) text.remove_suffix(1);
  if (text.starts_with("0x") || text.starts_with("0X"))
    return to_integer(text.substr(2), 16, value);
  if (text.starts_with("0b") || text.starts_with("0B")) return to_integer(text.substr(2), 2, value);
  return to_integer(text, text.size() > 1 && text[0] == '0' ? 8 : 10, value);
}

/// Converts 0f3F800000 or 0d3FF0000000000000: the bits of a float or a double.
bool to_float_bits(std::string_view text, Operand &x) {
  const char kind = text.size() > 1 && text[0] == '0' ? static_cast<char>(text[1] | ' ') : '\0';
  if (!(kind == 'f' && text.size() == 10) && !(kind == 'd' && text.size() == 18)) return false;
  x.is_float = true;
  x.is_double = kind == 'd';
  return to_integer(text.substr(2), 16, x.bits);
}

/// Converts a decimal double, such as 1.5 or 1e-5.
bool to_double(std::string_view text, Operand &x) {
  if (text.find_first_of(".eE") == text.npos) return false;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  x.is_float = x.is_double = true;
  x.bits = std::bit_cast<uint64_t>(value);
  return true;
}

/// Returns the characters of a number, including the sign of an exponent.
std::string_view number_word(Reader &reader) {
  std::string_view text = reader.word();
  const bool has_exponent = (text.ends_with('e') || text.ends_with('E')) && !text.starts_with("0x");
  if (has_exponent && (reader.take('-') || reader.take('+'))) {
    const std::string_view digits = reader.word();
    text = {text.data(), static_cast<size_t>(digits.data() + digits.size() - text.data())};
  }
  return text;
}

}  // namespace

int type_size(std::string_view type) {
  static constexpr std::pair<std::string_view, int> kSizes[] = {
      {"b32", 4}, {"u32", 4},  {"s32", 4},   {"f32", 4},   {"b64", 8},   {"u64", 8},   {"s64", 8},
      {"f64", 8}, {"b16", 2},  {"u16", 2},   {"s16", 2},   {"f16", 2},   {"b8", 1},    {"u8", 1},
      {"s8", 1},  {"bf16", 2}, {"f16x2", 4}, {"u16x2", 4}, {"s16x2", 4}, {"bf16x2", 4}};
  for (const auto &[name, size] : kSizes)
    if (name == type) return size;
  return 0;
}

bool read_constant(Reader &reader, Operand &x) {
  const Reader begin = reader;
  const bool is_negative = reader.take('-');
  if (!is_digit(reader.peek())) {
    reader = begin;
    return false;
  }
  const std::string_view text = number_word(reader);
  x.kind = OperandKind::kImmediate;
  if (!to_float_bits(text, x) && !to_integer(text, x.bits) && !to_double(text, x)) {
    reader = begin;
    reader.fail("an invalid number");
  }
  if (is_negative && x.is_float) {
    x.bits ^= uint64_t{1} << (x.is_double ? 63 : 31);
  } else if (is_negative) {
    x.bits = -x.bits;
  }
  return true;
}

// ---- reader

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
