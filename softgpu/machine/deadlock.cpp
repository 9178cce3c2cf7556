// Report of the positions of waiting warps in a deadlock.
#include "softgpu/machine/faults.h"
#include "softgpu/machine/launch.h"
#include "softgpu/program/program.h"

namespace softgpu {
namespace {

constexpr int kMaxLines = 60;
constexpr size_t kMaxStatement = 100;  // in characters

std::string describe_group(const Warp &warp, const LaneGroup &group) {
  const Program &program = *warp.program;
  const Dim3 &block = warp.block->id;
  std::string line = format("\n    block (%u, %u, %u) warp %d lanes %08x", block[0], block[1],
                            block[2], warp.index, group.lanes);
  if (group.pc >= program.code.size()) return line + ": at the end";
  const SourceLine &source = program.source[group.pc];
  return line +
         format(" %s%s:%u: ", group.waits ? "waits at " : "at ", program.file.c_str(),
                source.line) +
         source.text.substr(0, kMaxStatement);
}

}  // namespace

std::string describe_waiting(const std::vector<const Cluster *> &clusters) {
  std::string text;
  int num_groups = 0;
  for (const Cluster *cluster : clusters)
    for (const auto &block : cluster->blocks)
      for (const auto &warp : block->warps)
        for (const LaneGroup &group : warp->groups)
          if (num_groups++ < kMaxLines) text += describe_group(*warp, group);
  if (num_groups > kMaxLines) text += format("\n    and %d more", num_groups - kMaxLines);
  return text;
}

}  // namespace softgpu
