// mma.sync.m16n8: PTX ISA, Multiply-and-Accumulate Instruction: mma.
#include <cstring>

#include "softgpu/isa/operands.h"
#include "softgpu/isa/tensor.h"
#include "softgpu/isa/tensor_product.h"

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

}  // namespace

bool decode_mma(Decoder &d, Instruction &i) {
  if (d.opcode() != "mma") return false;
  // mma.sync.aligned.SHAPE.row.col.D.A.B.C
  if (d.statement().opcode.size() != 10 || d.part(1) != "sync" || d.part(2) != "aligned" ||
      d.part(4) != "row" || d.part(5) != "col")
    d.unknown("form of mma");
  need_operands(d, 4, 4);
  const int depth = depth_of(d.part(3));
  const std::string_view sums = d.part(6), factors = d.part(7);
  i.execute = depth == 0 || d.part(8) != factors || d.part(9) != sums
                  ? nullptr
                  : handler_of(factors, sums, depth);
  if (i.execute == nullptr) d.unknown("shape or type of mma");
  i.is_collective = true;

  const auto a = read_rows(d, d.operands()[1]), b = read_rows(d, d.operands()[2]),
             c = read_rows(d, d.operands()[3]), to = write_rows(d, d.operands()[0]);
  const size_t num_a = static_cast<size_t>(factors == "tf32" ? depth / 2 : depth / 4);
  const size_t num_sums = sums == "f16" ? 2 : 4;
  if (to.size() != num_sums || a.size() != num_a || b.size() != num_a / 2 || c.size() != num_sums)
    d.unknown("number of registers of mma");
  auto &o = i.make<Mma>();
  o = {d.list(to), d.list(a), d.list(b), d.list(c), static_cast<uint8_t>(depth)};
  return true;
}

}  // namespace softgpu
