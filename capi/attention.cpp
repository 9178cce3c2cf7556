// mpcore/attention.h.
#define MP_ENABLE_EXPERIMENTAL
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "capi/kernel_info.h"
#include "capi/nvtx_payload.h"
#include "capi/overlap.h"
#include "kernels/attention/attention_plan.h"

using namespace mp;

namespace {

constexpr int32_t kMaxHeadDim = 256;
constexpr int64_t kMaxLength = int64_t{1} << 30;
constexpr int64_t kMaxRows = (int64_t{1} << 31) - 1;

// ---------------------------------------------------------------------------- layouts

/// Tensor of rows and heads: q, k, v or o.
struct Heads {
  const char *name;  ///< name of its layout in the descriptor
  mp_attention_layout_t layout;
  int64_t batch, rows, heads, dim;

  /// Returns batch, rows and heads by descending distance; levels of at most one item are last.
  std::array<Region::Level, 3> levels() const {
    std::array<Region::Level, 3> all{
        {{batch, layout.batch}, {rows, layout.row}, {heads, layout.head}}};
    for (Region::Level &level : all)
      if (level.count <= 1) level.pitch = 0;
    std::ranges::stable_sort(all, std::ranges::greater{}, &Region::Level::pitch);
    return all;
  }
};

/// Replaces strides of 0 by those of dense tensors.
mp_attention_layout_t dense(mp_attention_layout_t layout, int64_t rows, int64_t heads,
                            int64_t dim) {
  if (layout.head == 0) layout.head = dim;
  if (layout.row == 0) layout.row = heads * dim;
  if (layout.batch == 0 && !multiply_add(rows, layout.row, 0, &layout.batch))
    layout.batch = std::numeric_limits<int64_t>::max();  // rejected by require_layout
  return layout;
}

/// Tensors of a descriptor whose layouts are complete.
struct AllHeads {
  Heads q, k, v, o;

  explicit AllHeads(const mp_attention_desc_t &d)
      : q(of("q", d.q, d, true, d.heads, d.head_dim)),
        k(of("k", d.k, d, false, d.kv_heads, d.head_dim)),
        v(of("v", d.v, d, false, d.kv_heads, d.head_dim_v)),
        o(of("o", d.o, d, true, d.heads, d.head_dim_v)) {}

 private:
  static Heads of(const char *name, const mp_attention_layout_t &layout,
                  const mp_attention_desc_t &d, bool of_queries, int64_t heads, int64_t dim) {
    const int64_t rows = of_queries ? d.q_rows : d.kv_rows, len = of_queries ? d.q_len : d.kv_len;
    return {name, layout, is_packed(d) ? 1 : d.batch, is_packed(d) ? rows : len, heads, dim};
  }
};

/// Fails if heads or rows overlap, or if the size overflows.
void require_layout(const Heads &t, mp_dtype_t dtype) {
  if (t.batch == 0 || t.rows == 0) return;
  const std::array<Region::Level, 3> levels = t.levels();
  int64_t extent = t.dim;
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    if (level->count <= 1) continue;
    MP_REQUIRE(level->pitch >= extent, MP_ERROR_INVALID_ARGUMENT, t.name,
               ".batch = ", t.layout.batch, ", ", t.name, ".row = ", t.layout.row, ", ", t.name,
               ".head = ", t.layout.head, ": rows or heads of ", t.dim, " elements overlap");
    MP_REQUIRE(
        multiply_add(level->count - 1, level->pitch, extent, &extent) && bytes_fit(extent, dtype),
        MP_ERROR_INVALID_ARGUMENT, t.name, ".batch = ", t.layout.batch, ", ", t.name,
        ".row = ", t.layout.row, ", ", t.name, ".head = ", t.layout.head,
        ": size in bytes exceeds 2^63 - 1");
  }
}

