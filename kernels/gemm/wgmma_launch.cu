// Launch of a wgmma GEMM: arguments, tensor maps, and the table of batch items in the workspace.
#include "kernels/gemm/wgmma_plan.h"
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

/// Returns the problem of one item, at a placeholder address that is valid for all tensor maps.
GemmProblem with_placeholder(GemmProblem problem, const std::byte *workspace) {
  problem.out.batch_count = 1;
  problem.a.base = problem.b.base = problem.out.d.base = workspace;
  return problem;
}

/// Computes the batch without TMA if *only_if is nonzero, that is, if an item is misaligned.
void launch_fallback(const Device &device, const GemmProblem &p, const uint32_t *only_if,
                     mp_stream_t stream) {
  GemmPlan choice;
  const char *why;
  if (!find_gemm_in_place(p, device, builtin_gemm_tuning(), false, "wmma_128x128x32_s3", &choice,
                          &why))
    throw_target_error(MP_ERROR_INTERNAL, "mp_gemm_batched: no kernel supports misaligned items");
  GemmArgs args = make_gemm_args(p, choice, device);
  args.only_if = only_if;
  launch_wmma(choice, device, args, stream);
}

}  // namespace

void launch_wgmma(const GemmPlan &choice, const Device &device, const GemmArgs &gemm,
                  std::byte *workspace, mp_stream_t stream) {
  const GemmProblem &p = gemm.problem;
  const bool by_pointers = p.out.d.items != nullptr;
  WgmmaArgs args = plan_wgmma(choice, gemm);

  const GemmProblem mapped = by_pointers ? with_placeholder(p, workspace) : p;
  args.a = wgmma_map_a(mapped, choice);
  args.b = wgmma_map_b(mapped, choice);
  const bool is_split = choice.split_k > 1;
  const WgmmaWorkspace space = wgmma_workspace(by_pointers ? p.out.batch_count : 0);
  float *const partial_sums = reinterpret_cast<float *>(workspace + space.slices);
  const TensorMapSpec source_map = wgmma_spec_source(p.out);
  if (is_split)
    plan_wgmma_slices(p.out, partial_sums, &args);
  else
    plan_wgmma_store(wgmma_spec_d(mapped.out), by_pointers ? nullptr : &source_map, &args);

  if (by_pointers) {
    args.table = workspace + space.table;
    launch_table(device, args, stream);
  }
  const uint32_t *const misaligned = by_pointers ? &args.header().misaligned : nullptr;
  launch_wgmma_kernel(choice, device, args, stream);
  if (is_split) launch_split_k_sum(device, p.out, choice.split_k, partial_sums, stream, misaligned);
  if (by_pointers) launch_fallback(device, p, misaligned, stream);
}

}  // namespace mp::MP_TARGET
