// Programmatic dependent launch (PTX ISA, griddepcontrol).  A dependent grid may begin when every
// block of the previous grid in the stream has executed griddepcontrol.launch_dependents or has
// exited.  griddepcontrol.wait waits for the end of that grid only.  In a sequence of such grids,
// the last one therefore sees all earlier writes only if each grid has waited.
//
// Without a seed, execution follows the worst case that is allowed.  As many blocks as run
// concurrently pause in launch_dependents until the dependent grid has begun, which then runs as
// far as possible before they continue.
#pragma once

#include <atomic>
#include <cstdint>

namespace softgpu {

struct Block;
struct Cluster;

/// Progress of a grid, as seen by its dependent grid and its own blocks.
struct GridState {
  /// Blocks that have neither allowed dependents nor exited.
  std::atomic<uint64_t> num_blocks_holding{0};
  std::atomic<uint64_t> num_clusters_left{0};  ///< clusters that have not ended
  std::atomic<bool> parks{false};              ///< blocks pause in launch_dependents
  std::atomic<uint64_t> num_parked{0};         ///< clusters that pause
  std::atomic<bool> may_leave{false};          ///< one of these clusters may continue

  bool allows_dependents() const { return num_blocks_holding == 0; }
  bool has_ended() const { return num_clusters_left == 0; }
};

/// Marks the block as having executed launch_dependents or exited.
void allow_dependents(Block &);
/// Returns whether the blocks of the cluster continue after launch_dependents, which one of them
/// has executed.
bool may_leave_parking(Cluster &);

}  // namespace softgpu
