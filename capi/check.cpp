#include "capi/check.h"

#include <algorithm>

namespace mp {

void fail(mp_status_t status, std::initializer_list<Message::Part> why) {
  throw CallError{status, Message(why)};
}

void require_struct_size(size_t size, uint32_t first_size, const char *name, const char *arrow,
                         const char *hint) {
  MP_REQUIRE(size >= first_size, MP_ERROR_STRUCT_SIZE, name, arrow, "struct_size = ", size,
             " is smaller than ", first_size, hint);
  MP_REQUIRE(size <= kLargestStruct, MP_ERROR_STRUCT_SIZE, name, arrow, "struct_size = ", size,
             " is larger than any version of the struct");
}

const char *struct_size_hint(uint32_t size) {
  if (size != 0) return "; start from the mp_*_default function or MP_INIT_STRUCT";
  return "; mp_*_default, mp_*_init and MP_INIT_STRUCT set it, and 0 is what is left where one of "
         "them fails, as for an unknown preset";
}

void require_known_bytes(const void *user, size_t size, size_t known, const char *name,
                         const char *arrow) {
  const auto *bytes = static_cast<const unsigned char *>(user);
  const auto *unknown = std::find_if(bytes + known, bytes + size, [](auto b) { return b != 0; });
  MP_REQUIRE(unknown == bytes + size, MP_ERROR_STRUCT_SIZE, name, arrow, "struct_size = ", size,
             " and byte ", unknown - bytes, " is set, but this version knows only ", known,
             " bytes: the caller was made for a newer mpcore");
}

}  // namespace mp
