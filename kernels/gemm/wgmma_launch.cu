// Launch of a Hopper kernel, and the table of tensor maps for items behind pointers.
#include "kernels/gemm/wgmma_launch.h"
#include "kernels/simt/device.h"
#include "kernels/simt/reduce.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kItemsPerBlock = static_cast<int>(kWgmmaItemsPerBlock);

/// Fills one table entry from the arrays of pointers.  Returns false if TMA cannot access a matrix.
MP_DEVICE bool fill_item(const WgmmaArgs &args, int64_t index) {
  const GemmProblem &p = args.problem;
  const void *const a = p.a.items[index], *const b = p.b.items[index];
  const bool d_by_tma = args.store == StorePath::tma;
  void *const d = d_by_tma ? const_cast<void *>(p.out.d.items[index]) : nullptr;
  if (!is_aligned_16(a) || !is_aligned_16(b) || !is_aligned_16(d)) return false;
  GroupEntry &item = args.item(index);
  tensor_map_copy_with_base(&item.a, args.a, a);
  tensor_map_copy_with_base(&item.b, args.b, b);
  if (d_by_tma) tensor_map_copy_with_base(&item.d, args.d, d);
  tensor_map_release();
  return true;
}

/// Fills the table and checks the alignment of all items, because the host cannot read their
/// pointers.  A single block writes the flag.  Several blocks only raise it, and launch_table()
/// clears it first.
MP_KERNEL(kItemsPerBlock, 1)
fill_wgmma_table(MP_PARAM(WgmmaArgs) args) {
  wait_for_previous_kernel();
  const int64_t index = block_index() * kItemsPerBlock + thread_index();
  const bool is_bad = index < args.problem.out.batch_count && !fill_item(args, index);
  const uint32_t any_is_bad = block_reduce<kItemsPerBlock, Max>(uint32_t{is_bad});
  if (thread_index() == 0 && (any_is_bad != 0 || grid_size() == 1))
    args.header().misaligned = any_is_bad;
}

void launch_table(const Device &device, const WgmmaArgs &args, mp_stream_t stream) {
  const int64_t blocks = ceil_div<int64_t>(args.problem.out.batch_count, kItemsPerBlock);
  if (blocks > 1) fill(device, &args.header().misaligned, 0, sizeof(uint32_t), stream);
  launch("fill_wgmma_table", fill_wgmma_table, device,
         {.num_blocks = blocks, .num_threads = kItemsPerBlock, .uses_pdl = true}, stream, args);
}

/// Pattern for the maps of the items: the first item, at an address that any map accepts.
GemmProblem with_placeholder(GemmProblem problem, const std::byte *workspace) {
  problem.out.batch_count = 1;
  problem.a.base = problem.b.base = problem.out.d.base = workspace;
  return problem;
}

/// Runs the batch without TMA if the table reports a misaligned item.
void launch_fallback(const GemmKernel &kernel, const Device &device, const GemmProblem &p,
                     const uint32_t *only_if, mp_stream_t stream) {
  GemmArgs args = make_gemm_args(p, kernel, 1, device);
  args.only_if = only_if;
  launch_wmma(kernel.name, kernel, device, args, stream);
}

}  // namespace

void launch_wgmma(const GemmPlan &plan, const Device &device, const GemmArgs &gemm,
                  std::byte *workspace, mp_stream_t stream) {
  const GemmProblem &p = gemm.problem;
  const bool by_pointers = plan.fallback != nullptr;
  WgmmaArgs args = make_wgmma_args(plan, gemm);
  args.column_partials = column_partials(plan.dbias, workspace);

  const GemmProblem mapped = by_pointers ? with_placeholder(p, workspace) : p;
  args.a = wgmma_map_a(mapped, plan);
  args.b = wgmma_map_b(mapped, plan);
  const bool is_split = plan.split_k > 1;
  float *const partial_sums = reinterpret_cast<float *>(workspace + plan.workspace.slices);
  if (is_split)
    set_wgmma_slices(p.out, partial_sums, &args);
  else
    set_wgmma_store(plan, wgmma_spec_d(mapped.out), wgmma_spec_source(p.out), &args);

  if (by_pointers) {
    args.table = workspace + plan.workspace.table;
    launch_table(device, args, stream);
  }
  const uint32_t *const misaligned = by_pointers ? &args.header().misaligned : nullptr;
  launch_wgmma_kernel(plan, device, args, stream);
  if (is_split) launch_split_k_sum(device, p.out, plan.split_k, partial_sums, stream, misaligned);
  if (by_pointers) launch_fallback(*plan.fallback, device, p, misaligned, stream);
}

}  // namespace mp::MP_TARGET
