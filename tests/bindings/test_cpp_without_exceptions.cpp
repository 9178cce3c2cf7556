// mpcore.hpp compiled without exceptions: the same failures as results.
#include "cpp.h"

#ifndef MPCORE_NO_EXCEPTIONS
#error "this file is compiled with -fno-exceptions"
#endif

TEST_CASE("C++ without exceptions: failures are results", "[cpp]") {
  mp::result<mp::context> context = mp::context::create(on_host());
  CHECK(context.has_value());
  const mp::result<void> negative =
      context.value().gemm(kNegative, nullptr, nullptr, nullptr, nullptr);
  CHECK(!negative);
  CHECK(negative.error().status() == MP_ERROR_INVALID_ARGUMENT);
  CHECK(std::strcmp(negative.error().what(), kSentence) == 0);
  const mp::memory memory = context.value().malloc(64).value();
  CHECK(context.value().memset(memory, 0, 64).has_value());
  CHECK(!context.value().malloc(SIZE_MAX).has_value());
  CHECK(!mp::check(mp_stream_sync(nullptr, nullptr)));
}
