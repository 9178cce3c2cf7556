// found_inf and amax of a call (mp_grad_stats_t), and a check of both against what the call stored.
#pragma once

#include <cmath>
#include <vector>

#include "tests/support/oracle.h"

namespace mptest {

class GradStats {
 public:
  const mp_grad_stats_t *get() const { return &pointers_; }
  mp_grad_stats_t pointers() const { return pointers_; }
  float amax() const { return amax_.value(); }
  float found_inf() const { return found_inf_.value(); }

  /// Checks the outputs for a call that stored `values`, rounded, and began with zeros.
  void check(const std::vector<double> &values) const {
    const double largest = oracle::amax(values, 0.0);
    CHECK(amax_.guard_damage() == "");
    CHECK(found_inf_.guard_damage() == "");
    CHECK(found_inf() == (std::isfinite(largest) ? 0.0f : 1.0f));
    CHECK(same_value(amax(), static_cast<float>(largest)));
  }

 private:
  DeviceFloat amax_{0.0f}, found_inf_{0.0f};
  mp_grad_stats_t pointers_{found_inf_.data(), amax_.data()};
};

}  // namespace mptest