/// Returns the region of a tensor.  Regions have two levels: if no two levels can be merged, the
/// innermost one is treated as contiguous.
Region region(const void *data, const char *name, const Heads &t, mp_dtype_t dtype) {
  if (t.batch == 0 || t.rows == 0) return {};
  std::array<Region::Level, 3> levels = t.levels();
  auto &[outer, middle, inner] = levels;
  int64_t run = t.dim;
  const auto absorb = [&](Region::Level &level) {
    run += (level.count - 1) * level.pitch;
    level = {};
  };
  if (inner.count <= 1 || inner.pitch == run) absorb(inner);
  if (inner.count == 1 && (middle.count <= 1 || middle.pitch == run)) absorb(middle);
  if (inner.count > 1 && middle.pitch == inner.count * inner.pitch) {
    middle = {middle.count * inner.count, inner.pitch};
  } else if (inner.count > 1 && outer.pitch == middle.count * middle.pitch) {
    outer = {outer.count * middle.count, middle.pitch};
    middle = inner;
  } else if (inner.count > 1) {
    absorb(inner);
  }
  return strided_region(data, name, run, middle, outer, dtype);
}

// ---------------------------------------------------------------------------- descriptor

/// Returns the descriptor with all default values replaced.
mp_attention_desc_t read_desc(const mp_attention_desc_t *user) {
  mp_attention_desc_t d = read_struct(user, "desc");
  require_dtype(d.dtype, "dtype");
  require_not_negative(d.batch, "batch");
  MP_CHECK_FIELDS(require_positive, d, heads, kv_heads);
  MP_REQUIRE(d.heads % d.kv_heads == 0, MP_ERROR_INVALID_ARGUMENT, "kv_heads = ", d.kv_heads,
             " must divide heads = ", d.heads);
  MP_REQUIRE(int64_t{d.batch} * d.heads <= kMaxRows, MP_ERROR_INVALID_ARGUMENT, "batch = ", d.batch,
             " x heads = ", d.heads, " exceeds 2^31 - 1");
  require_within(d.head_dim, "head_dim", 1, kMaxHeadDim);
  if (d.head_dim_v == 0) d.head_dim_v = d.head_dim;
  require_within(d.head_dim_v, "head_dim_v", 1, kMaxHeadDim);
  MP_REQUIRE(d.dropout >= 0.0f && d.dropout * 256.0f < 255.5f, MP_ERROR_INVALID_ARGUMENT,
             "dropout = ", d.dropout, " is outside [0, 1) when rounded to a multiple of 1/256");
  require_within(d.q_len, "q_len", 0, kMaxLength);
  require_within(d.kv_len, "kv_len", 0, kMaxLength);
  require_within(d.q_rows, "q_rows", 0, kMaxRows);
  require_within(d.kv_rows, "kv_rows", 0, kMaxRows);
  MP_REQUIRE((d.q_rows > 0) == (d.kv_rows > 0), MP_ERROR_INVALID_ARGUMENT, "q_rows = ", d.q_rows,
             " and kv_rows = ", d.kv_rows, ": both or none must be 0");
  require_finite_not_negative(d.scale, "scale");
  if (d.scale == 0.0f) d.scale = 1.0f / std::sqrt(static_cast<float>(d.head_dim));
  require_flags(d.flags, MP_ATTENTION_FLAG_CAUSAL | MP_ATTENTION_FLAG_WINDOW, "flags");
  if ((d.flags & MP_ATTENTION_FLAG_WINDOW) != 0) {
    MP_REQUIRE(d.window_left >= -1, MP_ERROR_INVALID_ARGUMENT, "window_left = ", d.window_left,
               " must be at least -1");
    MP_REQUIRE(d.window_right >= -1, MP_ERROR_INVALID_ARGUMENT, "window_right = ", d.window_right,
               " must be at least -1");
  }
  MP_CHECK_FIELDS(require_not_negative, d, q.batch, q.row, q.head, k.batch, k.row, k.head, v.batch,
                  v.row, v.head, o.batch, o.row, o.head);
  d.q = dense(d.q, d.q_len, d.heads, d.head_dim);
  d.k = dense(d.k, d.kv_len, d.kv_heads, d.head_dim);
  d.v = dense(d.v, d.kv_len, d.kv_heads, d.head_dim_v);
  d.o = dense(d.o, d.q_len, d.heads, d.head_dim_v);
  int64_t rows;
  MP_REQUIRE(multiply_add(int64_t{d.batch} * d.heads, std::max(d.q_len, d.q_rows), 0, &rows) &&
                 bytes_fit(rows, MP_FP32),
             MP_ERROR_INVALID_ARGUMENT, "q_len = ", d.q_len, ": size of lse exceeds 2^63 - 1");
  const AllHeads all(d);
  for (const Heads *one : {&all.q, &all.k, &all.v, &all.o}) require_layout(*one, d.dtype);
  return d;
}

