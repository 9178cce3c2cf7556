// mpcore/layers.h: layout, pooling, batch normalization.
#include <algorithm>
#include <initializer_list>
#include <limits>

#include "capi/nvtx_payload.h"
#include "capi/overlap.h"
#include "kernels/layers/layer_args.h"

using namespace mp;

namespace {

/// Fails if the size of a dense tensor overflows; no extent may be negative.
/// @param what  name of the tensor in messages
void require_extents(std::initializer_list<int64_t> extents, mp_dtype_t dtype, const char *what) {
  // If one extent is 0, the product is 0 and the others may have any size.
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return;
  int64_t elems = 1;
  for (const int64_t extent : extents)
    MP_REQUIRE(multiply_add(elems, extent, 0, &elems), MP_ERROR_INVALID_ARGUMENT, what,
               ": number of elements exceeds 2^63 - 1");
  MP_REQUIRE(bytes_fit(elems, dtype), MP_ERROR_INVALID_ARGUMENT, what, " = ", elems,
             ": size in bytes exceeds 2^63 - 1");
}

// ---------------------------------------------------------------------------- layout

struct Images {
  int64_t n, c, h, w;

  auto payload() const {
    return [*this] { return Message("n = ", n, ", c = ", c, ", h = ", h, ", w = ", w); };
  }
};

struct Typed {
  const void *data;
  const mp_dtype_t &dtype;  ///< a reference, not loaded before it is checked (enum_value)
};

enum class Layout { nchw, nhwc };

void transpose(const Context &c, const Images &images, const Typed &src, const Typed &dst,
               Layout dst_layout, mp_stream_t stream) {
  MP_CHECK_FIELDS(require_not_negative, images, n, c, h, w);
  require_dtype(src.dtype, "dtype_src");
  require_dtype(dst.dtype, "dtype_dst");
  require_extents({images.n, images.c, images.h, images.w}, MP_FP32, "n * c * h * w");
  if (images.n == 0 || images.c == 0 || images.h == 0 || images.w == 0) return;
  const int64_t pixels = images.h * images.w, elems = images.n * images.c * pixels;
  require_tensors({{dense_region(src.data, "src", elems, src.dtype), kReads},
                   {dense_region(dst.data, "dst", elems, dst.dtype), kWrites}});
  const bool to_nhwc = dst_layout == Layout::nhwc;
  c.backend.transpose(c.device,
                      {.count = images.n,
                       .rows = to_nhwc ? images.c : pixels,
                       .cols = to_nhwc ? pixels : images.c,
                       .dtype_src = src.dtype,
                       .dtype_dst = dst.dtype,
                       .src = src.data,
                       .dst = const_cast<void *>(dst.data)},
                      stream);
}

// ---------------------------------------------------------------------------- pooling

/// Height or width of a pooling layer.
struct PoolSide {
  NamedNumber size, window, stride, dilation, before, behind;  ///< the last two are padding

  int64_t extent() const { return dilation.value * (window.value - 1) + 1; }
  int64_t padded() const { return size.value + before.value + behind.value; }
};

PoolSide height(const mp_pool2d_desc_t &d) {
  return {{d.h, "h"},
          {d.window_h, "window_h"},
          {d.stride_h, "stride_h"},
          {d.dilation_h, "dilation_h"},
          {d.pad_top, "pad_top"},
          {d.pad_bottom, "pad_bottom"}};
}
PoolSide width(const mp_pool2d_desc_t &d) {
  return {{d.w, "w"},
          {d.window_w, "window_w"},
          {d.stride_w, "stride_w"},
          {d.dilation_w, "dilation_w"},
          {d.pad_left, "pad_left"},
          {d.pad_right, "pad_right"}};
}

void require_side(const PoolSide &side) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  const auto &[size, window, stride, dilation, before, behind] = side;
  for (const NamedNumber &extent : {size, window, stride})
    require_positive(extent.value, extent.name);
  MP_REQUIRE(dilation.value >= 1, MP_ERROR_INVALID_ARGUMENT, dilation.name, " = ", dilation.value,
             " is negative");
  MP_REQUIRE(side.extent() <= kMax, MP_ERROR_INVALID_ARGUMENT, dilation.name, " = ", dilation.value,
             ": size of the dilated window exceeds ", kMax);
  for (const NamedNumber &pad : {before, behind}) {
    require_not_negative(pad.value, pad.name);
    const bool is_inside = pad.value < side.extent();
    MP_REQUIRE(is_inside, MP_ERROR_INVALID_ARGUMENT, pad.name, " = ", pad.value,
               " must be less than ", dilation.value > 1 ? "the dilated " : "", window.name, " = ",
               side.extent());
  }
  constexpr int64_t kMaxPadded = int64_t{1} << 30;
  MP_REQUIRE(side.padded() <= kMaxPadded, MP_ERROR_INVALID_ARGUMENT, size.name, " = ", size.value,
             ": size with padding exceeds ", kMaxPadded);
  MP_REQUIRE(before.value == 0 || dilation.value <= size.value || window.value == 1,
             MP_ERROR_INVALID_ARGUMENT, dilation.name, " = ", dilation.value, " exceeds ",
             size.name, " = ", size.value, "; with padding, a window may contain no pixel");
}

