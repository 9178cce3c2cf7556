#include "capi/check.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "base/escape.h"

namespace mp {

void fail(mp_status_t status, std::initializer_list<Message::Part> why) {
  throw CallError{status, Message(why)};
}

void fail_enum(const char *name, int32_t value, Enumerators all, int32_t first, int32_t last) {
  std::string names;
  for (const Enumerator &each : all) {
    if (each.value < first || each.value > last) continue;
    if (each.value != first) names += each.value == last ? " or " : ", ";
    names += each.name;
  }
  const char *const known = name_of(all, value);
  fail(MP_ERROR_INVALID_ARGUMENT, name, " = ",
       known != nullptr ? Message::Part(known) : Message::Part(value), " must be ", names);
}

void require_matrix_bytes(const NamedNumber &rows, int64_t columns, const NamedNumber &ld,
                          mp_dtype_t dtype) {
  int64_t elems;
  MP_REQUIRE(strided_extent(rows.value, ld.value, columns, &elems) && bytes_fit(elems, dtype),
             MP_ERROR_INVALID_ARGUMENT, rows.name, " = ", rows.value, " with ", ld.name, " = ",
             ld.value, ": size in bytes exceeds 2^63 - 1");
}

void require_matrix(const NamedNumber &rows, const NamedNumber &columns, const NamedNumber &ld,
                    mp_dtype_t dtype) {
  require_at_least(ld, columns);
  require_matrix_bytes(rows, columns.value, ld, dtype);
}

void require_workspace(const void *workspace, size_t bytes, size_t needed) {
  MP_REQUIRE(bytes >= needed, MP_ERROR_WORKSPACE_TOO_SMALL, "workspace_bytes = ", bytes,
             " must be at least ", needed);
  if (needed > 0) require_device(workspace, "workspace", 256);
}

void write_text(std::string_view text, char *user, size_t *bytes) {
  require_pointer(bytes, "bytes");
  const size_t needed = text.size() + 1;
  const size_t given = std::exchange(*bytes, needed);
  MP_REQUIRE(user == nullptr || given >= needed, MP_ERROR_WORKSPACE_TOO_SMALL, "*bytes = ", given,
             " must be at least ", needed);
  if (user == nullptr) return;
  std::memcpy(user, text.data(), text.size());
  user[text.size()] = '\0';
}

void require_struct_size(size_t size, uint32_t first_size, const char *name, const char *arrow,
                         const char *hint) {
  MP_REQUIRE(size >= first_size, MP_ERROR_STRUCT_SIZE, name, arrow, "struct_size = ", size,
             " must be at least ", first_size, hint);
  MP_REQUIRE(size <= kLargestStruct, MP_ERROR_STRUCT_SIZE, name, arrow, "struct_size = ", size,
             " exceeds the maximum of ", kLargestStruct);
}

const char *struct_size_hint(uint32_t size) {
  if (size != 0) return "; initialize the struct with mp_*_default or MP_INIT_STRUCT";
  return "; initialize the struct with mp_*_default, mp_*_init or MP_INIT_STRUCT, and check that "
         "the initialization succeeded";
}

void require_known_bytes(const void *user, size_t size, size_t known, const char *name,
                         const char *arrow) {
  const auto *bytes = static_cast<const unsigned char *>(user);
  const auto *unknown = std::find_if(bytes + known, bytes + size, [](auto b) { return b != 0; });
  MP_REQUIRE(unknown == bytes + size, MP_ERROR_STRUCT_SIZE, name, arrow, "struct_size = ", size,
             ": byte ", unknown - bytes, " is not 0, but this library supports only ", known,
             " bytes; the caller was compiled against a newer mpcore");
}

// ---------------------------------------------------------------------------- lines of text

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
