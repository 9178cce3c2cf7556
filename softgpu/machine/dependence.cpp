#include "softgpu/machine/dependence.h"

#include "softgpu/machine/block.h"
#include "softgpu/machine/race_check.h"

namespace softgpu {

void allow_dependents(Block &block) {
  if (block.allows_dependents) return;
  block.allows_dependents = true;
  if (RaceCheck *races = block.cluster->races.get()) races->allow_dependents(block);
  block.cluster->state->num_blocks_holding--;
}

bool may_leave_parking(Cluster &cluster) {
  GridState &state = *cluster.state;
  if (cluster.was_parked) return true;
  if (state.parks && !(cluster.is_parked && state.may_leave.exchange(false))) {
    if (!cluster.is_parked) state.num_parked++;
    cluster.is_parked = true;
    return false;
  }
  if (cluster.is_parked) state.num_parked--;
  cluster.is_parked = false;
  cluster.was_parked = true;
  return true;
}

}  // namespace softgpu