struct Pixels {
  int32_t p, q;
};

/// Returns the number of windows along one side.
int32_t num_outputs(const PoolSide &side, bool is_ceil) {
  const int64_t room = side.padded() - side.extent(), stride = side.stride.value;
  int64_t outputs = room < 0 ? 0 : room / stride + 1;
  if (is_ceil) {
    // One more if the last window is partial and begins before the end of the image.
    const int64_t begin = room < 0 ? 0 : outputs * stride;
    const bool is_partial = room >= 0 ? room % stride != 0 : -room < stride;
    if (is_partial && begin < side.size.value + side.before.value) ++outputs;
  }
  return static_cast<int32_t>(outputs);
}

Pixels outputs_of(const mp_pool2d_desc_t &d) {
  const bool is_ceil = (d.flags & MP_POOL_FLAG_CEIL) != 0;
  return {num_outputs(height(d), is_ceil), num_outputs(width(d), is_ceil)};
}

Region image_region(const mp_pool2d_desc_t &d, const void *data, const char *name) {
  return dense_region(data, name, int64_t{d.n} * d.h * d.w * d.c, d.dtype);
}
int64_t output_elems(const mp_pool2d_desc_t &d, const Pixels &outputs) {
  return int64_t{d.n} * outputs.p * outputs.q * d.c;
}
Region output_region(const mp_pool2d_desc_t &d, const Pixels &outputs, const void *data,
                     const char *name) {
  return dense_region(data, name, output_elems(d, outputs), d.dtype);
}

/// Returns the region of the positions of maxima, which may be NULL.
Region index_region(const mp_pool2d_desc_t &d, const Pixels &outputs, const uint8_t *index) {
  constexpr int64_t kMaxElems = 255;
  const void *const data = index;
  const int64_t elems = int64_t{d.window_h} * d.window_w;
  MP_REQUIRE(index == nullptr || d.mode == MP_POOL_MAX, MP_ERROR_INVALID_ARGUMENT, "index = ", data,
             " must be NULL for mode = ", d.mode);
  MP_REQUIRE(index == nullptr || elems <= kMaxElems, MP_ERROR_INVALID_ARGUMENT, "index = ", data,
             " must be NULL: window_h * window_w = ", elems, " exceeds ", kMaxElems);
  return {data, "index", output_elems(d, outputs)};
}

mp_pool2d_desc_t read_desc(const mp_pool2d_desc_t *user) {
  mp_pool2d_desc_t d = read_struct(user, "desc");
  if (d.dilation_h == 0) d.dilation_h = 1;
  if (d.dilation_w == 0) d.dilation_w = 1;
  require_dtype(d.dtype, "dtype");
  require_enum(d.mode, "mode");
  require_not_negative(d.n, "n");
  require_positive(d.c, "c");
  require_flags(d.flags, MP_POOL_FLAG_CEIL, "flags");
  require_side(height(d));
  require_side(width(d));
  constexpr int64_t kMaxWindow = std::numeric_limits<int32_t>::max();
  const int64_t window = int64_t{d.window_h} * d.window_w;
  MP_REQUIRE(window <= kMaxWindow, MP_ERROR_INVALID_ARGUMENT, "window_h = ", d.window_h,
             ", window_w = ", d.window_w, ": product exceeds ", kMaxWindow);
  const Pixels outputs = outputs_of(d);
  require_extents({d.n, d.h, d.w, d.c}, d.dtype, "n * h * w * c");
  require_extents({d.n, outputs.p, outputs.q, d.c}, d.dtype, "n * P * Q * c");
  return d;
}

// ---------------------------------------------------------------------------- batch normalization

