// cp.async.bulk and cp.reduce.async.bulk between global and shared memory without a tensor map: PTX
// ISA, Data Movement and Conversion Instructions, Non-tensor copy.
#include <optional>

#include "softgpu/isa/async.h"
#include "softgpu/isa/operands.h"
#include "softgpu/isa/reduce_elements.h"
#include "softgpu/machine/bulk_copy.h"

namespace softgpu {
namespace {

constexpr uint32_t kGranule = 16;

struct PlainCopy {
  AddressOperand global, smem, mbarrier;
  RegisterSlot size;
  BulkKind kind;
  ElementType type;  ///< type of a reduction
};
static_assert(sizeof(PlainCopy) <= sizeof(Instruction::operands));

/// Returns a tensor map for bytes, as rows of 16.
TensorMap map_of(uint64_t address, uint32_t bytes, ElementType type) {
  TensorMap map;
  map.rank = 2;
  map.type = type;
  map.base = address;
  map.box = {static_cast<uint16_t>(kGranule / size_of(type)),
             static_cast<uint16_t>(bytes / kGranule), 1, 1, 1};
  map.sizes = {map.box[0], map.box[1], 1, 1, 1};
  map.strides = {kGranule, 0, 0, 0};
  return map;
}

void issue(Warp &warp, const Instruction &i, int lane) {
  const auto &o = i.as<PlainCopy>();
  BulkCopy copy;
  const uint64_t address = address_of(warp, o.global, lane);
  copy.kind = o.kind;
  copy.smem = shared_address_of(warp, o.smem, lane);
  copy.num_bytes = warp.row<uint32_t>(o.size)[lane];
  if (address % kGranule != 0 || copy.smem % kGranule != 0 || copy.num_bytes % kGranule != 0)
    fault(warp, i, lane, "bulk copy of %u bytes between %#llx and %#x: not multiples of 16",
          copy.num_bytes, static_cast<unsigned long long>(address), copy.smem);
  if (copy.num_bytes > kOffsetMask) fault(warp, i, lane, "bulk copy of %u bytes", copy.num_bytes);
  copy.map = map_of(address, copy.num_bytes, o.type);
  if (o.kind == BulkKind::kLoad) {
    const uint32_t rank = copy.smem >> kRankShift;
    copy.mbarrier = shared_address_of(warp, o.mbarrier, lane);
    copy.multicast = uint32_t{1} << (rank & 31);
    if (copy.mbarrier >> kRankShift != rank)
      fault(warp, i, lane, "bulk copy: mbarrier and destination are in different blocks");
    if (rank >= warp.block->cluster->blocks.size())
      fault(warp, i, lane, "bulk copy to block %u of a cluster of %zu blocks", rank,
            warp.block->cluster->blocks.size());
  }
  issue_bulk_copy(warp, i, lane, std::move(copy));
}

Step copy_bytes(Warp &warp, const Instruction &i, Lanes lanes) {
  for_each_lane(lanes, [&](int lane) { issue(warp, i, lane); });
  return Step::kNext;
}

Step prefetch(Warp &, const Instruction &, Lanes) {
  return Step::kNext;
}

std::optional<ElementType> type_of_reduction(std::string_view type) {
  if (type == "u32" || type == "s32") return ElementType::kU32;
  if (type == "u64" || type == "s64") return ElementType::kU64;
  if (type == "f16") return ElementType::kF16;
  if (type == "bf16") return ElementType::kBf16;
  if (type == "f32") return ElementType::kF32;
  if (type == "f64") return ElementType::kF64;
  return std::nullopt;
}

}  // namespace

bool decode_plain_copy(Decoder &d, Instruction &i) {
  if (d.opcode() != "cp" || !d.has("bulk")) return false;
  allow_parts(d, {"async",
                  "reduce",
                  "bulk",
                  "prefetch",
                  "L2",
                  "shared::cta",
                  "shared::cluster",
                  "global",
                  "mbarrier::complete_tx::bytes",
                  "bulk_group",
                  "L2::cache_hint",
                  "add",
                  "noftz",
                  "u32",
                  "s32",
                  "u64",
                  "s64",
                  "f16",
                  "bf16",
                  "f32",
                  "f64"});
  if (d.has("prefetch")) {
    need_operands(d, 2, 3);
    i.execute = prefetch;
    return true;
  }
  auto &o = i.make<PlainCopy>();
  const bool is_load = d.has("mbarrier::complete_tx::bytes"), reduces = d.part(1) == "reduce";
  if (is_load == d.has("bulk_group") || !d.has("global") || reduces != d.has("add") ||
      (is_load && reduces) || (!reduces && type_of_reduction(d.type())) || d.has("L2"))
    d.unknown("form of bulk copy");
  o.kind = is_load ? BulkKind::kLoad : reduces ? BulkKind::kReduce : BulkKind::kStore;
  o.type = ElementType::kU8;
  if (reduces) {
    const auto type = type_of_reduction(d.type());
    if (!type) d.unknown("type of a bulk reduction");
    o.type = *type;
  }

  // [destination], [source], size{, [mbarrier]}{, policy}
  const auto &operands = d.operands();
  const size_t num_operands = (is_load ? 4u : 3u) + (d.has("L2::cache_hint") ? 1 : 0);
  need_operands(d, num_operands, num_operands);
  o.smem = decode_address(d, operands[is_load ? 0 : 1]);
  o.global = decode_address(d, operands[is_load ? 1 : 0]);
  o.size = d.read(operands[2], 4);
  if (is_load) o.mbarrier = decode_address(d, operands[3]);
  i.execute = copy_bytes;
  return true;
}

}  // namespace softgpu
