// Frequently used standard headers, compiled once per set of options (Makefile).  Every file still
// includes the headers that it uses: nvcc compiles the kernels without this one.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifdef __F16C__
#include <immintrin.h>
#endif