mp_batchnorm_desc_t read_desc(const mp_batchnorm_desc_t *user) {
  const mp_batchnorm_desc_t d = read_struct(user, "desc");
  require_dtype(d.dtype, "dtype");
  require_not_negative(d.rows, "rows");
  require_count(d.channels, "channels", MP_FP32);
  require_extents({d.rows, d.channels}, d.dtype, "rows * channels");
  require_enum(d.activation, "activation");
  MP_REQUIRE(d.activation == MP_ACT_NONE || d.activation == MP_ACT_RELU, MP_ERROR_UNSUPPORTED,
             "activation = ", d.activation, " must be MP_ACT_NONE or MP_ACT_RELU");
  require_finite_not_negative(d.epsilon, "epsilon");
  require_within(d.momentum, "momentum", 0.0f, 1.0f);
  return d;
}

enum class BatchNormPass { training, inference, backward };

Region activations(const mp_batchnorm_desc_t &d, const void *data, const char *name) {
  return dense_region(data, name, d.rows * d.channels, d.dtype);
}
Region channels(const mp_batchnorm_desc_t &d, const float *data, const char *name) {
  return dense_region(data, name, d.channels);
}

bool is_empty(const mp_batchnorm_desc_t &d) {
  return d.rows == 0 || d.channels == 0;
}

size_t workspace_size(const mp_batchnorm_desc_t &d) {
  return is_empty(d) ? 0 : batch_norm_workspace_bytes(d);
}

/// Checks the tensors that a pass uses; activations are processed element by element, and vectors
/// of channels are read by every block.
/// @param workspace  empty for inference
void require_pass(BatchNormPass pass, const mp_batchnorm_desc_t &d, const mp_batchnorm_tensors_t &t,
                  const Region &workspace = {}) {
  const bool is_backward = pass == BatchNormPass::backward;
  const bool is_training = pass == BatchNormPass::training;
  const auto used = [](bool is_used, const Region &region) { return is_used ? region : Region{}; };
  const TensorAccess running_access = is_training ? kMayWrite : kReads;
  const TensorAccess saved_access = is_training ? kWrites : kReads;
  const bool has_saved = pass != BatchNormPass::inference;
  require_tensors(
      {{activations(d, t.x, "tensors->x"), kReads},
       {channels(d, t.gamma, "tensors->gamma"), kMayRead},
       {channels(d, t.beta, "tensors->beta"), kMayRead},
       {used(!is_backward, channels(d, t.running_mean, "tensors->running_mean")), running_access},
       {used(!is_backward, channels(d, t.running_var, "tensors->running_var")), running_access},
       {used(has_saved, channels(d, t.saved_mean, "tensors->saved_mean")), saved_access},
       {used(has_saved, channels(d, t.saved_inv_std, "tensors->saved_inv_std")), saved_access},
       {used(!is_backward, activations(d, t.y, "tensors->y")), kWrites, {"tensors->x"}},
       {used(is_backward, activations(d, t.dy, "tensors->dy")), kReads},
       {used(is_backward, activations(d, t.dx, "tensors->dx")),
        kWrites,
        {"tensors->x", "tensors->dy"}},
       {used(is_backward, channels(d, t.dgamma, "tensors->dgamma")), kMayWrite},
       {used(is_backward, channels(d, t.dbeta, "tensors->dbeta")), kMayWrite},
       {workspace, kMayWrite}},
      is_backward ? t.stats : mp_grad_stats_t{});
}

}  // namespace

mp_status_t mp_nchw_to_nhwc(mp_context_t context, int64_t n, int64_t c, int64_t h, int64_t w,
                            const void *src, mp_dtype_t dtype_src, void *dst, mp_dtype_t dtype_dst,
                            mp_stream_t stream) {
  const Images images{n, c, h, w};
  return call(__func__, context, images.payload(), [&](const Context &on) {
    transpose(on, images, {src, dtype_src}, {dst, dtype_dst}, Layout::nhwc, stream);
  });
}

mp_status_t mp_nhwc_to_nchw(mp_context_t context, int64_t n, int64_t c, int64_t h, int64_t w,
                            const void *src, mp_dtype_t dtype_src, void *dst, mp_dtype_t dtype_dst,
                            mp_stream_t stream) {
  const Images images{n, c, h, w};
  return call(__func__, context, images.payload(), [&](const Context &on) {
    transpose(on, images, {src, dtype_src}, {dst, dtype_dst}, Layout::nchw, stream);
  });
}

