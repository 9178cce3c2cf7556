#include "outputs.h"

#include <algorithm>
#include <cstdio>

namespace mpconform {

namespace {

/// Formats an element as one hexadecimal number; bytes are little-endian in memory.
std::string element_text(const std::vector<uint8_t> &bytes, size_t element_bytes, size_t index) {
  std::string text = "0x";
  for (size_t i = element_bytes; i-- > 0;) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", bytes[index * element_bytes + i]);
    text += digits;
  }
  return text;
}

std::string difference(const Part &part) {
  const size_t bytes = part.element_bytes, count = part.wanted.size() / bytes;
  if (part.got.size() != part.wanted.size())
    return part.name + ": " + std::to_string(part.got.size() / bytes) + " elements instead of " +
           std::to_string(count);
  size_t num_different = 0, first = 0;
  for (size_t i = count; i-- > 0;) {
    const auto wanted = part.wanted.begin() + static_cast<ptrdiff_t>(i * bytes);
    const auto got = part.got.begin() + static_cast<ptrdiff_t>(i * bytes);
    if (std::equal(wanted, wanted + static_cast<ptrdiff_t>(bytes), got)) continue;
    num_different++;
    first = i;
  }
  if (num_different == 0) return "";
  return part.name + ": " + std::to_string(num_different) + " of " + std::to_string(count) +
         " elements differ, the first at [" + std::to_string(first / part.columns) + "][" +
         std::to_string(first % part.columns) + "]: wanted " +
         element_text(part.wanted, bytes, first) + ", got " + element_text(part.got, bytes, first);
}

}  // namespace

std::string differences(const Output &output) {
  std::string all;
  for (const Part &part : output)
    if (const std::string text = difference(part); !text.empty())
      all += (all.empty() ? "" : "\n  ") + text;
  return all;
}

}  // namespace mpconform
