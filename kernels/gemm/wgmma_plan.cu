// See wgmma_plan.h.
#include "kernels/gemm/wgmma_plan.h"

#include "kernels/gemm/dispatch.h"
#include "kernels/simt/device.h"

namespace mp::MP_TARGET {

namespace {

/// Rows of `cols` elements, `rows` of them, per batch item.
TensorMapSpec matrix_spec(const Operand &x, mp_dtype_t dtype, int64_t rows, int64_t cols,
                          int64_t batch_count, int box_rows) {
  TensorMapSpec spec{};
  spec.base = x.base;
  spec.dtype = dtype;
  spec.extent[0] = cols;
  spec.extent[1] = rows;
  // A matrix that all items share is one item.
  spec.extent[2] = x.stride != 0 ? batch_count : 1;
  spec.stride[0] = x.ld;
  spec.stride[1] = x.stride;
  spec.box[0] = 64;
  spec.box[1] = box_rows;
  spec.swizzle_128 = true;
  return spec;
}

/// Of a matrix as large as D, which a warp reads or writes 16 rows at a time.
TensorMapSpec strip_spec(const Output &out, const Operand &x) {
  return matrix_spec(x, out.dtype, out.m, out.n, out.batch_count, 16);
}

/// Tiles of a cluster, in either direction.
struct Pairs {
  uint32_t m, n;
};
Pairs pairs_of(const GemmChoice &choice) {
  const uint32_t cluster = static_cast<uint32_t>(choice.cluster);
  return choice.kernel->pairs_in_m ? Pairs{cluster, 1} : Pairs{1, cluster};
}

}  // namespace

WgmmaArgs plan_wgmma(const GemmChoice &choice, const GemmArgs &gemm) {
  const Pairs pair = pairs_of(choice);
  WgmmaArgs args{};
  args.problem = gemm.problem;
  args.scheduler = gemm.scheduler;
  args.scheduler.tiles_m = ceil_div(gemm.scheduler.tiles_m, pair.m);
  args.scheduler.tiles_n = ceil_div(gemm.scheduler.tiles_n, pair.n);
  args.scheduler.group = ceil_div(gemm.scheduler.group, pair.m);
  args.num_work_tiles = static_cast<uint32_t>(args.scheduler.num_work_tiles());
  args.slice_k = static_cast<int32_t>(gemm.slice_k);
  return args;
}

WgmmaWorkspace wgmma_workspace_of(const WgmmaArgs &plan, const GemmChoice &choice,
                                  int64_t table_items) {
  const Pairs pair = pairs_of(choice);
  const int64_t tiles = int64_t{plan.scheduler.batch_count} * plan.scheduler.tiles_m * pair.m *
                        plan.scheduler.tiles_n * pair.n;
  return wgmma_workspace(table_items, tiles, choice.split_k, choice.kernel->tile_m,
                         choice.kernel->tile_n);
}

void start_wgmma_split(const Device &device, const WgmmaWorkspace &space, std::byte *workspace,
                       WgmmaArgs *args, mp_stream_t stream) {
  if (args->scheduler.split_k == 1) return;
  args->tickets = reinterpret_cast<uint32_t *>(workspace + space.tickets);
  args->partials = reinterpret_cast<float *>(workspace + space.partials);
  fill(device, args->tickets, 0, space.ticket_bytes, stream);
}

TensorMap wgmma_map_a(const GemmProblem &p, const GemmChoice &choice) {
  const bool by_k = p.op_a == MP_OP_N;
  const int rows = wgmma_box_rows(by_k, choice.kernel->tile_m, pairs_of(choice).n > 1);
  return tensor_map(matrix_spec(p.a, p.dtype_ab, by_k ? p.out.m : p.k, by_k ? p.k : p.out.m,
                                p.out.batch_count, rows));
}
TensorMap wgmma_map_b(const GemmProblem &p, const GemmChoice &choice) {
  const bool by_k = p.op_b == MP_OP_T;
  const int rows = wgmma_box_rows(by_k, choice.kernel->tile_n, pairs_of(choice).m > 1);
  return tensor_map(matrix_spec(p.b, p.dtype_ab, by_k ? p.out.n : p.k, by_k ? p.k : p.out.n,
                                p.out.batch_count, rows));
}
TensorMapSpec wgmma_spec_d(const Output &out) {
  return strip_spec(out, out.d);
}

SideMatrix wgmma_side_matrix(const Output &out) {
  const Epilogue &e = out.epilogue;
  if (out.beta != 0.0f) return e.aux == nullptr ? SideMatrix::c : SideMatrix::several;
  if (e.aux == nullptr) return SideMatrix::none;
  return reads_aux(e.activation) ? SideMatrix::aux_read : SideMatrix::aux_written;
}

Operand wgmma_side_operand(const Output &out) {
  const Epilogue &e = out.epilogue;
  return e.aux == nullptr ? out.c : Operand{e.aux, nullptr, e.ld_aux, e.stride_aux};
}

TensorMapSpec wgmma_spec_side(const Output &out) {
  return strip_spec(out, wgmma_side_operand(out));
}

StorePath wgmma_store_path(const Output &out, bool has_maps) {
  if (out.dtype != MP_FP32) return has_maps ? StorePath::strips : StorePath::patches;
  const Epilogue &e = out.epilogue;
  const bool is_linear = e.bias == nullptr && e.aux == nullptr && e.activation == MP_ACT_NONE;
  return is_linear ? StorePath::pairs : StorePath::patches;
}

void plan_wgmma_store(const TensorMapSpec &d, const TensorMapSpec *beside, WgmmaArgs *args) {
  const Output &out = args->problem.out;
  args->side = wgmma_side_matrix(out);
  const bool needs_side = args->side != SideMatrix::none;
  const bool has_side = args->side != SideMatrix::several && beside != nullptr &&
                        why_no_tensor_map(*beside) == nullptr;
  args->store = wgmma_store_path(out, why_no_tensor_map(d) == nullptr && (!needs_side || has_side));
  if (args->store != StorePath::strips) return;
  args->d = tensor_map(d);
  if (!needs_side) return;
  args->beside = tensor_map(*beside);
  args->side_is_shared = beside->extent[2] == 1;
}

WgmmaArgs plan_wgmma_group(const Device &device, const GemmProblem &common, int64_t count,
                           StorePath store, const GemmChoice &choice, std::byte *workspace) {
  const GemmKernel &kernel = *choice.kernel;
  WgmmaArgs args{};
  args.problem = common;
  args.store = store;
  args.scheduler.group = tile_group(kernel.tile_m, kernel.tile_n, device.num_sms);
  args.group_count = static_cast<int32_t>(count);
  args.table = workspace + wgmma_workspace(count, 0, 1, kernel.tile_m, kernel.tile_n).table;

  constexpr int64_t kAny = 64;
  const Operand any{args.table, nullptr, kAny, 0};
  GemmProblem p = common;
  p.out.m = p.out.n = p.k = kAny;
  p.out.batch_count = 1;
  p.a = p.b = p.out.d = any;
  args.a = wgmma_map_a(p, choice);
  args.b = wgmma_map_b(p, choice);
  if (store == StorePath::strips) args.d = tensor_map(wgmma_spec_d(p.out));
  return args;
}

void launch_wgmma_kernel(const GemmChoice &choice, const Device &device, const WgmmaArgs &args,
                         mp_stream_t stream) {
  with_half_type(args.problem.dtype_ab, [&](auto type) {
    launch_wgmma_kernel<typename decltype(type)::type>(choice, device, args, stream);
  });
}

}  // namespace mp::MP_TARGET
