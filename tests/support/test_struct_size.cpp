// Tests of the struct_size protocol between versions, with a struct that has grown, since callers
// of version 0.1 cannot test it.  Uses the internal functions of capi/check.h.
#include <cstring>

#include "capi/check.h"
#include "catch.h"

namespace {

struct Grown {
  uint32_t struct_size;
  uint32_t since_first;
  uint64_t since_second;
};

/// Memory of a caller: a struct of the first version, and other data after it.
struct Caller {
  alignas(Grown) unsigned char bytes[sizeof(Grown)];

  Caller(uint32_t struct_size, uint32_t since_first) {
    const uint32_t fields[] = {struct_size, since_first};
    std::memset(bytes, 0xA5, sizeof bytes);
    std::memcpy(bytes, fields, sizeof fields);
  }
  Grown *as_grown() { return reinterpret_cast<Grown *>(bytes); }
};

}  // namespace

template <>
inline constexpr uint32_t mp::kFirstSize<Grown> = 8;

TEST_CASE("struct_size: new fields of an older caller read as 0", "[capi]") {
  Caller caller(8, 7);
  const Grown read = mp::read_struct(caller.as_grown(), "s");
  CHECK(read.struct_size == sizeof(Grown));
  CHECK(read.since_first == 7);
  CHECK(read.since_second == 0);
}

TEST_CASE("struct_size: memory after an older caller's struct is not written", "[capi]") {
  Caller caller(8, 7);
  const Caller expected(8, 9);
  mp::write_struct(caller.as_grown(), "s", Grown{sizeof(Grown), 9, 9});
  CHECK(std::memcmp(caller.bytes, expected.bytes, sizeof caller.bytes) == 0);
}

TEST_CASE("struct_size: a size smaller than in the first version is an error", "[capi]") {
  Caller caller(7, 7);
  CHECK_THROWS_AS(mp::read_struct(caller.as_grown(), "s"), mp::CallError);
}

TEST_CASE("struct_size: structs of version 0.2 keep their sizes", "[capi]") {
  CHECK(sizeof(mp_conv2d_desc_t) == 96);
  CHECK(mp::kFirstSize<mp_conv2d_desc_t> == 96);
  CHECK(sizeof(mp_tensor_report_t) == 64);
  CHECK(sizeof(mp_scaler_config_t) == 88);
  CHECK(mp::kFirstSize<mp_scaler_config_t> == 88);
  CHECK(sizeof(mp_scaler_state_t) == 120);
  CHECK(mp::kFirstSize<mp_scaler_state_t> == 120);
}
