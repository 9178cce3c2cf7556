// mma.sync.m16n8: PTX ISA, Multiply-and-Accumulate Instruction: mma.
#include <cstring>

#include "softgpu/isa/decode.h"
#include "softgpu/isa/operands.h"
#include "softgpu/isa/tensor_product.h"
#include "softgpu/machine/race_check.h"

namespace softgpu {
namespace {

/// tf32 is stored as fp32; tensor cores ignore the lower 13 bits.
struct Tf32 {
  static float widen(uint32_t bits) { return std::bit_cast<float>(bits & 0xFFFFE000); }
};

struct Mma {
  uint32_t d, a, b, c;  ///< indices of lists
  uint8_t depth;
};

/// A has a register per half of the rows and per 8 of k, in this order; B has one per 8 of k.
template <class Format>
void put_factors(Warp &warp, const Mma &o, ProductRows &a, ProductColumns &b) {
  const RegisterSlot *rows_a = rows_at(warp, o.a), *rows_b = rows_at(warp, o.b);
  for (int block = 0; block < o.depth / 8; block++) {
    for (int half = 0; half < 2; half++)
      put_rows<Format>(a, half, block,
                       transposed(matrix_of(warp.row<uint32_t>(rows_a[block * 2 + half]))));
    put_columns<Format>(b, 0, block, transposed(matrix_of(warp.row<uint32_t>(rows_b[block]))));
  }
}

/// Layout with 4 of k instead of 8: lane l has row or column l / 4 and k = l % 4.
template <>
void put_factors<Tf32>(Warp &warp, const Mma &o, ProductRows &a, ProductColumns &b) {
  const RegisterSlot *rows_a = rows_at(warp, o.a), *rows_b = rows_at(warp, o.b);
  for (int k = 0; k < o.depth; k++) {
    for (int half = 0; half < 2; half++) {
      const uint32_t *values = warp.row<uint32_t>(rows_a[k / 4 * 2 + half]);
      for (int lane = 0; lane < kWarpSize; lane++)
        a.factors[k][half][lane] = Tf32::widen(values[lane / 4 * 4 + k % 4]);
    }
    const uint32_t *values = warp.row<uint32_t>(rows_b[k / 4]);
    for (int column = 0; column < 8; column++)
      b.group(k, 0)[column % 2 * 4 + column / 2] = Tf32::widen(values[column * 4 + k % 4]);
  }
}

/// D and C in fp32 have a register per half of the rows and per column of two; in fp16, the two
/// columns share a register.
template <class Format, bool kHalfSums>
Step mma(Warp &warp, const Instruction &i, Lanes lanes) {
  if (!has_whole_warp(warp, i, lanes, "mma.sync")) return Step::kRetry;
  const auto &o = i.as<Mma>();
  ProductRows a;
  ProductColumns b;
  if (!options().skips_products) put_factors<Format>(warp, o, a, b);

  alignas(64) float sums[4][kWarpSize];
  const RegisterSlot *rows_c = rows_at(warp, o.c), *rows_d = rows_at(warp, o.d);
  if constexpr (kHalfSums) {
    for (int half = 0; half < 2; half++)
      widen_pairs<Fp16>(sums[2 * half], sums[2 * half + 1], warp.row<uint32_t>(rows_c[half]));
  } else {
    for (int r = 0; r < 4; r++) std::memcpy(sums[r], warp.row<float>(rows_c[r]), sizeof sums[r]);
  }
  multiply_add(sums[0], a, b, o.depth);
  if constexpr (kHalfSums) {
    for (int half = 0; half < 2; half++) {
      uint32_t *to = warp.row<uint32_t>(rows_d[half]);
      for (int lane = 0; lane < kWarpSize; lane++)
        to[lane] = narrow_pair<Fp16>(sums[2 * half][lane], sums[2 * half + 1][lane]);
    }
  } else {
    for (int r = 0; r < 4; r++) std::memcpy(warp.row<float>(rows_d[r]), sums[r], sizeof sums[r]);
  }
  return Step::kNext;
}

Handler handler_of(std::string_view factors, std::string_view sums, int depth) {
  if (factors == "tf32")
    return sums == "f32" && (depth == 4 || depth == 8) ? mma<Tf32, false> : nullptr;
  if (depth != 8 && depth != 16) return nullptr;
  if (factors == "bf16") return sums == "f32" ? mma<Bf16, false> : nullptr;
  if (factors == "f16" && sums == "f32") return mma<Fp16, false>;
  return factors == "f16" && sums == "f16" ? mma<Fp16, true> : nullptr;
}

int depth_of(std::string_view shape) {
  return shape == "m16n8k4" ? 4 : shape == "m16n8k8" ? 8 : shape == "m16n8k16" ? 16 : 0;
}

// ---- wmma

struct WmmaMemory {
  AddressOperand address;
  RegisterSlot stride;  ///< in elements
  uint32_t rows;        ///< index of a list
  uint8_t num_rows;
  bool is_transposed;  ///< A and B: the contiguous dimension in memory is not k
  bool is_b;
};
struct WmmaProduct {
  uint32_t d, a, b, c;  ///< indices of lists
};

constexpr int kSize = 16;

/// The 16 rows (or columns) of a matrix in shared memory, with 16 elements each.
struct SharedRows {
  std::byte *at[kSize];
  uint32_t addresses[kSize];
};

SharedRows shared_rows(Warp &warp, const Instruction &i, uint32_t element_bytes, bool is_write) {
  const auto &o = i.as<WmmaMemory>();
  if (o.address.width == 8)
    uniform<uint64_t>(warp, i, kAllLanes, o.address.base, "the address of wmma");
  else
    uniform<uint32_t>(warp, i, kAllLanes, o.address.base, "the address of wmma");
  const uint32_t first = shared_address_of(warp, o.address, 0);
  const uint32_t stride = uniform<uint32_t>(warp, i, kAllLanes, o.stride, "the stride of wmma");
  if (first % 32 != 0) fault(warp, i, 0, "wmma at %#x, which is not 32-byte aligned", first);
  if (stride * element_bytes % 16 != 0)
    fault(warp, i, 0, "stride %u of wmma, of rows that are not 16-byte aligned", stride);

  SharedRows rows;
  for (uint32_t row = 0; row < kSize; row++) {
    rows.addresses[row] = first + row * stride * element_bytes;
    rows.at[row] = shared_at(warp, i, 0, rows.addresses[row], kSize * element_bytes);
    // The lane of each element is unspecified, so each lane counts as accessing all elements.
    if (RaceCheck *races = races_of(warp))
      races->touch_together(warp, i, kAllLanes, rows.addresses[row], kSize * element_bytes,
                            {.writes = is_write, .is_strong = false});
  }
  return rows;
}

/// Counts the access of A or B like ldmatrix: four matrices of 8 rows of 16 bytes.
void watch_factor(Warp &warp, const Instruction &i, const SharedRows &memory) {
  count_bytes(warp, i, kSize * kSize * 2);
  if (!watches_memory()) return;
  for (uint32_t block = 0; block < 4; block++) {
    uint32_t addresses[8];
    for (uint32_t row = 0; row < 8; row++)
      addresses[row] = memory.addresses[block / 2 * 8 + row] + block % 2 * 16;
    watch_shared(warp, i, 0xFF, addresses, 16, Access::kRead);
  }
}

/// Calls f(register, lane, row, column) for the elements of an accumulator.
template <class F>
void for_each_sum(F &&f) {
  for (int r = 0; r < 8; r++)
    for (int lane = 0; lane < kWarpSize; lane++)
      f(r, lane, r / 2 % 2 * 8 + lane / 4, r / 4 * 8 + lane % 4 * 2 + r % 2);
}

/// Counts the store of an accumulator: 8 bytes for two columns of a row.
void watch_sums(Warp &warp, const Instruction &i, const SharedRows &memory) {
  count_bytes(warp, i, kSize * kSize * 4);
  if (!watches_memory()) return;
  uint32_t addresses[8][kWarpSize];
  for_each_sum([&](int r, int lane, int row, int column) {
    addresses[r][lane] = memory.addresses[row] + 4 * static_cast<uint32_t>(column);
  });
  for (int r = 0; r < 8; r += 2) watch_shared(warp, i, kAllLanes, addresses[r], 8, Access::kWrite);
}

Step load_factor(Warp &warp, const Instruction &i, Lanes lanes) {
  if (!has_whole_warp(warp, i, lanes, "wmma.load")) return Step::kRetry;
  const auto &o = i.as<WmmaMemory>();
  const SharedRows memory = shared_rows(warp, i, 2, false);
  watch_factor(warp, i, memory);
  const RegisterSlot *to = rows_at(warp, o.rows);
  for (size_t r = 0; r < 4; r++) {
    const size_t block_k = o.is_b ? r % 2 : r / 2, block_row = o.is_b ? r / 2 : r % 2;
    const size_t row = o.is_transposed ? block_k : block_row;
    const size_t column = o.is_transposed ? block_row : block_k;
    Matrix8x8 m;
    for (size_t k = 0; k < 8; k++)
      std::memcpy(&m[k], memory.at[row * 8 + k] + column * 16, sizeof m[k]);
    if (o.is_transposed) m = transposed(m);
    for (size_t copy = r; copy < o.num_rows; copy += 4)
      std::memcpy(warp.row<uint32_t>(to[copy]), m.data(), sizeof m);
  }
  return Step::kNext;
}

Step store_sums(Warp &warp, const Instruction &i, Lanes lanes) {
  if (!has_whole_warp(warp, i, lanes, "wmma.store")) return Step::kRetry;
  const SharedRows memory = shared_rows(warp, i, 4, true);
  watch_sums(warp, i, memory);
  const RegisterSlot *from = rows_at(warp, i.as<WmmaMemory>().rows);
  SharedMemory &smem = warp.block->smem;
  for_each_sum([&](int r, int lane, int row, int column) {
    const uint32_t offset = 4 * static_cast<uint32_t>(column);
    std::memcpy(memory.at[row] + offset, &warp.row<float>(from[r])[lane], 4);
    if (smem.watches_proxies())
      smem.note_write(warp.thread_of(lane), (memory.addresses[row] & kOffsetMask) + offset, 4);
  });
  return Step::kNext;
}

template <class Format>
Step multiply(Warp &warp, const Instruction &i, Lanes lanes) {
  if (!has_whole_warp(warp, i, lanes, "wmma.mma")) return Step::kRetry;
  const auto &o = i.as<WmmaProduct>();
  const RegisterSlot *rows_a = rows_at(warp, o.a), *rows_b = rows_at(warp, o.b);
  ProductRows a;
  ProductColumns b;
  b.num_columns = kSize;
  for (int r = 0; r < 4 && !options().skips_products; r++) {
    put_rows<Format>(a, r % 2, r / 2, transposed(matrix_of(warp.row<uint32_t>(rows_a[r]))));
    put_columns<Format>(b, r / 2, r % 2, transposed(matrix_of(warp.row<uint32_t>(rows_b[r]))));
  }

  alignas(64) float sums[8][kWarpSize];
  const RegisterSlot *rows_c = rows_at(warp, o.c), *rows_d = rows_at(warp, o.d);
  for (int r = 0; r < 8; r++) std::memcpy(sums[r], warp.row<float>(rows_c[r]), sizeof sums[r]);
  multiply_add(sums[0], a, b, kSize);
  for (int r = 0; r < 8; r++) std::memcpy(warp.row<float>(rows_d[r]), sums[r], sizeof sums[r]);
  return Step::kNext;
}

/// wmma.load.{a,b}.sync.aligned.LAYOUT.m16n16k16.shared.TYPE r, [p], stride, and
/// wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [p], r, stride.
void decode_memory(Decoder &d, Instruction &i, bool is_store) {
  need_form(d,
            is_store ? "store d sync aligned row m16n16k16 shared|shared::cta f32"
                     : "load a|b sync aligned row|col m16n16k16 shared|shared::cta f16|bf16",
            3);
  auto &o = i.make<WmmaMemory>();
  o.is_b = d.has("b");
  o.is_transposed = o.is_b == d.has("row");
  o.address = decode_address(d, d.operands()[is_store ? 0 : 1]);
  o.stride = d.read(d.operands()[2], 4);
  const ptx::Operand &registers = d.operands()[is_store ? 1 : 0];
  const auto rows = is_store ? read_rows(d, registers) : write_rows(d, registers);
  if (rows.size() != (d.has("bf16") ? 4 : 8)) d.unknown("number of registers of wmma");
  o.num_rows = static_cast<uint8_t>(rows.size());
  o.rows = d.list(rows);
  i.execute = is_store ? store_sums : load_factor;
}

/// wmma.mma.sync.aligned.LAYOUT.LAYOUT.m16n16k16.f32{.bf16.bf16}.f32
void decode_product(Decoder &d, Instruction &i) {
  const bool is_bf16 = d.has("bf16");
  need_form(d,
            std::string("mma sync aligned row|col row|col m16n16k16 f32 f32") +
                (is_bf16 ? " bf16 bf16" : ""),
            4);
  const auto a = read_rows(d, d.operands()[1]), b = read_rows(d, d.operands()[2]),
             c = read_rows(d, d.operands()[3]), to = write_rows(d, d.operands()[0]);
  const size_t num_factors = is_bf16 ? 4 : 8;
  if (to.size() != 8 || c.size() != 8 || a.size() != num_factors || b.size() != num_factors)
    d.unknown("number of registers of wmma");
  i.execute = is_bf16 ? multiply<Bf16> : multiply<Fp16>;
  i.make<WmmaProduct>() = {d.list(to), d.list(a), d.list(b), d.list(c)};
}

}  // namespace

void decode_mma(Decoder &d, Instruction &i) {
  // mma.sync.aligned.SHAPE.row.col.D.A.B.C
  if (d.statement().opcode.size() != 10 || d.part(1) != "sync" || d.part(2) != "aligned" ||
      d.part(4) != "row" || d.part(5) != "col" || d.operands().size() != 4)
    d.unknown("form of mma");
  const int depth = depth_of(d.part(3));
  const std::string_view sums = d.part(6), factors = d.part(7);
  i.execute = depth == 0 || d.part(8) != factors || d.part(9) != sums
                  ? nullptr
                  : handler_of(factors, sums, depth);
  if (i.execute == nullptr) d.unknown("shape or type of mma");

  const auto a = read_rows(d, d.operands()[1]), b = read_rows(d, d.operands()[2]),
             c = read_rows(d, d.operands()[3]), to = write_rows(d, d.operands()[0]);
  const size_t num_a = static_cast<size_t>(factors == "tf32" ? depth / 2 : depth / 4);
  const size_t num_sums = sums == "f16" ? 2 : 4;
  if (to.size() != num_sums || a.size() != num_a || b.size() != num_a / 2 || c.size() != num_sums)
    d.unknown("number of registers of mma");
  auto &o = i.make<Mma>();
  o = {d.list(to), d.list(a), d.list(b), d.list(c), static_cast<uint8_t>(depth)};
}

void decode_wmma(Decoder &d, Instruction &i) {
  if (d.part(1) == "mma") return decode_product(d, i);
  decode_memory(d, i, d.part(1) == "store");
}

}  // namespace softgpu
