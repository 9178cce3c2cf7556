// What the handle of mpcore/autocast.h is, and the parts of its calls.
#pragma once

#include "capi/context.h"
#include "graph/rewrite/policy.h"
#include "graph/rewrite/precision_report.h"
#include "mpcore.h"

struct mp_autocast {
  explicit mp_autocast(const mp_autocast_config_t &config) : policy(config) {}
  mp::autocast::Policy policy;
};

namespace mp {

/// Takes the environment into a policy; fails where a variable has a value that means nothing.
void read_autocast_environment(autocast::Policy &policy);

/// The caller's graph; every index in it is in range.
mp_autocast_graph_t read_autocast_graph(const mp_autocast_graph_t *user);

/// Why a policy changes nothing on a device, in static storage; nullptr where it does.
/// @param context  nullptr: any device.
const char *find_disabled_reason(const autocast::Policy &policy, const Context *context);

/// Leaves lists, report and pictures in the folder of MP_AUTOCAST_LOG.
void log_rewrite(const autocast::Policy &policy, const autocast::Rewritten &rewritten);

}  // namespace mp
