// mpcore/rnn.h: recurrent layers.
#define MP_ENABLE_EXPERIMENTAL
#include <algorithm>
#include <vector>

#include "capi/gemm_problem.h"
#include "capi/kernel_info.h"
#include "capi/nvtx_payload.h"
#include "kernels/rnn/rnn_problem.h"

using namespace mp;

namespace {

constexpr int32_t kMaxLayers = 65535;  // dropout masks have 16 bits for the layer

// ---------------------------------------------------------------------------- descriptor

/// Names of the strides of a tensor.
struct StrideNames {
  const char *step, *row, *columns;
};

/// Checks the strides of a tensor, and replaces 0 by the stride of a dense tensor.
void require_strides(int64_t &step, int64_t &row, int64_t columns, const mp_rnn_desc_t &d,
                     const StrideNames &names) {
  if (row == 0) row = columns;
  require_at_least({row, names.row}, {columns, names.columns});
  MP_REQUIRE(step != 0 || multiply_add(d.batch, row, 0, &step), MP_ERROR_INVALID_ARGUMENT,
             names.row, " = ", row,
             ": number of elements of a time step exceeds 2^63 - 1; batch = ", d.batch);
  if (d.batch == 0 || d.timesteps == 0) return;
  require_at_least({step, names.step}, {columns, names.columns});
  int64_t of_step, of_sequence, all;
  MP_REQUIRE(strided_extent(d.batch, row, columns, &of_step) &&
                 strided_extent(d.timesteps, step, columns, &of_sequence) &&
                 strided_extent(d.timesteps, step, of_step, &all) && bytes_fit(all, MP_FP32),
             MP_ERROR_INVALID_ARGUMENT, names.step, " = ", step, " and ", names.row, " = ", row,
             ": size in bytes exceeds 2^63 - 1");
  MP_REQUIRE(step >= of_step || row >= of_sequence || d.timesteps == 1 || d.batch == 1,
             MP_ERROR_INVALID_ARGUMENT, names.step, " = ", step, " and ", names.row, " = ", row,
             ": rows of ", columns, " elements overlap; timesteps = ", d.timesteps,
             ", batch = ", d.batch);
}

/// Fails if a size in bytes, workspace included, could exceed 64 bits.
void require_countable(const RnnShape &s) {
  constexpr double kMaxBytes = 0x1p60, kLargestElement = 4.0, kParts = 4.0;
  const double hidden = s.hidden_size, directions = static_cast<double>(s.directions);
  const double columns = std::max<double>(s.input_size, directions * hidden);
  const double per_row = kParts * directions * static_cast<double>(s.slots) * columns;
  const double weights = static_cast<double>(s.gates) * hidden * columns;
  const double rows = std::max(1.0, static_cast<double>(s.timesteps)) * std::max(1, s.batch);
  MP_REQUIRE(kLargestElement * s.layers * (rows * per_row + weights) < kMaxBytes,
             MP_ERROR_INVALID_ARGUMENT, "timesteps = ", s.timesteps, ", batch = ", s.batch,
             ", input_size = ", s.input_size, ", hidden_size = ", s.hidden_size,
             ", layers = ", s.layers, ": size in bytes exceeds 2^63 - 1");
}

RnnShape read_shape(const mp_rnn_desc_t *user) {
  mp_rnn_desc_t d = read_struct(user, "desc");
  require_enum(d.cell, "cell");
  require_flags(d.flags,
                MP_RNN_FLAG_BIDIRECTIONAL | MP_RNN_FLAG_NO_BIAS | MP_RNN_FLAG_SKIP_INPUT |
                    MP_RNN_FLAG_RESET_FIRST | MP_RNN_FLAG_ACCUMULATE,
                "flags");
  MP_CHECK_FIELDS(require_dtype, d, dtype, dtype_dw);
  require_within(d.layers, "layers", 1, kMaxLayers);
  MP_CHECK_FIELDS(require_positive, d, input_size, hidden_size);
  MP_CHECK_FIELDS(require_not_negative, d, batch, timesteps);
  require_fraction(d.dropout, "dropout");
  require_finite_not_negative(d.clip, "clip");
  MP_REQUIRE(d.clip == 0.0f || d.cell == MP_RNN_LSTM, MP_ERROR_INVALID_ARGUMENT, "clip = ", d.clip,
             " requires cell = MP_RNN_LSTM, but cell = ", d.cell);
  MP_REQUIRE((d.flags & MP_RNN_FLAG_RESET_FIRST) == 0 || d.cell == MP_RNN_GRU,
             MP_ERROR_INVALID_ARGUMENT, "flags = ", Flags{d.flags},
             ": MP_RNN_FLAG_RESET_FIRST requires cell = MP_RNN_GRU, but cell = ", d.cell);
  MP_REQUIRE((d.flags & MP_RNN_FLAG_SKIP_INPUT) == 0 || d.input_size == d.hidden_size,
             MP_ERROR_INVALID_ARGUMENT, "input_size = ", d.input_size,
             " must equal hidden_size = ", d.hidden_size, " with MP_RNN_FLAG_SKIP_INPUT");
  require_countable(RnnShape(d));
  require_strides(d.x_step, d.x_row, d.input_size, d, {"x_step", "x_row", "input_size"});
  require_strides(d.y_step, d.y_row, RnnShape(d).outputs(), d,
                  {"y_step", "y_row", "directions * hidden_size"});
  return RnnShape(d);
}

// ---------------------------------------------------------------------------- kernels

mp_kernel_info_t info_of(const Context &context, const RnnShape &s, int32_t index) {
  MP_REQUIRE(index < kRnnKernels, MP_ERROR_NOT_FOUND, "index = ", index, " is outside [0, ",
             kRnnKernels, "): ", kRnnKernels, " kernels are available");
  const RnnKernel kernel = rank_rnn_kernels(s, context.device)[static_cast<size_t>(index)];
  mp_kernel_info_t info{};
  info.name = kRnnKernelNames[static_cast<int>(kernel)];
  info.reason = why_not(kernel, s, context.device);
  if (info.reason != nullptr) return info;
  const mp_plan_t forced = mp_plan_default(info.name);
  info.workspace_bytes = most_workspace(context, s, &forced);
  return info;
}

// ---------------------------------------------------------------------------- tensors

/// Fails, with the index in the message, if a pointer in a host array is NULL or misaligned.
template <class T>
void require_element(const T *pointer, const char *array, uint32_t index, const char *field,
                     size_t alignment) {
  if (pointer != nullptr && is_aligned(pointer, alignment)) return;
  require_device(pointer, Message("tensors->", array, "[", index, "].", field).c_str(), alignment);
}

class TensorReader {
 public:
  TensorReader(const RnnShape &shape, RnnPass pass, const mp_rnn_tensors_t *user)
      : s_(shape), pass_(pass), t_(read_struct(user, "tensors")) {}

