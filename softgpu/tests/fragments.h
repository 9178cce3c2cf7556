// Test kernels with matrices in registers.
#pragma once

#include <string>

namespace softgpu::test {

/// Returns "{%a0, %a1, %a2}".
inline std::string registers(const std::string &name, int count) {
  std::string text;
  for (int i = 0; i < count; i++) text += (i ? ", %" : "{%") + name + std::to_string(i);
  return text + "}";
}

/// Stores 32-bit registers NAME0, NAME1, ... to rows of a buffer, with one element per thread.
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
