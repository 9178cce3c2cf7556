// The output of a case of the conformance program, and its differences from the definition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace mpconform {

/// Output of one launch, in rows of `columns` elements, and the output that the primitive's
/// definition requires.
struct Part {
  std::string name;
  size_t element_bytes;
  size_t columns;
  std::vector<uint8_t> got, wanted;
};

using Output = std::vector<Part>;

enum class Mistake { none, made };

template <class T>
std::vector<uint8_t> bytes_of(const std::vector<T> &elements) {
  std::vector<uint8_t> bytes(elements.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

template <class T>
Part make_part(std::string name, size_t columns, const std::vector<T> &got,
               const std::vector<T> &wanted) {
  return {std::move(name), sizeof(T), columns, bytes_of(got), bytes_of(wanted)};
}

/// Returns an empty string if all elements are equal bit for bit; otherwise a line for each part
/// that differs, with the number of different elements and the first of them.
std::string differences(const Output &output);

}  // namespace mpconform
