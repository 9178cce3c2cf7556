// wgmma: the arithmetic.  B is read once for the four warps.
#include <algorithm>
#include <cstring>

#include "tools/softgpu/isa/operands.h"
#include "tools/softgpu/isa/proxy_check.h"
#include "tools/softgpu/isa/tensor_product.h"
#include "tools/softgpu/isa/wgmma.h"
#include "tools/softgpu/isa/wgmma_descriptor.h"
#include "tools/softgpu/machine/race_check.h"

namespace softgpu {
namespace {

/// Reads core matrices as an operation of a warp does.
struct Reader {
  Warp &warp;
  const WgmmaOperation &operation;

  /// The rows of a core matrix, which must be inside of shared memory and visible to the async proxy.
  Matrix8x8 read(const MatrixDescriptor &descriptor, const CoreMatrix &m,
                 const char *factor) const {
    SharedMemory &smem = warp.block->smem;
    Matrix8x8 rows;
    for (uint32_t r = 0; r < 8; r++) {
      const uint32_t offset = descriptor.row(m, r);
      if (!smem.holds(offset, 16))
        fault(warp, *operation.at, -1, "%s of wgmma reads shared memory at %d of %u", factor,
              static_cast<int>(offset) - static_cast<int>(kReservedSmem), smem.size());
      check_proxy(warp, *operation.at, *warp.block, offset, 16, operation.fenced, "wgmma");
      if (watches_memory()) {
        watch_bulk_shared(warp, *operation.at, *warp.block, offset, 16, Access::kRead);
        if (RaceCheck *races = races_of(warp))
          races->read_wgmma(warp, *operation.at, operation.issued, operation.sequence, offset, 16);
      }
      std::memcpy(&rows[r], smem.at(offset), 16);
    }
    return rows;
  }
};

/// The 16 rows of A that belong to a warp, from shared memory.
template <class Format>
void read_a(const Reader &reader, ProductRows &a) {
  const auto &o = reader.operation.at->as<Wgmma>();
  const MatrixDescriptor descriptor(reader.operation.descriptor_a);
  const auto first = static_cast<uint32_t>(reader.warp.index % 4 * 2);
  for (uint32_t half = 0; half < 2; half++)
    for (uint32_t block_k = 0; block_k < 2; block_k++) {
      const CoreMatrix m = o.a_is_mn_major ? descriptor.mn_major(first + half, block_k)
                                           : descriptor.k_major(first + half, block_k);
      const Matrix8x8 rows = reader.read(descriptor, m, "A");
      put_rows<Format>(a, static_cast<int>(half), static_cast<int>(block_k),
                       o.a_is_mn_major ? rows : transposed(rows));
    }
}

/// The same from registers: one for each half of the rows and each half of k.
template <class Format>
void read_a_registers(const Reader &reader, ProductRows &a) {
  const WgmmaOperation &operation = reader.operation;
  const Row *rows = rows_at(reader.warp, operation.at->as<Wgmma>().a_rows);
  for (int r = 0; r < 4; r++) {
    const auto &values = operation.a[static_cast<size_t>(r)];
    if (std::memcmp(values.data(), reader.warp.row<uint32_t>(rows[r]), sizeof values) != 0)
      violation(reader.warp, *operation.at, -1,
                "the registers of A changed before wgmma was waited for");
    put_rows<Format>(a, r % 2, r / 2, transposed(matrix_of(values.data())));
  }
}

template <class Format>
void read_b(const Reader &reader, ProductColumns &b) {
  const auto &o = reader.operation.at->as<Wgmma>();
  const MatrixDescriptor descriptor(reader.operation.descriptor_b);
  b.num_columns = o.num_columns;
  for (uint32_t j = 0; j < o.num_columns / 8u; j++)
    for (uint32_t block_k = 0; block_k < 2; block_k++) {
      const CoreMatrix m =
          o.b_is_mn_major ? descriptor.mn_major(j, block_k) : descriptor.k_major(j, block_k);
      const Matrix8x8 rows = reader.read(descriptor, m, "B");
      put_columns<Format>(b, static_cast<int>(j), static_cast<int>(block_k),
                          o.b_is_mn_major ? rows : transposed(rows));
    }
}

template <class Format>
void perform_for_warp(const Reader &reader, const ProductColumns &b) {
  const WgmmaOperation &operation = reader.operation;
  const auto &o = operation.at->as<Wgmma>();
  ProductRows a;
  if (o.a_is_in_registers)
    read_a_registers<Format>(reader, a);
  else
    read_a<Format>(reader, a);
  if (o.negates)
    for (auto &halves : a.factors)
      for (auto &factors : halves)
        for (float &x : factors) x = -x;

  auto &values = reader.warp.wgmma.accumulators[operation.accumulator].values;
  if (!operation.accumulates) std::fill(values.begin(), values.end(), 0.0f);
  multiply_add(values.data(), a, b, kWgmmaDepth);
}

WgmmaOperation &operation_of(Warp &warp, uint64_t sequence) {
  auto &operations = warp.wgmma.operations;
  return operations[static_cast<size_t>(sequence - operations.front().sequence)];
}

template <class Format>
void perform(Warp *const *warps, uint64_t sequence) {
  static thread_local ProductColumns b;
  // What the async proxy may read is what it may read for all four: the fence of B is the earliest of theirs, and it may
  // have been written by what all four of them know of.
  WgmmaOperation earliest = operation_of(*warps[0], sequence);
  for (int w = 1; w < 4; w++) {
    const WgmmaOperation &other = operation_of(*warps[w], sequence);
    earliest.fenced = std::min(earliest.fenced, other.fenced);
    if (other.issued) earliest.issued = meet(earliest.issued, other.issued);
  }
  if (!options().skips_products) read_b<Format>({*warps[0], earliest}, b);
  for (int w = 0; w < 4; w++) {
    WgmmaOperation &operation = operation_of(*warps[w], sequence);
    if (!options().skips_products) perform_for_warp<Format>({*warps[w], operation}, b);
    operation.is_done = true;
  }
}

}  // namespace

void perform_wgmma(Warp &warp, uint64_t end) {
  const auto &all = warp.block->warps;
  const auto first = static_cast<size_t>(warp.index / 4 * 4);
  if (first + 4 > all.size()) return;
  Warp *warps[4];
  for (size_t w = 0; w < 4; w++) {
    warps[w] = all[first + w].get();
    end = std::min(end, warps[w]->wgmma.next_sequence);
  }
  for (const WgmmaOperation &operation : warp.wgmma.operations) {
    if (operation.is_done || operation.sequence >= end) continue;
    if (operation.at->as<Wgmma>().is_bf16)
      perform<Bf16>(warps, operation.sequence);
    else
      perform<Fp16>(warps, operation.sequence);
  }
}

}  // namespace softgpu