  /// Returns the tensors; the arrays of weights are copies that the reader owns.
  mp_rnn_tensors_t read() {
    const uint32_t wanted = static_cast<uint32_t>(s_.layers * s_.directions);
    MP_REQUIRE(t_.num_weights == wanted, MP_ERROR_INVALID_ARGUMENT,
               "tensors->num_weights = ", t_.num_weights,
               " must equal layers * directions = ", wanted);
    require_aligned(t_.lengths, "tensors->lengths");
    if (pass_ != RnnPass::inference) require_aligned(t_.dropout_offset, "tensors->dropout_offset");
    optional(t_.h0, "tensors->h0");
    if (s_.cell != MP_RNN_LSTM) t_.c0 = t_.dcn = nullptr, t_.cn = t_.dc0 = nullptr;
    switch (pass_) {
      case RnnPass::training:
      case RnnPass::inference:
        read_forward();
        break;
      case RnnPass::backward_data:
        read_backward_data();
        break;
      case RnnPass::backward_weights:
        read_backward_weights();
        break;
    }
    if (pass_ != RnnPass::inference) read_reserve();
    return t_;
  }

 private:
  size_t element() const { return mp_dtype_size(s_.dtype); }
  void optional(const void *pointer, const char *name) const {
    require_aligned(pointer, name, element());
  }
  /// Checks a tensor over time steps, which is optional if there are none.
  void required(const void *pointer, const char *name) const {
    if (s_.is_empty())
      optional(pointer, name);
    else
      require_device(pointer, name, element());
  }

  /// Copies an array whose elements may be shorter than those of this version.
  template <class Element>
  void read_array(const Element *&array, std::vector<Element> &copies, const char *name) {
    for (uint32_t i = 0; i < t_.num_weights; i++) {
      copies.push_back(read_element(array, i, name));
      if (copies[i].reserved0 != 0)
        require_zero(copies[i].reserved0, Message(name, "[", i, "].reserved0").c_str());
    }
    array = copies.data();
  }

