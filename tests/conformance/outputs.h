// The output of a case of the conformance program, and the differences of two outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace mpconform {

/// Output of one launch, in rows of `columns` elements.
struct Part {
  std::string name;
  size_t element_bytes;
  size_t columns;
  std::vector<uint8_t> bytes;
};

using Output = std::vector<Part>;

enum class Mistake { none, made };

template <class T>
Part make_part(std::string name, size_t columns, const std::vector<T> &elements) {
  Part part{std::move(name), sizeof(T), columns, std::vector<uint8_t>(elements.size() * sizeof(T))};
  std::memcpy(part.bytes.data(), elements.data(), part.bytes.size());
  return part;
}

/// Returns an empty string if all elements are equal bit for bit; otherwise a line for each part
/// that differs, with the number of different elements and the first of them.
std::string differences(const Output &wanted, const Output &got);

}  // namespace mpconform
