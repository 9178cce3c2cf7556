// Variables of the environment.  A value that cannot be read ends the process with a sentence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace softgpu {

/// The value of a variable, "" if it is not set.
std::string_view text_of(const char *name);
/// The value, or a part of it, is not what it must be.
[[noreturn]] void refuse(const char *name, std::string_view value, const std::string &what);
/// A decimal number, and nothing else; nothing if it is none or none of 64 bits.
std::optional<uint64_t> parse_number(std::string_view text);
/// The number that a variable says; `otherwise` if it is not set.
uint64_t number_of(const char *name, uint64_t otherwise, uint64_t least, uint64_t largest);
/// The same where it is to be changed.
template <class T>
void read_number(const char *name, uint64_t least, uint64_t largest, T *value) {
  *value = static_cast<T>(number_of(name, static_cast<uint64_t>(*value), least, largest));
}
/// 0 or 1.
bool read_switch(const char *name);

}  // namespace softgpu
