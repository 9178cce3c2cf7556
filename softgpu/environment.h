// Environment variables.  An invalid value ends the process with an error message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace softgpu {

/// Returns the value of a variable, or "" if it is not set.
std::string_view text_of(const char *name);
/// Ends the process: the value, or a part of it, is not `what`.
[[noreturn]] void refuse(const char *name, std::string_view value, const std::string &what);
/// Parses a decimal number; nullopt if the text is not a number of at most 64 bits.
std::optional<uint64_t> parse_number(std::string_view text);
/// Returns the number in a variable, or `otherwise` if it is not set.
uint64_t number_of(const char *name, uint64_t otherwise, uint64_t least, uint64_t largest);
/// Overwrites `*value` if the variable is set.
template <class T>
void read_number(const char *name, uint64_t least, uint64_t largest, T *value) {
  *value = static_cast<T>(number_of(name, static_cast<uint64_t>(*value), least, largest));
}
/// Returns a variable that must be 0 or 1; 0 if it is not set.
bool read_switch(const char *name);

}  // namespace softgpu
