#include "capi/check.h"

#include <algorithm>
#include <string>
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

}  // namespace mp
