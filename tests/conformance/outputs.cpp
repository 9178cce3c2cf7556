#include "outputs.h"

#include <algorithm>
#include <cstdio>

namespace mpconform {

namespace {

/// Formats an element as one hexadecimal number; bytes are little-endian in memory.
std::string element_text(const Part &part, size_t index) {
  std::string text = "0x";
  for (size_t i = part.element_bytes; i-- > 0;) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", part.bytes[index * part.element_bytes + i]);
    text += digits;
  }
  return text;
}

std::string difference(const Part &wanted, const Part &got) {
  if (wanted.name != got.name || wanted.element_bytes != got.element_bytes ||
      wanted.bytes.size() != got.bytes.size())
    return wanted.name + " and " + got.name + " are not the same kind of thing";
  const size_t count = wanted.bytes.size() / wanted.element_bytes;
  size_t num_different = 0, first = 0;
  for (size_t i = count; i-- > 0;) {
    const auto begin = [&](const Part &part) {
      return part.bytes.begin() + static_cast<ptrdiff_t>(i * part.element_bytes);
    };
    if (std::equal(begin(wanted), begin(wanted) + static_cast<ptrdiff_t>(wanted.element_bytes),
                   begin(got)))
      continue;
    num_different++;
    first = i;
  }
  if (num_different == 0) return "";
  return wanted.name + ": " + std::to_string(num_different) + " of " + std::to_string(count) +
         " elements differ, the first at [" + std::to_string(first / wanted.columns) + "][" +
         std::to_string(first % wanted.columns) + "]: wanted " + element_text(wanted, first) +
         ", got " + element_text(got, first);
}

}  // namespace

std::string differences(const Output &wanted, const Output &got) {
  if (wanted.size() != got.size())
    return std::to_string(got.size()) + " parts instead of " + std::to_string(wanted.size());
  std::string all;
  for (size_t i = 0; i < wanted.size(); i++)
    if (const std::string text = difference(wanted[i], got[i]); !text.empty())
      all += (all.empty() ? "" : "\n  ") + text;
  return all;
}

}  // namespace mpconform
