// ldmatrix and stmatrix: PTX ISA, Warp-level matrix load instruction: ldmatrix.
//
// One, two or four matrices of 8 rows of 16 bytes; lane 8 q + r passes the address of row r of
// matrix q.
#include <cstring>

#include "softgpu/isa/decode.h"
#include "softgpu/isa/operands.h"
#include "softgpu/isa/tensor_product.h"
#include "softgpu/machine/race_check.h"

namespace softgpu {
namespace {

struct MatrixRows {
  AddressOperand address;
  uint32_t rows;  ///< index of a list
  uint8_t num_matrices;
  bool is_transposed;
};

/// Addresses of the rows.
struct MemoryRows {
  LaneAddresses addresses, places;

  const std::byte *at(size_t row) const { return reinterpret_cast<std::byte *>(places.of[row]); }
  std::byte *at(size_t row) { return reinterpret_cast<std::byte *>(places.of[row]); }
  uint32_t offset(size_t row) const {
    return static_cast<uint32_t>(addresses.of[row]) & kOffsetMask;
  }
};

void watch(Warp &warp, const Instruction &i, const MemoryRows &rows, Access access) {
  const int num_matrices = i.as<MatrixRows>().num_matrices;
  count_bytes(warp, i, 128u * static_cast<uint32_t>(num_matrices));
  if (!watches_memory()) return;
  uint32_t addresses[kWarpSize];
  for (int lane = 0; lane < kWarpSize; lane++)
    addresses[lane] = static_cast<uint32_t>(rows.addresses.of[lane]);
  for (int q = 0; q < num_matrices; q++)
    watch_shared(warp, i, 0xFFu << 8 * q, addresses, 16, access);
}

/// Returns the lane that writes a word of a row, or the second one of two.
int writer_of(bool is_transposed, int row, int word) {
  return is_transposed ? (2 * word + 1) * 4 + row / 2 : row * 4 + word;
}

/// Returns the lanes whose registers hold a word of a row.
Lanes owners_of(bool is_transposed, int row, int word) {
  const Lanes last = Lanes{1} << writer_of(is_transposed, row, word);
  return is_transposed ? last | last >> 4 : last;
}

void check_races(RaceCheck &races, Warp &warp, const Instruction &i, const MemoryRows &rows,
                 Access access) {
  const auto &o = i.as<MatrixRows>();
  for (int row = 0; row < 8 * o.num_matrices; row++)
    for (int word = 0; word < 4; word++)
      races.touch_together(
          warp, i, owners_of(o.is_transposed, row % 8, word),
          static_cast<uint32_t>(rows.addresses.of[row]) + 4 * static_cast<uint32_t>(word), 4,
          {.writes = access == Access::kWrite, .is_strong = false});
}

MemoryRows memory_rows(Warp &warp, const Instruction &i, Access access) {
  const auto &o = i.as<MatrixRows>();
  const Lanes lanes = kAllLanes >> (32 - 8 * o.num_matrices);
  MemoryRows rows;
  read_addresses(warp, lanes, o.address, &rows.addresses);
  check_alignment(warp, i, lanes, rows.addresses, 16);
  rows.places = rows.addresses;
  locate_shared(warp, i, lanes, &rows.places, 16, Access::kRead);
  watch(warp, i, rows, access);
  if (RaceCheck *races = races_of(warp)) check_races(*races, warp, i, rows, access);
  return rows;
}

Step load_matrices(Warp &warp, const Instruction &i, Lanes lanes) {
  if (!has_whole_warp(warp, i, lanes, "ldmatrix")) return Step::kRetry;
  const auto &o = i.as<MatrixRows>();
  const MemoryRows memory = memory_rows(warp, i, Access::kRead);
  for (size_t q = 0; q < o.num_matrices; q++) {
    Matrix8x8 m;
    for (size_t row = 0; row < 8; row++) std::memcpy(&m[row], memory.at(8 * q + row), 16);
    if (o.is_transposed) m = transposed(m);
    std::memcpy(warp.row<uint32_t>(rows_at(warp, o.rows)[q]), m.data(), sizeof m);
  }
  return Step::kNext;
}

void note_writes(Warp &warp, const MemoryRows &memory, const MatrixRows &o) {
  SharedMemory &smem = warp.block->smem;
  if (!smem.watches_proxies()) return;
  for (int row = 0; row < 8 * o.num_matrices; row++)
    for (int word = 0; word < 4; word++)
      smem.note_write(warp.thread_of(writer_of(o.is_transposed, row % 8, word)),
                      memory.offset(static_cast<size_t>(row)) + 4 * static_cast<uint32_t>(word), 4);
}

Step store_matrices(Warp &warp, const Instruction &i, Lanes lanes) {
  if (!has_whole_warp(warp, i, lanes, "stmatrix")) return Step::kRetry;
  const auto &o = i.as<MatrixRows>();
  MemoryRows memory = memory_rows(warp, i, Access::kWrite);
  note_writes(warp, memory, o);
  for (size_t q = 0; q < o.num_matrices; q++) {
    Matrix8x8 m = matrix_of(warp.row<uint32_t>(rows_at(warp, o.rows)[q]));
    if (o.is_transposed) m = transposed(m);
    for (size_t row = 0; row < 8; row++) std::memcpy(memory.at(8 * q + row), &m[row], 16);
  }
  return Step::kNext;
}

}  // namespace

void decode_matrix_rows(Decoder &d, Instruction &i) {
  const bool is_store = d.opcode() == "stmatrix";
  need_form(d, "sync aligned m8n8 x1|x2|x4 trans? shared|shared::cta? b16", 2);
  auto &o = i.make<MatrixRows>();
  o.num_matrices = d.has("x1") ? 1 : d.has("x2") ? 2 : 4;
  o.is_transposed = d.has("trans");
  o.address = decode_address(d, d.operands()[is_store ? 0 : 1]);
  const ptx::Operand &registers = d.operands()[is_store ? 1 : 0];
  const auto rows = is_store ? read_rows(d, registers) : write_rows(d, registers);
  if (rows.size() != o.num_matrices) d.unknown("number of registers of ldmatrix or stmatrix");
  o.rows = d.list(rows);
  i.execute = is_store ? store_matrices : load_matrices;
}

}  // namespace softgpu
