// Headers that are precompiled for all tests (support/precompiled.h), mainly Catch2.
#pragma once

#include <map>
#include <random>
#include <ranges>
#include <set>
#include <sstream>
#include <thread>

#include "catch.h"
#include "support/precompiled.h"
