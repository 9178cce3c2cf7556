// Philox 4x32-10: four random words as a pure function of counter and key.  There is no state, so
// results do not depend on the order of calls.
//
// Source: Salmon, Moraes, Dror & Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011,
// section 3.3 and table 2.
#pragma once

#include <cstdint>

#include "kernels/simt/compiler.h"

namespace mp::MP_TARGET {

struct PhiloxWords {
  uint32_t x[4];
};

MP_HD PhiloxWords philox(PhiloxWords counter, uint64_t key) {
  uint32_t low_key = static_cast<uint32_t>(key), high_key = static_cast<uint32_t>(key >> 32);
  PhiloxWords &c = counter;
  for (int round = 0; round < 10; round++) {
    const uint64_t p = uint64_t{0xd2511f53} * c.x[0];
    const uint64_t q = uint64_t{0xcd9e8d57} * c.x[2];
    c = {{static_cast<uint32_t>(q >> 32) ^ c.x[1] ^ low_key, static_cast<uint32_t>(q),
          static_cast<uint32_t>(p >> 32) ^ c.x[3] ^ high_key, static_cast<uint32_t>(p)}};
    low_key += 0x9e3779b9;
    high_key += 0xbb67ae85;
  }
  return counter;
}

}  // namespace mp::MP_TARGET
