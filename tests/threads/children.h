// Code that can run only once per process: its first calls, and its end.  Each is a hidden test,
// which test_children.cpp runs in a new process.
#pragma once

#include <string_view>

namespace mptest {

/// Tests with this prefix run in a process that has not called the library before.
inline constexpr std::string_view kChild = "child: ";

}  // namespace mptest