  void read_weights() {
    read_array(t_.weights, weights_, "tensors->weights");
    for (uint32_t i = 0; i < t_.num_weights; i++) {
      const mp_rnn_weights_t &w = weights_[i];
      if (!s_.skips_input(i / s_.directions))
        require_element(w.w_ih, "weights", i, "w_ih", element());
      require_element(w.w_hh, "weights", i, "w_hh", element());
      if (s_.has(MP_RNN_FLAG_NO_BIAS)) continue;
      require_element(w.b_ih, "weights", i, "b_ih", alignof(float));
      require_element(w.b_hh, "weights", i, "b_hh", alignof(float));
    }
  }

  void read_forward() {
    read_weights();
    MP_CHECK_TENSORS(required, t_, x, y);
    optional(t_.hn, "tensors->hn");
    MP_CHECK_TENSORS(require_aligned, t_, c0, cn);
    if (pass_ == RnnPass::inference) return;
    const auto require_kept = [](const void *out, const void *in, const char *name,
                                 const char *in_name) {
      MP_REQUIRE(out == nullptr || out != in, MP_ERROR_INVALID_ARGUMENT, name, " = ", out,
                 " must differ from ", in_name, ", which the backward pass reads");
    };
    require_kept(t_.hn, t_.h0, "tensors->hn", "tensors->h0");
    require_kept(t_.cn, t_.c0, "tensors->cn", "tensors->c0");
  }

  void read_backward_data() {
    read_weights();
    required(t_.dy, "tensors->dy");
    MP_CHECK_TENSORS(optional, t_, dhn, dx, dh0);
    MP_CHECK_TENSORS(require_aligned, t_, c0, dcn, dc0, stats.found_inf);
  }

  void read_backward_weights() {
    read_array(t_.weight_grads, weight_grads_, "tensors->weight_grads");
    const size_t element_dw = mp_dtype_size(s_.dtype_dw);
    bool reads_x = false;
    for (uint32_t i = 0; i < t_.num_weights; i++) {
      const mp_rnn_weight_grads_t &g = weight_grads_[i];
      const auto check = [&](const void *pointer, const char *field, size_t alignment) {
        if (pointer != nullptr) require_element(pointer, "weight_grads", i, field, alignment);
      };
      const bool has_w_ih = !s_.skips_input(i / s_.directions);
      if (has_w_ih) check(g.w_ih, "w_ih", element_dw);
      check(g.w_hh, "w_hh", element_dw);
      reads_x |= has_w_ih && i < s_.directions && g.w_ih != nullptr;
      if (s_.has(MP_RNN_FLAG_NO_BIAS)) continue;
      check(g.b_ih, "b_ih", alignof(float));
      check(g.b_hh, "b_hh", alignof(float));
    }
    require_stats(t_.stats);
    if (reads_x) required(t_.x, "tensors->x");
  }

  void read_reserve() const {
    const size_t needed = rnn_reserve(s_).bytes;
    if (needed == 0) return;
    require_device(t_.reserve, "tensors->reserve", 256);
    MP_REQUIRE(t_.reserve_bytes >= needed, MP_ERROR_WORKSPACE_TOO_SMALL,
               "tensors->reserve_bytes = ", t_.reserve_bytes, " must be at least ", needed);
  }

