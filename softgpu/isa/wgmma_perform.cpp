// Arithmetic of wgmma.  B is read once for the four warps.
#include <algorithm>
#include <cstring>

#include "softgpu/isa/async_checks.h"
#include "softgpu/isa/operands.h"
#include "softgpu/isa/tensor_product.h"
#include "softgpu/isa/wgmma.h"
#include "softgpu/machine/race_check.h"

namespace softgpu {
namespace {

/// Reads core matrices for an operation of a warp.
struct Reader {
  Warp &warp;
  const WgmmaOperation &operation;

  /// Calls f(r, offset) for the rows of a core matrix, which must be in shared memory and visible
  /// to the async proxy.
  template <class F>
  void for_each_row(const MatrixDescriptor &descriptor, const CoreMatrix &m, const char *factor,
                    F &&f) const {
    SharedMemory &smem = warp.block->smem;
    for (uint32_t r = 0; r < 8; r++) {
      const uint32_t offset = descriptor.row(m, r);
      if (!smem.holds(offset, 16))
        fault(warp, *operation.at, -1, "%s of wgmma reads shared memory at %d of %u", factor,
              static_cast<int>(offset) - static_cast<int>(kReservedSmem), smem.size());
      check_proxy(warp, *operation.at, *warp.block, offset, 16, operation.fenced, "wgmma");
      f(r, offset);
    }
  }

  Matrix8x8 read(const MatrixDescriptor &descriptor, const CoreMatrix &m,
                 const char *factor) const {
    Matrix8x8 rows;
    for_each_row(descriptor, m, factor, [&](uint32_t r, uint32_t offset) {
      if (watches_memory()) {
        watch_bulk_shared(warp, *operation.at, *warp.block, offset, 16, Access::kRead);
        if (RaceCheck *races = races_of(warp))
          races->read_wgmma(warp, *operation.at, operation.issued, operation.sequence, offset, 16);
      }
      std::memcpy(&rows[r], warp.block->smem.at(offset), 16);
    });
    return rows;
  }

  void check(const MatrixDescriptor &descriptor, const CoreMatrix &m, const char *factor) const {
    for_each_row(descriptor, m, factor, [](uint32_t, uint32_t) {});
  }

  const Wgmma &wgmma() const { return operation.at->as<Wgmma>(); }

  /// Calls f(descriptor, matrix, half, block_k) for the core matrices of the warp's 16 rows of A.
  template <class F>
  void for_each_of_a(F &&f) const {
    const MatrixDescriptor descriptor(operation.descriptor_a);
    const auto first = static_cast<uint32_t>(warp.index % 4 * 2);
    for (uint32_t half = 0; half < 2; half++)
      for (uint32_t block_k = 0; block_k < 2; block_k++)
        f(descriptor,
          wgmma().a_is_mn_major ? descriptor.mn_major(first + half, block_k)
                                : descriptor.k_major(first + half, block_k),
          static_cast<int>(half), static_cast<int>(block_k));
  }

