// Text of messages: names of enumerators, macros for lists of names, and lines in a fixed buffer,
// which can report running out of memory.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/dtypes.h"
#include "mpcore.h"

namespace mp {

// ---------------------------------------------------------------------------- enumerators

/// Returns the integer value of an enumeration.  Copies bytes: a load of the enumeration type lets
/// the compiler assume a valid enumerator, but a C caller can store any integer.
template <class Enum>
int32_t enum_value(const Enum &field) {
  static_assert(std::is_enum_v<Enum> && sizeof(Enum) == sizeof(int32_t));
  int32_t value;
  std::memcpy(&value, &field, sizeof value);
  return value;
}

struct Enumerator {
  int32_t value;
  const char *name;
};

/// Enumerators in ascending order.
using Enumerators = std::span<const Enumerator>;

/// Returns all enumerators of `Enum`.
template <class Enum>
Enumerators enumerators_of();

/// Returns the name of an enumerator, or nullptr if `value` is not in `all`.
const char *name_of(Enumerators all, int32_t value);

// ---------------------------------------------------------------------------- lists of names

// MP_FOR_EACH applies X to each of the other arguments, up to 64; more do not compile.  Source:
// David Mazieres, Recursive macros with C++20 __VA_OPT__.
#define MP_PARENS ()
#define MP_REPEAT_4(...) __VA_ARGS__
#define MP_REPEAT_3(...) MP_REPEAT_4(MP_REPEAT_4(MP_REPEAT_4(MP_REPEAT_4(__VA_ARGS__))))
#define MP_REPEAT_2(...) MP_REPEAT_3(MP_REPEAT_3(MP_REPEAT_3(MP_REPEAT_3(__VA_ARGS__))))
#define MP_REPEAT(...) MP_REPEAT_2(MP_REPEAT_2(MP_REPEAT_2(MP_REPEAT_2(__VA_ARGS__))))
#define MP_FOR_EACH(X, ...) __VA_OPT__(MP_REPEAT(MP_EACH(X, __VA_ARGS__)))
#define MP_EACH(X, first, ...) X(first) __VA_OPT__(MP_EACH_AGAIN MP_PARENS(X, __VA_ARGS__))
#define MP_EACH_AGAIN() MP_EACH

/// Copies fields of the same names: to.a = from.a, to.b = from.b, ...
#define MP_COPY_FIELDS(to, from, ...)       \
  do {                                      \
    auto &copy_target = to;                 \
    const auto &copy_source = from;         \
    MP_FOR_EACH(MP_COPY_FIELD, __VA_ARGS__) \
  } while (false)
#define MP_COPY_FIELD(name) copy_target.name = copy_source.name;

// ---------------------------------------------------------------------------- lines of text

/// Flags, printed in hexadecimal.
struct Flags {
  uint32_t bits;
};

/// Line of UTF-8, truncated to the buffer; other bytes are escaped (base/escape.h).
class Message {
 public:
  /// Part of a line: text, number, enumerator, flags or address.  A text must outlive the
  /// constructor of Message.
  class Part {
   public:
    Part(const char *text) : Part(std::string_view(text)) {}
    template <std::convertible_to<std::string_view> Text>
    Part(const Text &text) : kind_(Kind::text), text_(text) {}
    Part(const void *address) : kind_(Kind::address), address_(address) {}
    Part(float number) : kind_(Kind::float32), float32_(number) {}
    Part(double number) : kind_(Kind::float64), float64_(number) {}
    template <std::signed_integral Number>
    Part(Number number) : kind_(Kind::signed_integer), signed_(number) {}
    template <std::unsigned_integral Number>
    Part(Number number) : kind_(Kind::unsigned_integer), unsigned_(number) {}
    template <class Enum, class = std::enable_if_t<std::is_enum_v<Enum>>>
    Part(const Enum &field) : Part(enum_value(field)) {
      const char *const name = name_of(enumerators_of<Enum>(), enum_value(field));
      if (name != nullptr) *this = Part(name);
    }
    Part(Flags flags) : kind_(Kind::flags), unsigned_(flags.bits) {}

   private:
    friend class Message;
    enum class Kind { text, address, flags, float32, float64, signed_integer, unsigned_integer };

    Kind kind_;
    union {
      std::string_view text_;
      const void *address_;
      float float32_;
      double float64_;
      int64_t signed_;
      uint64_t unsigned_;
    };
  };

  constexpr Message() = default;
  explicit Message(std::initializer_list<Part> parts);
  template <class... Parts>
  explicit Message(const Parts &...parts) : Message(std::initializer_list<Part>{parts...}) {}

  const char *c_str() const { return text_; }

 private:
  static constexpr size_t kCapacity = 512;

  void append(const Part &);
  void append_text(std::string_view);

  char text_[kCapacity] = {};
  size_t size_ = 0;
};

// ---------------------------------------------------------------------------- text from users

/// Compares ASCII, independent of the locale.
inline bool equals_ignore_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

/// Returns the start of a text, short enough for a message.
inline std::string_view truncated(std::string_view text) {
  return text.substr(0, 100);
}

}  // namespace mp