  const RnnShape &s_;
  const RnnPass pass_;
  mp_rnn_tensors_t t_;
  std::vector<mp_rnn_weights_t> weights_;
  std::vector<mp_rnn_weight_grads_t> weight_grads_;
};

/// Returns the first row of each step of a packed batch, then the total; empty if not packed.
std::vector<int64_t> read_steps(const RnnShape &s, const mp_rnn_tensors_t &t) {
  if (t.batch_sizes == nullptr) return {};
  MP_REQUIRE(t.lengths == nullptr, MP_ERROR_INVALID_ARGUMENT,
             "tensors->lengths cannot be combined with tensors->batch_sizes");
  std::vector<int64_t> rows = {0};
  int32_t most = s.batch;
  for (int32_t i = 0; i < s.timesteps; i++) {
    const int32_t size = t.batch_sizes[i];
    MP_REQUIRE(size >= 0 && size <= most, MP_ERROR_INVALID_ARGUMENT, "tensors->batch_sizes[", i,
               "] = ", size, " is outside [0, ", most, "]");
    rows.push_back(rows.back() + size);
    most = size;
  }
  return rows;
}

/// Fails if outputs overlap inputs; read() checks if hn may equal h0, and cn may equal c0.
void check_overlap(const RnnShape &s, RnnPass pass, const mp_rnn_tensors_t &t,
                   const std::vector<int64_t> &packed_steps) {
  const auto sequences = [&](const void *data, const char *name, int64_t columns, int64_t row,
                             int64_t step) {
    Region region =
        strided_region(data, name, columns, {s.batch, row}, {s.timesteps, step}, s.dtype);
    if (!packed_steps.empty()) region.rows.count = packed_steps.back(), region.items = {};
    return region;
  };
  const int64_t states = s.layers * s.directions * s.batch * s.hidden_size;
  const auto state = [&](const void *data, const char *name) {
    return dense_region(data, name, states, s.dtype);
  };
  const auto cell = [&](const float *data, const char *name) {
    return dense_region(data, name, states);
  };
  const auto outer = [&](const void *data, const char *name) {
    return sequences(data, name, s.outputs(), s.y_row, s.y_step);
  };
  const auto inner = [&](const void *data, const char *name) {
    return sequences(data, name, s.input_size, s.x_row, s.x_step);
  };
  if (pass == RnnPass::backward_data) {
    const Region dy = outer(t.dy, "tensors->dy"), dx = inner(t.dx, "tensors->dx");
    const Region dhn = state(t.dhn, "tensors->dhn"), dcn = cell(t.dcn, "tensors->dcn");
    const Region dh0 = state(t.dh0, "tensors->dh0"), dc0 = cell(t.dc0, "tensors->dc0");
    require_apart(dx, {dy, dhn, dcn, cell(t.c0, "tensors->c0")});
    require_apart(dense_region(t.stats.found_inf, kStatsOfTensors.found_inf), {dx, dh0, dc0});
    for (const Region &written : {dh0, dc0}) {
      require_apart(written, {dy, dx});
      require_apart_or_same(written, dhn);
      require_apart_or_same(written, dcn);
    }
  } else if (pass != RnnPass::backward_weights) {
    const Region x = inner(t.x, "tensors->x"), y = outer(t.y, "tensors->y");
    const Region h0 = state(t.h0, "tensors->h0"), c0 = cell(t.c0, "tensors->c0");
    require_apart(y, {x, h0, c0});
    for (const Region &written : {state(t.hn, "tensors->hn"), cell(t.cn, "tensors->cn")}) {
      require_apart(written, {x, y});
      require_apart_or_same(written, h0);
      require_apart_or_same(written, c0);
    }
  }
}

// ---------------------------------------------------------------------------- calls

/// Sets all gradients to 0, the sum over no rows.
void clear_weight_grads(const Context &c, const RnnShape &s, const mp_rnn_tensors_t &t,
                        mp_stream_t stream) {
  if (s.has(MP_RNN_FLAG_ACCUMULATE)) return;
  const auto clear = [&](void *grad, int64_t elements, size_t element_bytes) {
    if (grad == nullptr) return;
    c.backend.fill(c.device, grad, 0, static_cast<size_t>(elements) * element_bytes, stream);
  };
  const size_t element = mp_dtype_size(s.dtype_dw);
  for (uint32_t i = 0; i < t.num_weights; i++) {
    const mp_rnn_weight_grads_t &g = t.weight_grads[i];
    const int64_t layer = i / s.directions;
    if (!s.skips_input(layer)) clear(g.w_ih, s.gate_rows * s.inputs(layer), element);
    clear(g.w_hh, s.gate_rows * s.hidden_size, element);
    if (s.has(MP_RNN_FLAG_NO_BIAS)) continue;
    clear(g.b_ih, s.gate_rows, sizeof(float));
    clear(g.b_hh, s.gate_rows, sizeof(float));
  }
}

mp_status_t run(const char *function, mp_context_t context, const mp_rnn_desc_t *desc, RnnPass pass,
                const mp_rnn_tensors_t *tensors, const Workspace &workspace, mp_stream_t stream) {
  return call(function, context, nvtx_payload(desc), [&](const Context &c) {
    const RnnShape shape = read_shape(desc);
    TensorReader reader(shape, pass, tensors);
    const mp_rnn_tensors_t t = reader.read();
    std::vector<int64_t> steps = read_steps(shape, t);
    check_overlap(shape, pass, t, steps);
    const RnnPlan plan = plan_rnn(c, shape, shape.plan, pass);
    const RnnWorkspace layout = rnn_workspace(shape, pass, plan.gemm_bytes);
    require_workspace(workspace.ptr, workspace.bytes, layout.bytes);
    const bool has_rows = !shape.is_empty() && (steps.empty() || steps.back() > 0);
    if (shape.batch == 0 && pass != RnnPass::backward_weights) return;
    const RnnProblem problem{pass,          shape,           t, &plan, rnn_reserve(shape), layout,
                             workspace.ptr, std::move(steps)};
    switch (pass) {
      case RnnPass::training:
      case RnnPass::inference:
        return c.backend.rnn_forward(c.device, problem, stream);
      case RnnPass::backward_data:
        return c.backend.rnn_backward_data(c.device, problem, stream);
      case RnnPass::backward_weights:
        if (!has_rows) return clear_weight_grads(c, shape, t, stream);
        return c.backend.rnn_backward_weights(c.device, problem, stream);
    }
  });
}

}  // namespace

