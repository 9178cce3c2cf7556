// What can happen once in a process only: its first calls, and its end.  Each is a hidden test, which
// test_children.cpp runs in a process of its own.
#pragma once

#include <string_view>

namespace mptest {

/// Tests of that name run in a process in which nothing has called the library before.
inline constexpr std::string_view kChild = "child: ";

}  // namespace mptest
