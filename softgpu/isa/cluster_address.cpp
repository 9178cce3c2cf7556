// mapa and getctarank: PTX ISA, Data Movement and Conversion Instructions.
#include <cstring>

#include "softgpu/isa/async.h"
#include "softgpu/isa/operands.h"

namespace softgpu {
namespace {

struct Operands {
  RegisterSlot to, address, rank;
};

/// Sets the rank in the high bits of a 32-bit shared address, or of the lower half of a generic
/// address.
template <class T>
Step map_address(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<Operands>();
  const size_t num_blocks = warp.block->cluster->blocks.size();
  T mapped[kWarpSize];
  for_each_lane(lanes, [&](int lane) {
    const uint32_t rank = warp.row<uint32_t>(o.rank)[lane];
    if (rank >= num_blocks)
      fault(warp, i, lane, "mapa of rank %u in a cluster of %zu blocks", rank, num_blocks);
    const T address = warp.row<T>(o.address)[lane];
    mapped[lane] = (address & ~(T{0xFF} << kRankShift)) | static_cast<T>(rank) << kRankShift;
  });
  for_each_lane(lanes, [&](int lane) { warp.row<T>(o.to)[lane] = mapped[lane]; });
  return Step::kNext;
}

template <class T>
Step get_rank(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<Operands>();
  uint32_t ranks[kWarpSize];
  for_each_lane(lanes, [&](int lane) {
    ranks[lane] = static_cast<uint32_t>(warp.row<T>(o.address)[lane]) >> kRankShift;
  });
  for_each_lane(lanes, [&](int lane) { warp.row<uint32_t>(o.to)[lane] = ranks[lane]; });
  return Step::kNext;
}

}  // namespace

bool decode_cluster_address(Decoder &d, Instruction &i) {
  const bool maps = d.opcode() == "mapa";
  if (!maps && d.opcode() != "getctarank") return false;
  allow_parts(d, {"shared::cluster", "u32", "u64"});
  need_operands(d, maps ? 3 : 2, maps ? 3 : 2);
  const bool is_wide = d.type() == "u64";
  const int width = is_wide ? 8 : 4;
  auto &o = i.make<Operands>();
  o.address = d.read(d.operands()[1], width);
  if (maps) {
    o.rank = d.read(d.operands()[2], 4);
    o.to = d.write(d.operands()[0], width);
    i.execute = is_wide ? map_address<uint64_t> : map_address<uint32_t>;
  } else {
    o.to = d.write(d.operands()[0], 4);
    i.execute = is_wide ? get_rank<uint64_t> : get_rank<uint32_t>;
  }
  return true;
}

}  // namespace softgpu
