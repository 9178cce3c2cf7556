// mpcore.hpp compiled without exceptions: failures are returned as results.
#include "cpp.h"

#ifndef MPCORE_NO_EXCEPTIONS
#error "this file is compiled with -fno-exceptions"
#endif

TEST_CASE("C++ without exceptions: functions return failures", "[cpp]") {
  mp::result<mp::context> context = mp::context::create(on_host());
  CHECK(context.has_value());
  const mp::result<void> negative =
      context.value().gemm(kNegative, nullptr, nullptr, nullptr, nullptr);
  CHECK(!negative);
  CHECK(negative.error().status() == MP_ERROR_INVALID_ARGUMENT);
  CHECK(std::strcmp(negative.error().what(), kMessage) == 0);
  const mp::memory memory = context.value().malloc(64).value();
  CHECK(context.value().memset(memory, 0, 64).has_value());
  CHECK(!context.value().malloc(SIZE_MAX).has_value());
  CHECK(!mp::check(mp_stream_sync(nullptr, nullptr)));
}

TEST_CASE("C++ without exceptions: graphs return failures", "[cpp][graph]") {
  const mp::context context = mp::context::create(on_host()).value();
  const mp::graph graph = mp::graph::create(context).value();
  const int32_t x = graph.input("x", MP_FP32, {2, 3}).value();
  const mp::result<int32_t> wrong = graph.node("Linear", "fc", {-1, -1});
  CHECK(std::strstr(wrong.error().what(), "inputs[0] = -1") != nullptr);
  CHECK(!graph.describe());
  const int32_t y = graph.node("Relu", "relu", {x}).value();
  CHECK(graph.output(y).has_value());
  CHECK(graph.compile().has_value());
  CHECK(graph.describe().value().find("relu") != std::string::npos);
}