size_t backward_workspace_bytes(const mp_attention_desc_t &d) {
  return static_cast<size_t>(attention_lse_elems(d)) * sizeof(float);
}

// ---------------------------------------------------------------------------- tensors

/// Checks a pointer that one of the two forms of sequences supports.
void require_form(const int32_t *pointer, const char *name, bool is_supported, const char *form) {
  MP_REQUIRE(pointer == nullptr || is_supported, MP_ERROR_INVALID_ARGUMENT, name, " = ",
             static_cast<const void *>(pointer), " is not supported by the ", form, " form");
  require_aligned(pointer, name);
}

void require_sinks(const mp_attention_tensors_t &t) {
  require_aligned(t.dsinks, "tensors->dsinks");
  MP_REQUIRE(t.dsinks == nullptr || t.sinks != nullptr, MP_ERROR_INVALID_ARGUMENT,
             "tensors->sinks = NULL, but tensors->dsinks requires it");
}

/// Checks the tensors of a pass, for at least one sequence.
/// @param workspace  of the backward pass
void require_pass(const mp_attention_desc_t &d, const mp_attention_tensors_t &t, AttentionPass pass,
                  const Region &workspace = {}) {
  const bool packed = is_packed(d), is_backward = pass == AttentionPass::backward;
  require_form(t.q_lengths, "tensors->q_lengths", !packed, "packed");
  require_form(t.kv_lengths, "tensors->kv_lengths", !packed, "packed");
  require_form(t.q_ends, "tensors->q_ends", packed, "padded");
  require_form(t.kv_ends, "tensors->kv_ends", packed, "padded");
  const AllHeads all(d);
  const auto of_heads = [&](const void *data, const char *name, const Heads &heads) {
    return region(data, name, heads, d.dtype);
  };
  const auto gradient = [&](const void *data, const char *name, const Heads &heads) {
    return is_backward ? of_heads(data, name, heads) : Region{};
  };
  const TensorAccess ends_access = packed ? kReads : kMayRead;
  require_tensors(
      {{of_heads(t.q, "tensors->q", all.q), kReads},
       {of_heads(t.k, "tensors->k", all.k), kReads},
       {of_heads(t.v, "tensors->v", all.v), kReads},
       {of_heads(t.o, "tensors->o", all.o), is_backward ? kReads : kWrites},
       {dense_region(t.lse, "tensors->lse", attention_lse_elems(d)),
        is_backward ? kReads : kMayWrite},
       {dense_region(t.q_ends, "tensors->q_ends", d.batch), ends_access},
       {dense_region(t.kv_ends, "tensors->kv_ends", d.batch), ends_access},
       {dense_region(t.q_lengths, "tensors->q_lengths", d.batch), kMayRead},
       {dense_region(t.kv_lengths, "tensors->kv_lengths", d.batch), kMayRead},
       {dense_region(t.dropout_offset, "tensors->dropout_offset"), kMayRead},
       {dense_region(t.sinks, "tensors->sinks", d.heads), kMayRead},
       {gradient(t.d_o, "tensors->d_o", all.o), kReads},
       {gradient(t.dq, "tensors->dq", all.q), kWrites},
       {gradient(t.dk, "tensors->dk", all.k), kWrites},
       {gradient(t.dv, "tensors->dv", all.v), kWrites},
       {dense_region(is_backward ? t.dsinks : nullptr, "tensors->dsinks", d.heads), kMayWrite},
       {workspace, kMayWrite}},
      is_backward ? t.stats : mp_grad_stats_t{});
}