mp_status_t mp_pool2d_get_output_size(const mp_pool2d_desc_t *desc, int32_t *p, int32_t *q) {
  return call(__func__, nvtx_payload(desc), [&] {
    const Pixels outputs = outputs_of(read_desc(desc));
    require_pointer(p, "p");
    require_pointer(q, "q");
    *p = outputs.p;
    *q = outputs.q;
  });
}

mp_status_t mp_pool2d_forward(mp_context_t context, const mp_pool2d_desc_t *desc, const void *x,
                              void *y, uint8_t *index, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const Pixels outputs = outputs_of(d);
    const Region of_index = index_region(d, outputs, index);
    if (d.n == 0 || outputs.p == 0 || outputs.q == 0) return;
    require_tensors({{image_region(d, x, "x"), kReads},
                     {output_region(d, outputs, y, "y"), kWrites},
                     {of_index, kMayWrite}});
    c.backend.pool_forward(
        c.device, {.desc = d, .p = outputs.p, .q = outputs.q, .x = x, .y = y, .index = index},
        stream);
  });
}

mp_status_t mp_pool2d_backward(mp_context_t context, const mp_pool2d_desc_t *desc, const void *x,
                               const uint8_t *index, const void *dy, void *dx,
                               const mp_grad_stats_t *stats, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const mp_grad_stats_t of_dx = read_stats(stats);
    const Pixels outputs = outputs_of(d);
    const Region of_index = index_region(d, outputs, index);
    if (d.n == 0) return;
    const bool reads_x = d.mode == MP_POOL_MAX && index == nullptr && output_elems(d, outputs) > 0;
    require_tensors({{reads_x ? image_region(d, x, "x") : Region{}, kReads},
                     {of_index, kMayRead},
                     {output_region(d, outputs, dy, "dy"), kReads},
                     {image_region(d, dx, "dx"), kWrites}},
                    of_dx, kStatsArgument);
    c.backend.pool_backward(c.device,
                            {.desc = d,
                             .p = outputs.p,
                             .q = outputs.q,
                             .x = x,
                             .dy = dy,
                             .dx = dx,
                             .index = const_cast<uint8_t *>(index),
                             .stats = of_dx},
                            stream);
  });
}

mp_status_t mp_batchnorm_workspace_size(mp_context_t context, const mp_batchnorm_desc_t *desc,
                                        size_t *bytes) {
  return call(__func__, context, desc, read_desc, [&](const auto &, const auto &d) {
    require_pointer(bytes, "bytes") = workspace_size(d);
  });
}

mp_status_t mp_batchnorm_forward_training(mp_context_t context, const mp_batchnorm_desc_t *desc,
                                          const mp_batchnorm_tensors_t *tensors, void *workspace,
                                          size_t workspace_bytes, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const mp_batchnorm_tensors_t t = read_tensors(tensors);
    if (is_empty(d)) return;
    const size_t bytes = workspace_size(d);
    require_pass(BatchNormPass::training, d, t, workspace_region(workspace, bytes));
    require_workspace(workspace, workspace_bytes, bytes);
    c.backend.batch_norm_training(c.device, {t, d, static_cast<float *>(workspace)}, stream);
  });
}

mp_status_t mp_batchnorm_forward_inference(mp_context_t context, const mp_batchnorm_desc_t *desc,
                                           const mp_batchnorm_tensors_t *tensors,
                                           mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const mp_batchnorm_tensors_t t = read_tensors(tensors);
    if (is_empty(d)) return;
    require_pass(BatchNormPass::inference, d, t);
    c.backend.batch_norm_inference(c.device, {t, d, nullptr}, stream);
  });
}

mp_status_t mp_batchnorm_backward(mp_context_t context, const mp_batchnorm_desc_t *desc,
                                  const mp_batchnorm_tensors_t *tensors, void *workspace,
                                  size_t workspace_bytes, mp_stream_t stream) {
  return call(__func__, context, desc, read_desc, [&](const auto &c, const auto &d) {
    const mp_batchnorm_tensors_t t = read_tensors(tensors);
    if (d.channels == 0) return;
    MP_CHECK_TENSORS(require_aligned, t, dgamma, dbeta);
    require_stats(t.stats);
    if (d.rows == 0) {
      for (float *const sums : {t.dgamma, t.dbeta}) clear_sums(c, sums, d.channels, stream);
      return;
    }
    const size_t bytes = workspace_size(d);
    require_pass(BatchNormPass::backward, d, t, workspace_region(workspace, bytes));
    require_workspace(workspace, workspace_bytes, bytes);
    c.backend.batch_norm_backward(c.device, {t, d, static_cast<float *>(workspace)}, stream);
  });
}
