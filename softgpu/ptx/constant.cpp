#include "softgpu/ptx/constant.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

namespace softgpu::ptx {
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

}  // namespace softgpu::ptx
