// Test kernels with matrices in registers.
#pragma once

#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace softgpu::test {

enum class Element { kHalf, kBfloat, kTf32 };

/// Returns the bits of a number that is exact in the type.
inline uint32_t bits_of(Element type, float value) {
  if (type == Element::kHalf) return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
  const auto bits = std::bit_cast<uint32_t>(value);
  return type == Element::kBfloat ? bits >> 16 : bits;
}

inline const char *name_of(Element type) {
  return type == Element::kHalf ? "f16" : type == Element::kBfloat ? "bf16" : "tf32";
}

/// Matrix of small integers, for which fp32 sums of products are exact.
struct Matrix {
  int rows, columns;
  std::vector<float> values;

  Matrix(int num_rows, int num_columns)
      : rows(num_rows), columns(num_columns), values(static_cast<size_t>(rows * columns)) {}
  Matrix(int num_rows, int num_columns, unsigned seed) : Matrix(num_rows, num_columns) {
    std::mt19937 random(seed);
    for (float &x : values) x = static_cast<float>(static_cast<int>(random() % 9) - 4);
  }
  float &operator()(int row, int column) {
    return values[static_cast<size_t>(row * columns + column)];
  }
  float operator()(int row, int column) const {
    return values[static_cast<size_t>(row * columns + column)];
  }
};

/// Returns c + scale a b.
inline Matrix product(const Matrix &a, const Matrix &b, Matrix c, float scale = 1) {
  for (int i = 0; i < a.rows; i++)
    for (int j = 0; j < b.columns; j++)
      for (int k = 0; k < a.columns; k++) c(i, j) += scale * a(i, k) * b(k, j);
  return c;
}

/// Returns "{%a0, %a1, %a2}".
inline std::string registers(const std::string &name, int count) {
  std::string text;
  for (int i = 0; i < count; i++) text += (i ? ", %" : "{%") + name + std::to_string(i);
  return text + "}";
}

/// Declares 32-bit registers NAME0, NAME1, ... and loads each from a row of a buffer, with one
/// element per thread.
inline std::string load_registers(const std::string &name, int count, int buffer,
                                  int num_threads = 32) {
  const std::string address = "%at_" + name;
  std::string text = ".reg .b32 %" + name + "<" + std::to_string(count) + ">;\n.reg .b64 " +
                     address + ";\nmad.wide.u32 " + address + ", %t, 4, %p" +
                     std::to_string(buffer) + ";\n";
  for (int i = 0; i < count; i++)
    text += "ld.global.b32 %" + name + std::to_string(i) + ", [" + address + "+" +
            std::to_string(4 * num_threads * i) + "];\n";
  return text;
}

/// Stores such registers to a buffer.
inline std::string store_registers(const std::string &name, int count, int buffer,
                                   int num_threads = 32) {
  const std::string address = "%to_" + name;
  std::string text = ".reg .b64 " + address + ";\nmad.wide.u32 " + address + ", %t, 4, %p" +
                     std::to_string(buffer) + ";\n";
  for (int i = 0; i < count; i++)
    text += "st.global.b32 [" + address + "+" + std::to_string(4 * num_threads * i) + "], %" +
            name + std::to_string(i) + ";\n";
  return text;
}

}  // namespace softgpu::test
