// Catch2 in the installed version: 3, else 2 (Debian 12, Ubuntu 22.04).  Tests use the API of
// version 3.
//
// The version is detected by the same header as in tests/tests.mk, which links -lCatch2 with
// version 3. Only headers that tests use are included: all of Catch2 takes seconds per file.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)

#include <catch2/catch_approx.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using Catch::Approx;

#else

#include <catch2/catch.hpp>

namespace Catch::Matchers {
inline auto ContainsSubstring(const std::string &part) {
  return Contains(part);
}
}  // namespace Catch::Matchers

#endif
