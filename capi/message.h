// One line of text in a fixed buffer, so that running out of memory can be reported too.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace mp {

/// The number a C caller put into an enumeration.  Read as bytes: a load as the enumeration would
/// let the compiler assume that it is one of the enumerators.
template <class Enum>
int32_t enum_value(const Enum &field) {
  static_assert(std::is_enum_v<Enum> && sizeof(Enum) == sizeof(int32_t));
  int32_t value;
  std::memcpy(&value, &field, sizeof value);
  return value;
}

/// One line of text, cut off where the buffer ends.
class Message {
 public:
  constexpr Message() = default;

  template <class... Parts>
  explicit Message(const Parts &...parts) {
    (append(parts), ...);
  }

  const char *c_str() const { return text_; }

 private:
  static constexpr size_t kCapacity = 512;

  template <class Part>
  void append(const Part &part) {
    if constexpr (std::is_convertible_v<Part, std::string_view>) {
      append_text(part);
    } else if constexpr (std::is_pointer_v<Part>) {
      append_text("0x");
      append_number(reinterpret_cast<uintptr_t>(part), 16);
    } else if constexpr (std::is_enum_v<Part>) {
      append_number(enum_value(part));
    } else {
      append_number(part);
    }
  }

  void append_text(std::string_view text) {
    const size_t bytes = std::min(text.size(), kCapacity - 1 - size_);
    std::replace_copy(text.begin(), text.begin() + static_cast<ptrdiff_t>(bytes), text_ + size_,
                      '\n', ' ');
    size_ += bytes;
    text_[size_] = '\0';
  }

  template <class Number, class... Base>
  void append_number(Number number, Base... base) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, number, base...).ptr;
    append_text({digits, static_cast<size_t>(end - digits)});
  }

  char text_[kCapacity] = {};
  size_t size_ = 0;
};

}  // namespace mp