// ---------------------------------------------------------------------------- kernels

/// Returns the kernel of a name that a context was given.
AttentionKernel kernel_named(const char *name) {
  const auto *const found = std::find(std::begin(kAttentionKernelNames),
                                      std::end(kAttentionKernelNames), std::string_view(name));
  MP_REQUIRE(found != std::end(kAttentionKernelNames), MP_ERROR_NOT_FOUND, "kernel = ", name,
             " is unknown");
  return static_cast<AttentionKernel>(found - kAttentionKernelNames);
}

const char *kernel_name(AttentionKernel kernel) {
  return kAttentionKernelNames[static_cast<int>(kernel)];
}

/// Returns the arguments of a pass, with its kernel.
AttentionArgs arguments_of(const Context &context, const mp_attention_desc_t &d,
                           const mp_attention_tensors_t &t, AttentionPass pass, void *workspace) {
  const auto drop_threshold = static_cast<int32_t>(std::lround(d.dropout * 256.0f));
  AttentionArgs args{t, d, drop_threshold, static_cast<float *>(workspace), {}};
  if (const char *const forced = context.attention_kernel) {
    args.kernel = kernel_named(forced);
    const char *const why = why_not(args.kernel, args, pass, context.device);
    MP_REQUIRE(why == nullptr, MP_ERROR_UNSUPPORTED, "kernel = ", forced, " ", why);
  } else {
    args.kernel = rank_attention_kernels(args, pass, context.device)[0];
  }
  return args;
}

/// Returns the kernels that a pass does not use, best first, with reasons as clauses.
std::vector<PlanCandidate> other_kernels(const Context &context, const AttentionArgs &args,
                                         AttentionPass pass) {
  std::vector<PlanCandidate> others;
  for (const AttentionKernel kernel : rank_attention_kernels(args, pass, context.device)) {
    if (kernel == args.kernel) continue;
    const char *why = why_not(kernel, args, pass, context.device);
    if (why == nullptr)
      why = context.attention_kernel != nullptr ? "is not the kernel of mp_attention_set_kernel"
                                                : "is slower";
    others.push_back({kernel_name(kernel), why, 0, 0});
  }
  return others;
}

void add_pass(Lines &lines, const Context &context, const mp_attention_desc_t &d,
              AttentionPass pass) {
  const AttentionArgs args = arguments_of(context, d, {}, pass, nullptr);
  const bool is_forward = pass == AttentionPass::forward;
  lines.add("pass          ", is_forward ? "forward" : "backward");
  lines.add("kernel        ", kernel_name(args.kernel));
  for (const AttentionLaunch &launch : attention_launches(args, pass, context.device))
    lines.add("  ", launch.name, "  ", launch.blocks, " blocks, tile ", launch.tile.rows, " x ",
              launch.tile.columns, ", shared memory ", launch.tile.smem_bytes, " bytes");
  lines.add("workspace     ", is_forward ? 0 : backward_workspace_bytes(d), " bytes");
  lines.add("next candidates");
  for (const PlanCandidate &other : other_kernels(context, args, pass))
    lines.add("  ", other.name, "  ", other.reason);
}

/// Logs the plan of a call, with the reason if it is the plain kernel.
void log_plan(const Context &context, const AttentionArgs &args, AttentionPass pass) {
  const auto launches = attention_launches(args, pass, context.device);
  const bool is_forward = pass == AttentionPass::forward;
  const PlanCandidate other = other_kernels(context, args, pass).front();
  const Message reason(": ", other.name, " ", other.reason);
  log_new_plan(Message("plan: ", kernel_name(args.kernel), " for attention ",
                       is_forward ? "forward, " : "backward, ", payload_text(args.desc).c_str(),
                       ", launches = ", launches.size(),
                       ", smem_bytes = ", launches.front().tile.smem_bytes,
                       ", workspace_bytes = ", is_forward ? 0 : backward_workspace_bytes(args.desc),
                       args.kernel == AttentionKernel::plain ? reason.c_str() : ""));
}

