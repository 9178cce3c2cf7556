// The standard headers that most files include, compiled once for each set of options (Makefile).  Every file includes
// what it uses all the same: nvcc compiles the kernels without this.
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
