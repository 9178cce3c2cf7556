// Programmatic dependent launch (PTX ISA, griddepcontrol): a grid that was launched so may begin when every block of the
// grid before it in the stream has executed griddepcontrol.launch_dependents or has exited, and its threads wait for
// the end of that grid, and for no other, in griddepcontrol.wait.  So what a chain of such grids wrote is there for
// its last one only if each of them has waited.
//
// Without a seed the worst case that is allowed shows: blocks park in launch_dependents, as many as run side by side, until
// the dependent grid has begun, which then goes on as far as it can before they do.
#pragma once

#include <atomic>
#include <cstdint>

namespace softgpu {

struct Block;
struct Cluster;

/// How far a grid is, as the grid that depends on it and its own blocks see it.
struct GridState {
  std::atomic<uint64_t> num_blocks_holding{0};  ///< that neither allow dependents nor have exited
  std::atomic<uint64_t> num_clusters_left{0};   ///< that have not ended
  std::atomic<bool> parks{false};               ///< blocks wait in launch_dependents
  std::atomic<uint64_t> num_parked{0};          ///< clusters that do
  std::atomic<bool> may_leave{false};           ///< one of these clusters goes on

  bool allows_dependents() const { return num_blocks_holding == 0; }
  bool has_ended() const { return num_clusters_left == 0; }
};

/// The block has executed launch_dependents or exited.
void allow_dependents(Block &);
/// Whether the blocks of the cluster go on behind launch_dependents, now that one has executed it.
bool may_leave_parking(Cluster &);

}  // namespace softgpu