mp_kernel_info_t info_of(const Context &context, const mp_attention_desc_t &d, int32_t index) {
  MP_REQUIRE(index < kAttentionKernels, MP_ERROR_NOT_FOUND, "index = ", index, " is outside [0, ",
             kAttentionKernels, "): ", kAttentionKernels, " kernels are available");
  const AttentionArgs args{{}, d, 0, nullptr, {}};  // NULL is aligned
  const auto pass = AttentionPass::backward;
  const AttentionKernel kernel =
      rank_attention_kernels(args, pass, context.device)[static_cast<size_t>(index)];
  mp_kernel_info_t info{};
  info.name = kernel_name(kernel);
  info.reason = why_not(kernel, args, pass, context.device);
  if (info.reason == nullptr) info.workspace_bytes = backward_workspace_bytes(d);
  return info;
}

}  // namespace

mp_status_t mp_attention_forward(mp_context_t context, const mp_attention_desc_t *desc,
                                 const mp_attention_tensors_t *tensors, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const mp_attention_tensors_t t = read_tensors(tensors);
    if (d.batch == 0) return;
    const auto pass = AttentionPass::forward;
    require_pass(d, t, pass);
    const AttentionArgs args = arguments_of(c, d, t, pass, nullptr);
    if (logs_plans()) log_plan(c, args, pass);
    c.backend.attention_forward(c.device, args, stream);
  });
}

mp_status_t mp_attention_backward_workspace_size(mp_context_t context,
                                                 const mp_attention_desc_t *desc, size_t *bytes) {
  return call(__func__, context, desc, read_desc, [&](const auto &, const auto &d) {
    require_pointer(bytes, "bytes") = backward_workspace_bytes(d);
  });
}

mp_status_t mp_attention_backward(mp_context_t context, const mp_attention_desc_t *desc,
                                  const mp_attention_tensors_t *tensors, void *workspace,
                                  size_t workspace_bytes, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const mp_attention_tensors_t t = read_tensors(tensors);
    require_sinks(t);
    if (d.batch == 0) {
      // Sums over no sequences are 0.
      clear_sums(c, t.dsinks, d.heads, stream);
      return;
    }
    const size_t needed = backward_workspace_bytes(d);
    require_workspace(workspace, workspace_bytes, needed);
    const auto pass = AttentionPass::backward;
    require_pass(d, t, pass, workspace_region(workspace, needed));
    const AttentionArgs args = arguments_of(c, d, t, pass, workspace);
    if (logs_plans()) log_plan(c, args, pass);
    c.backend.attention_backward(c.device, args, stream);
  });
}

mp_status_t mp_attention_kernel_info(mp_context_t context, const mp_attention_desc_t *desc,
                                     int32_t index, mp_kernel_info_t *info) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    require_struct(info, "info");
    require_not_negative(index, "index");
    write_struct(info, "info", info_of(c, d, index));
  });
}

mp_status_t mp_attention_explain(mp_context_t context, const mp_attention_desc_t *desc, char *text,
                                 size_t *bytes) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    Lines lines;
    lines.add("problem       ", payload_text(d).c_str());
    for (const auto pass : {AttentionPass::forward, AttentionPass::backward})
      add_pass(lines, c, d, pass);
    write_text(lines.text(), text, bytes);
  });
}

mp_status_t mp_attention_set_kernel(mp_context_t context, const char *kernel) {
  return call(__func__, context, [&](const Context &c) {
    c.attention_kernel = kernel == nullptr ? nullptr : kernel_name(kernel_named(kernel));
  });
}
