#include "capi/message.h"

#include <charconv>

#include "base/escape.h"

namespace mp {

Message::Message(std::initializer_list<Part> parts) {
  for (const Part &part : parts) append(part);
}

void Message::append(const Part &part) {
  const auto append_number = [this](auto number, auto... base) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, number, base...).ptr;
    append_text({digits, static_cast<size_t>(end - digits)});
  };
  switch (part.kind_) {
    case Part::Kind::text:
      return append_text(part.text_);
    case Part::Kind::address:
      append_text("0x");
      return append_number(reinterpret_cast<uintptr_t>(part.address_), 16);
    case Part::Kind::flags:
      append_text("0x");
      return append_number(part.unsigned_, 16);
    case Part::Kind::float32:
      return append_number(part.float32_);
    case Part::Kind::float64:
      return append_number(part.float64_);
    case Part::Kind::signed_integer:
      return append_number(part.signed_);
    case Part::Kind::unsigned_integer:
      return append_number(part.unsigned_);
  }
}

void Message::append_text(std::string_view text) {
  bool is_full = false;
  for_each_escaped(text, [&](std::string_view part) {
    is_full = is_full || part.size() > kCapacity - 1 - size_;
    if (is_full) return;
    std::memcpy(text_ + size_, part.data(), part.size());
    size_ += part.size();
  });
  text_[size_] = '\0';
}

}  // namespace mp