  /// Calls f(descriptor, matrix, j, block_k) for the core matrices of B.
  template <class F>
  void for_each_of_b(F &&f) const {
    const MatrixDescriptor descriptor(operation.descriptor_b);
    for (uint32_t j = 0; j < wgmma().num_columns / 8u; j++)
      for (uint32_t block_k = 0; block_k < 2; block_k++)
        f(descriptor,
          wgmma().b_is_mn_major ? descriptor.mn_major(j, block_k) : descriptor.k_major(j, block_k),
          static_cast<int>(j), static_cast<int>(block_k));
  }
};

template <class Format>
void read_a(const Reader &reader, ProductRows &a) {
  reader.for_each_of_a([&](const auto &descriptor, const CoreMatrix &m, int half, int block_k) {
    const Matrix8x8 rows = reader.read(descriptor, m, "A");
    put_rows<Format>(a, half, block_k, reader.wgmma().a_is_mn_major ? rows : transposed(rows));
  });
}

/// Reads A from registers: one for each half of the rows and each half of k.
template <class Format>
void read_a_registers(const Reader &reader, ProductRows &a) {
  const WgmmaOperation &operation = reader.operation;
  const RegisterSlot *rows = rows_at(reader.warp, operation.at->as<Wgmma>().a_rows);
  for (int r = 0; r < 4; r++) {
    const auto &values = operation.a[static_cast<size_t>(r)];
    if (std::memcmp(values.data(), reader.warp.row<uint32_t>(rows[r]), sizeof values) != 0)
      violation(reader.warp, *operation.at, -1,
                "the registers of A changed before a wait for the wgmma");
    put_rows<Format>(a, r % 2, r / 2, transposed(matrix_of(values.data())));
  }
}

template <class Format>
void read_b(const Reader &reader, ProductColumns &b) {
  b.num_columns = reader.wgmma().num_columns;
  reader.for_each_of_b([&](const auto &descriptor, const CoreMatrix &m, int j, int block_k) {
    const Matrix8x8 rows = reader.read(descriptor, m, "B");
    put_columns<Format>(b, j, block_k, reader.wgmma().b_is_mn_major ? rows : transposed(rows));
  });
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

/// Returns the common operation for reading B: it has the earliest fence of the four warps, and the
/// minimum of their clocks.
WgmmaOperation operation_of_all(Warp *const *warps, uint64_t sequence) {
  WgmmaOperation earliest = operation_of(*warps[0], sequence);
  for (int w = 1; w < 4; w++) {
    const WgmmaOperation &other = operation_of(*warps[w], sequence);
    earliest.fenced = std::min(earliest.fenced, other.fenced);
    if (other.issued) earliest.issued = meet(earliest.issued, other.issued);
  }
  return earliest;
}

/// Returns the four warps of the warpgroup, and in `end` the number of operations that all four
/// have issued.
bool find_warpgroup(Warp &warp, Warp **warps, uint64_t *end) {
  const auto &all = warp.block->warps;
  const auto first = static_cast<size_t>(warp.index / 4 * 4);
  if (first + 4 > all.size()) return false;
  *end = warp.wgmma.next_sequence;
  for (size_t w = 0; w < 4; w++) {
    warps[w] = all[first + w].get();
    *end = std::min(*end, warps[w]->wgmma.next_sequence);
  }
  return true;
}

template <class Format>
void perform(Warp *const *warps, uint64_t sequence) {
  static thread_local ProductColumns b;
  const WgmmaOperation of_all = operation_of_all(warps, sequence);
  if (!options().skips_products) read_b<Format>({*warps[0], of_all}, b);
  for (int w = 0; w < 4; w++) {
    WgmmaOperation &operation = operation_of(*warps[w], sequence);
    if (!options().skips_products) perform_for_warp<Format>({*warps[w], operation}, b);
    operation.is_done = true;
  }
}

}  // namespace

void check_wgmma(Warp &warp) {
  Warp *warps[4];
  uint64_t end;
  if (options().skips_products || !find_warpgroup(warp, warps, &end) ||
      end != warp.wgmma.next_sequence)
    return;
  for (Warp *w : warps) {
    const Reader reader{*w, operation_of(*w, end - 1)};
    if (reader.wgmma().a_is_in_registers) continue;
    reader.for_each_of_a([&](const auto &descriptor, const CoreMatrix &m, int, int) {
      reader.check(descriptor, m, "A");
    });
  }
  const WgmmaOperation of_all = operation_of_all(warps, end - 1);
  const Reader reader{*warps[0], of_all};
  reader.for_each_of_b([&](const auto &descriptor, const CoreMatrix &m, int, int) {
    reader.check(descriptor, m, "B");
  });
}

void perform_wgmma(Warp &warp, uint64_t end) {
  Warp *warps[4];
  uint64_t num_issued;
  if (!find_warpgroup(warp, warps, &num_issued)) return;
  end = std::min(end, num_issued);
  for (const WgmmaOperation &operation : warp.wgmma.operations) {
    if (operation.is_done || operation.sequence >= end) continue;
    if (operation.at->as<Wgmma>().is_bf16)
      perform<Bf16>(warps, operation.sequence);
    else
      perform<Fp16>(warps, operation.sequence);
  }
}

}  // namespace softgpu