mp_status_t mp_rnn_get_sizes(mp_context_t context, const mp_rnn_desc_t *desc,
                             mp_rnn_sizes_t *sizes) {
  return call(__func__, context, nvtx_payload(desc), [&](const Context &c) {
    const RnnShape s = read_shape(desc);
    mp_rnn_sizes_t answer{};
    answer.directions = static_cast<uint32_t>(s.directions);
    answer.gates = static_cast<uint32_t>(s.gates);
    answer.num_weights = static_cast<uint32_t>(s.layers * s.directions);
    answer.reserve_bytes = rnn_reserve(s).bytes;
    answer.workspace_bytes = most_workspace(c, s, s.plan);
    write_struct(sizes, "sizes", answer);
  });
}

mp_status_t mp_rnn_get_plan(mp_context_t context, const mp_rnn_desc_t *desc, mp_plan_t *plan) {
  return call(__func__, context, nvtx_payload(desc), [&](const Context &c) {
    const RnnShape s = read_shape(desc);
    require_struct(plan, "plan");
    MP_REQUIRE(!s.is_empty(), MP_ERROR_NOT_FOUND, "batch = ", s.batch,
               ", timesteps = ", s.timesteps, ": an empty problem requires no kernel");
    write_struct(plan, "plan", stable_rnn_plan(c, s, s.plan));
  });
}

mp_status_t mp_rnn_forward_training(mp_context_t context, const mp_rnn_desc_t *desc,
                                    const mp_rnn_tensors_t *tensors, void *workspace,
                                    size_t workspace_bytes, mp_stream_t stream) {
  return run(__func__, context, desc, RnnPass::training, tensors, {workspace, workspace_bytes},
             stream);
}

mp_status_t mp_rnn_forward_inference(mp_context_t context, const mp_rnn_desc_t *desc,
                                     const mp_rnn_tensors_t *tensors, void *workspace,
                                     size_t workspace_bytes, mp_stream_t stream) {
  return run(__func__, context, desc, RnnPass::inference, tensors, {workspace, workspace_bytes},
             stream);
}

mp_status_t mp_rnn_backward_data(mp_context_t context, const mp_rnn_desc_t *desc,
                                 const mp_rnn_tensors_t *tensors, void *workspace,
                                 size_t workspace_bytes, mp_stream_t stream) {
  return run(__func__, context, desc, RnnPass::backward_data, tensors, {workspace, workspace_bytes},
             stream);
}

mp_status_t mp_rnn_backward_weights(mp_context_t context, const mp_rnn_desc_t *desc,
                                    const mp_rnn_tensors_t *tensors, void *workspace,
                                    size_t workspace_bytes, mp_stream_t stream) {
  return run(__func__, context, desc, RnnPass::backward_weights, tensors,
             {workspace, workspace_bytes}, stream);
}

mp_status_t mp_rnn_kernel_info(mp_context_t context, const mp_rnn_desc_t *desc, int32_t index,
                               mp_kernel_info_t *info) {
  return call(__func__, context, nvtx_payload(desc), [&](const Context &c) {
    const RnnShape shape = read_shape(desc);
    require_struct(info, "info");
    require_not_negative(index, "index");
    write_struct(info, "info", info_of(c, shape, index));
  });
}
