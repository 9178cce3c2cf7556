// cp.async.bulk.tensor: PTX ISA, Data Movement and Conversion
// Instructions, Tensor copy.
#include "softgpu/isa/async_checks.h"
#include "softgpu/isa/decode.h"
#include "softgpu/isa/operands.h"
#include "softgpu/machine/async_copy.h"

namespace softgpu {
namespace {

struct TensorCopy {
  AddressOperand smem, map, mbarrier;
  uint32_t rows;  ///< index of a list: coordinates, offsets of im2col loads, multicast mask
  BulkKind kind;
  uint8_t rank;
  bool is_im2col, is_multicast;

  uint32_t num_offsets() const { return is_im2col && kind == BulkKind::kLoad ? rank - 2u : 0u; }
};
static_assert(sizeof(TensorCopy) <= sizeof(Instruction::operands));

uint32_t value_of(Warp &warp, const TensorCopy &o, uint32_t index, int lane) {
  return warp.row<uint32_t>(rows_at(warp, o.rows)[index])[lane];
}

/// Checks that map and instruction are of the same kind.
void check_map(Warp &warp, const Instruction &i, int lane, const TensorMap &map) {
  const auto &o = i.as<TensorCopy>();
  if (map.rank != o.rank)
    fault(warp, i, lane, "TMA of rank %d with a map of rank %d", o.rank, map.rank);
  if (map.is_im2col != o.is_im2col) fault(warp, i, lane, "TMA mode and map differ");
  if (map.row_bytes() % 16 != 0)
    fault(warp, i, lane, "TMA with a box with rows of %u bytes, not a multiple of 16",
          map.row_bytes());
  if (map.box_bytes() > options().smem_per_block)
    fault(warp, i, lane, "TMA with a box of %llu bytes, which exceeds shared memory",
          static_cast<unsigned long long>(map.box_bytes()));
  if (o.kind == BulkKind::kLoad && map.fills_nan)
    fault(warp, i, lane, "TMA that fills with NaN is not supported");
}

/// PTX ISA, Im2col Mode: the rank determines the number of bits per offset.
void check_offset(Warp &warp, const Instruction &i, int lane, uint32_t offset) {
  const int rank = i.as<TensorCopy>().rank;
  const uint32_t limit = rank == 3 ? 65535 : rank == 4 ? 255 : 31;
  if (offset > limit) fault(warp, i, lane, "im2col offset %u", offset);
}

/// Checks that the first pixel is in the pixel box, at a multiple of the step from its corner.
/// Pixels of an image after the last one are not checked.
void check_first_pixel(Warp &warp, const Instruction &i, int lane, const BulkCopy &copy) {
  const TensorMap &map = copy.map;
  const size_t image = map.rank - 1u;
  if (copy.place.coordinates[image] >= static_cast<int64_t>(map.sizes[image])) return;
  for (size_t d = 1; d < image; d++) {
    const int64_t at = copy.place.coordinates[d], lower = map.lower[d - 1];
    const int64_t upper = static_cast<int64_t>(map.sizes[d]) - 1 + map.upper[d - 1];
    const int step = map.element_strides[d];
    if (at < lower || at > upper || (at - lower) % step != 0)
      violation(warp, i, lane, "im2col starts at %d in dimension %d, box is %d to %d step %d",
                static_cast<int>(at), static_cast<int>(d), static_cast<int>(lower),
                static_cast<int>(upper), step);
  }
}

/// PTX ISA, Swizzling Modes: the pattern depends on the address, so a box must begin at its start.
void check_shared_address(Warp &warp, const Instruction &i, int lane, const BulkCopy &copy) {
  if (copy.smem % 128 != 0)
    fault(warp, i, lane, "TMA with shared address %#x, not 128-byte aligned", copy.smem);
  const uint32_t pattern = swizzle_span(copy.map.swizzle) * 8;
  if (copy.map.swizzle != Swizzle::kNone && copy.smem % pattern != 0)
    violation(warp, i, lane, "swizzled TMA with shared address %#x, not a multiple of %u",
              copy.smem, pattern);
}

/// Checks three rules that are not in the PTX ISA, but were observed on an H200 (driver 580.159).
/// Violations of the first two caused cudaErrorIllegalInstruction; under the third, columns after
/// the last one were overwritten.
void check_units(Warp &warp, const Instruction &i, int lane, const BulkCopy &copy) {
  constexpr int kUnitBytes = 16;
  const TensorMap &map = copy.map;
  const int64_t element = map.element_bytes(), column = copy.place.coordinates[0];
  if (column * element % kUnitBytes != 0)
    fault(warp, i, lane, "TMA from column %d, not a multiple of %d bytes", static_cast<int>(column),
          kUnitBytes);
  if (copy.kind == BulkKind::kLoad) return;
  for (size_t d = 0; d < map.rank; d++)
    if (copy.place.coordinates[d] < 0)
      fault(warp, i, lane, "TMA store to %d in dimension %d", copy.place.coordinates[d],
            static_cast<int>(d));
  const int64_t columns = static_cast<int64_t>(map.sizes[0]);
  if (columns * element % kUnitBytes != 0 && column < columns &&
      column + map.row_bytes() / element > columns)
    violation(warp, i, lane,
              "TMA store across the last of %d columns, which ends within a unit of %d bytes",
              static_cast<int>(columns), kUnitBytes);
}

/// Reads the destination blocks of a load and its mbarrier.
void read_target(Warp &warp, const Instruction &i, int lane, BulkCopy &copy) {
  const auto &o = i.as<TensorCopy>();
  const uint32_t rank = copy.smem >> kRankShift;
  copy.mbarrier = shared_address_of(warp, o.mbarrier, lane);
  if (copy.mbarrier >> kRankShift != rank)
    fault(warp, i, lane, "TMA: mbarrier and destination are in different blocks");
  const uint32_t mask_at = o.rank + o.num_offsets();
  copy.multicast =
      o.is_multicast ? value_of(warp, o, mask_at, lane) & 0xFFFF : uint32_t{1} << (rank & 31);
  const size_t num_blocks = warp.block->cluster->blocks.size();
  if (copy.multicast == 0 || copy.multicast >> num_blocks != 0)
    fault(warp, i, lane, "TMA to blocks %#x of a cluster of %zu blocks", copy.multicast,
          num_blocks);
}

void issue(Warp &warp, const Instruction &i, int lane) {
  const auto &o = i.as<TensorCopy>();
  BulkCopy copy;
  copy.kind = o.kind;
  copy.map = read_tensor_map(warp, i, lane, address_of(warp, o.map, lane));
  check_map(warp, i, lane, copy.map);
  for (uint32_t d = 0; d < o.rank; d++)
    copy.place.coordinates[d] = static_cast<int32_t>(value_of(warp, o, d, lane));
  for (uint32_t d = 0; d < o.num_offsets(); d++) {
    const uint32_t offset = value_of(warp, o, o.rank + d, lane) & 0xFFFF;
    check_offset(warp, i, lane, offset);
    copy.place.offsets[d] = static_cast<uint16_t>(offset);
  }
  if (o.is_im2col) check_first_pixel(warp, i, lane, copy);
  check_units(warp, i, lane, copy);
  copy.smem = shared_address_of(warp, o.smem, lane);
  copy.num_bytes = static_cast<uint32_t>(copy.map.box_bytes());
  check_shared_address(warp, i, lane, copy);
  if (o.kind == BulkKind::kLoad) read_target(warp, i, lane, copy);
  issue_bulk_copy(warp, i, lane, std::move(copy));
}

Step copy_tensor(Warp &warp, const Instruction &i, Lanes lanes) {
  for_each_lane(lanes, [&](int lane) { issue(warp, i, lane); });
  return Step::kNext;
}

// ---- decoding

void append_rows(Decoder &d, const ptx::Operand &from, size_t count,
                 std::vector<RegisterSlot> *to) {
  const auto rows = read_rows(d, from);
  if (rows.size() != count) d.unknown("number of coordinates");
  to->insert(to->end(), rows.begin(), rows.end());
}

/// [map, {coordinates}]
void decode_map(Decoder &d, const ptx::Operand &operand, TensorCopy &o,
                std::vector<RegisterSlot> *rows) {
  if (operand.items.size() != 1) d.unknown("form of a tensor operand");
  ptx::Operand address = operand;
  address.items.clear();
  o.map = decode_address(d, address);
  append_rows(d, operand.items[0], o.rank, rows);
}

/// [smem], [map, {coordinates}], [mbarrier]{, {offsets}}{, mask}
size_t decode_load(Decoder &d, TensorCopy &o, std::vector<RegisterSlot> *rows) {
  const auto &operands = d.operands();
  o.smem = decode_address(d, operands[0]);
  decode_map(d, operands[1], o, rows);
  o.mbarrier = decode_address(d, operands[2]);
  size_t next = 3;
  if (o.is_im2col) append_rows(d, operands.at(next++), o.rank - 2u, rows);
  if (o.is_multicast) rows->push_back(d.read(operands.at(next++), 4));
  return next;
}

/// [map, {coordinates}], [smem]
size_t decode_store(Decoder &d, TensorCopy &o, std::vector<RegisterSlot> *rows) {
  decode_map(d, d.operands()[0], o, rows);
  o.smem = decode_address(d, d.operands()[1]);
  return 2;
}

// ---- bulk copies without a tensor

constexpr uint32_t kGranule = 16;

struct PlainCopy {
  AddressOperand global, smem, mbarrier;
  RegisterSlot size;
  BulkKind kind;
};
static_assert(sizeof(PlainCopy) <= sizeof(Instruction::operands));

/// Returns a tensor map for bytes, as rows of 16.
TensorMap map_of(uint64_t address, uint32_t bytes) {
  TensorMap map;
  map.rank = 2;
  map.type = ElementType::kU8;
  map.base = address;
  map.box = {kGranule, static_cast<uint16_t>(bytes / kGranule), 1, 1, 1};
  map.sizes = {map.box[0], map.box[1], 1, 1, 1};
  map.strides = {kGranule, 0, 0, 0};
  return map;
}

void issue_plain(Warp &warp, const Instruction &i, int lane) {
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
  copy.map = map_of(address, copy.num_bytes);
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
  for_each_lane(lanes, [&](int lane) { issue_plain(warp, i, lane); });
  return Step::kNext;
}

}  // namespace

void decode_tensor_copy(Decoder &d, Instruction &i) {
  const bool is_load = d.has("mbarrier::complete_tx::bytes");
  need_form(d,
            is_load ? "async bulk tensor 1d|2d|3d|4d|5d shared::cta|shared::cluster global "
                      "tile|im2col? mbarrier::complete_tx::bytes multicast::cluster? "
                      "L2::cache_hint?"
                    : "async bulk tensor 1d|2d|3d|4d|5d global shared::cta tile|im2col_no_offs? "
                      "bulk_group L2::cache_hint?",
            is_load ? 3 : 2, is_load ? 6 : 3);
  auto &o = i.make<TensorCopy>();
  o.rank = 1;
  while (!d.has(std::to_string(o.rank) + "d")) o.rank++;
  o.is_multicast = d.has("multicast::cluster");
  o.kind = is_load ? BulkKind::kLoad : BulkKind::kStore;
  o.is_im2col = d.has("im2col") || d.has("im2col_no_offs");
  if (o.is_im2col && o.rank < 3) d.unknown("form of im2col");

  std::vector<RegisterSlot> rows;
  const size_t next = is_load ? decode_load(d, o, &rows) : decode_store(d, o, &rows);
  if (next + (d.has("L2::cache_hint") ? 1 : 0) != d.operands().size())
    d.unknown("number of operands of a tensor copy");
  o.rows = d.list(rows);
  i.execute = copy_tensor;
}

void decode_plain_copy(Decoder &d, Instruction &i) {
  const bool is_load = d.has("mbarrier::complete_tx::bytes");
  // [destination], [source], size{, [mbarrier]}{, policy}
  need_form(d,
            is_load ? "async bulk shared::cta|shared::cluster global mbarrier::complete_tx::bytes "
                      "L2::cache_hint?"
                    : "async bulk global shared::cta bulk_group L2::cache_hint?",
            (is_load ? 4u : 3u) + d.has("L2::cache_hint"));
  const auto &operands = d.operands();
  auto &o = i.make<PlainCopy>();
  o.kind = is_load ? BulkKind::kLoad : BulkKind::kStore;
  o.smem = decode_address(d, operands[is_load ? 0 : 1]);
  o.global = decode_address(d, operands[is_load ? 1 : 0]);
  o.size = d.read(operands[2], 4);
  if (is_load) o.mbarrier = decode_address(d, operands[3]);
  i.execute = copy_bytes;
}

}  // namespace softgpu
