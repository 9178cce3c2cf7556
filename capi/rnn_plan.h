// Plans of recurrent layers: the implementation of the time steps and the kernels of the products.
#pragma once

#include <cstddef>

#include "capi/plan_cache.h"
#include "kernels/rnn/rnn_problem.h"

namespace mp {

/// Returns a plan that depends only on the descriptor, so that sizes do not depend on data.
RnnPlan plan_rnn(const Context &context, const RnnShape &s, const RequestedPlan &requested,
                 RnnPass pass);
/// Returns a workspace size that is sufficient for each call.
size_t most_workspace(const Context &context, const RnnShape &s, const RequestedPlan &requested);
/// Returns the plan that gives the same bits again.
mp_plan_t stable_rnn_plan(const Context &context, const RnnShape &s,
                          const RequestedPlan &requested);

}  // namespace mp
