// Catch2's test runner and listeners, for the one file per program that needs them.  Must be
// included before headers that include catch.h, since it compiles version 2.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)

#include <catch2/catch_session.hpp>
#include <catch2/catch_test_case_info.hpp>
#include <catch2/catch_version_macros.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>

#else

#define CATCH_CONFIG_RUNNER
#define CATCH_CONFIG_CONSOLE_WIDTH 160
#include <catch2/catch.hpp>

namespace Catch {
using EventListenerBase = TestEventListenerBase;
}

#endif
