// Handle of mpcore/autocast.h, and functions shared by its implementation files.
#pragma once

#include "capi/context.h"
#include "graph/rewrite/casts.h"
#include "graph/rewrite/policy.h"

struct mp_autocast {
  explicit mp_autocast(const mp_autocast_config_t &config) : policy(config) {}
  mp::autocast::Policy policy;
};

namespace mp {

/// Applies the environment to a policy; fails on invalid values.
void read_autocast_environment(autocast::Policy &policy);

/// Writes lists, report and DOT graphs to the folder of MP_AUTOCAST_LOG.
void log_rewrite(const autocast::Policy &policy, const autocast::Rewritten &rewritten);

}  // namespace mp
