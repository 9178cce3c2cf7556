// What is compiled once for all tests (support/precompiled.h); Catch2 is most of it.
#pragma once

#include <map>
#include <random>
#include <ranges>
#include <set>
#include <sstream>
#include <thread>

#include "catch.h"
#include "support/precompiled.h"
