// found_inf and amax of a call (mp_grad_stats_t), and a check of both against what the call stored.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/testing.h"

namespace mptest {

class GradStats {
 public:
  /// @param amax, found_inf  values before the call
  explicit GradStats(float amax = 0.0f, float found_inf = 0.0f)
      : amax_(std::vector<float>{amax}),
        found_inf_(std::vector<float>{found_inf}),
        pointers_{found_inf_.data(), amax_.data()} {}

  const mp_grad_stats_t *get() const { return &pointers_; }
  mp_grad_stats_t pointers() const { return pointers_; }
  float amax() const { return amax_.download()[0]; }
  float found_inf() const { return found_inf_.download()[0]; }

  /// Checks the outputs for a call that stored `values`, rounded, and began with zeros.
  void check(const std::vector<double> &values) const {
    double largest = 0.0;
    for (const double value : values)
      if (std::isnan(value) || std::fabs(value) > largest) {
        largest = std::fabs(value);
        if (std::isnan(value)) break;
      }
    CHECK(amax_.guard_damage() == "");
    CHECK(found_inf_.guard_damage() == "");
    CHECK(found_inf() == (std::isfinite(largest) ? 0.0f : 1.0f));
    if (std::isnan(largest))
      CHECK(std::isnan(amax()));
    else
      CHECK(amax() == static_cast<float>(largest));
  }

 private:
  DeviceBuffer<float> amax_, found_inf_;
  mp_grad_stats_t pointers_;
};

}  // namespace mptest
