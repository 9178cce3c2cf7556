#define MP_ENABLE_EXPERIMENTAL
#include "rnn_run.h"

#include "tests/support/kernels.h"

namespace mptest {

// ---------------------------------------------------------------------------- rows

StepArray::StepArray(const RnnCase &c, int64_t columns, uint8_t pattern) : columns_(columns) {
  const int64_t batch = c.desc.batch, timesteps = c.desc.timesteps;
  const int64_t gap = c.layout == RnnLayout::kDense ? 0 : c.desc.hidden_size % 2 == 0 ? 8 : 3;
  row_ = columns + gap;
  step_ = batch * row_ + gap;
  if (c.layout == RnnLayout::kBatchMajor) {
    step_ = columns + gap;
    row_ = timesteps * step_ + gap;
  }
  for (int64_t t = 0; t < timesteps; ++t)
    for (int64_t n = 0; n < batch; ++n)
      if (!c.packed || c.has_step(n, t)) numbers_.push_back(t * batch + n);
  rows_ =
      c.packed ? Matrices(1, std::ssize(numbers_), columns) : Matrices(timesteps, batch, columns);
  elements_ = static_cast<size_t>(timesteps * batch * columns);
  memory_.emplace(c.desc.dtype, rows_.count, rows_.rows, columns, row_, step_, c.offset, pattern);
}

void StepArray::upload(const Values &values) {
  auto to = rows_.values.begin();
  for (const int64_t number : numbers_)
    to = std::copy_n(values.begin() + number * columns_, columns_, to);
  memory_->upload(rows_);
}

Values StepArray::download() const {
  const Matrices rows = memory_->download();
  Values values(elements_);
  for (size_t i = 0; i < numbers_.size(); ++i)
    std::copy_n(rows.values.begin() + static_cast<int64_t>(i) * columns_, columns_,
                values.begin() + numbers_[i] * columns_);
  return values;
}

// ---------------------------------------------------------------------------- calls

namespace {

std::vector<int32_t> batch_sizes_of(const RnnCase &c) {
  std::vector<int32_t> sizes;
  for (int32_t t = 0; t < c.desc.timesteps; ++t) {
    int32_t size = 0;
    for (int64_t n = 0; n < c.desc.batch; ++n) size += c.has_step(n, t);
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

RnnRun::RnnRun(const RnnCase &c, const RnnData &data)
    : desc(c.desc),
      x_(c, c.desc.input_size, kPoison),
      y_(c, c.outputs(), kCanary),
      dy_(c, c.outputs(), kPoison),
      dx_(c, c.desc.input_size, kCanary),
      h0_(c.desc.dtype, data.h0, c.offset),
      c0_(MP_FP32, data.c0, c.offset),
      hn_(c.desc.dtype, c.states_size(), c.offset, kCanary),
      cn_(MP_FP32, c.is_lstm() ? c.states_size() : 0, c.offset, kCanary),
      dhn_(c.desc.dtype, data.dhn, c.offset),
      dcn_(MP_FP32, data.dcn, c.offset),
      dh0_(c.desc.dtype, c.states_size(), c.offset, kCanary),
      dc0_(MP_FP32, c.is_lstm() ? c.states_size() : 0, c.offset, kCanary),
      lengths_(c.lengths),
      batch_sizes_(batch_sizes_of(c)),
      dropout_offset_(std::vector<uint64_t>{c.dropout_offset}),
      found_inf_(std::vector<float>{0.0f}),
      amax_(std::vector<float>{0.0f}) {
  x_.upload(data.x);
  dy_.upload(data.dy);
  for (size_t i = 0; i < data.weights.size(); ++i) {
    for (const RnnPart &part : kRnnParts) {
      const Values &values = data.weights[i].*part.values;
      weights_.emplace_back(part.is_bias() ? MP_FP32 : desc.dtype, values, c.offset);
      const mp_dtype_t dtype_dw = part.is_bias() ? MP_FP32 : desc.dtype_dw;
      if (c.has(MP_RNN_FLAG_ACCUMULATE))
        grads_.emplace_back(dtype_dw, data.dw[i].*part.values, c.offset);
      else
        grads_.emplace_back(dtype_dw, static_cast<int64_t>(values.size()), c.offset, kCanary);
    }
    const auto w = [&](size_t part) { return weights_[i * std::size(kRnnParts) + part].data(); };
    const auto g = [&](size_t part) { return grads_[i * std::size(kRnnParts) + part].data(); };
    weight_pointers_.push_back({sizeof(mp_rnn_weights_t), 0, w(0), w(1), static_cast<float *>(w(2)),
                                static_cast<float *>(w(3))});
    grad_pointers_.push_back({sizeof(mp_rnn_weight_grads_t), 0, g(0), g(1),
                              static_cast<float *>(g(2)), static_cast<float *>(g(3))});
  }
  desc.x_step = x_.step();
  desc.x_row = x_.row();
  desc.y_step = y_.step();
  desc.y_row = y_.row();

  MP_INIT_STRUCT(&sizes);
  require_ok(mp_rnn_get_sizes(context(), &desc, &sizes));
  reserve_.emplace(sizes.reserve_bytes, 0, kPoison);
  workspace_.emplace(sizes.workspace_bytes, 0, kPoison);

  MP_INIT_STRUCT(&tensors);
  tensors.num_weights = static_cast<uint32_t>(c.num_weights());
  tensors.weights = weight_pointers_.data();
  tensors.weight_grads = grad_pointers_.data();
  if (!c.lengths.empty() && !c.packed) tensors.lengths = lengths_.data();
  if (c.packed) tensors.batch_sizes = batch_sizes_.data();
  if (c.has_dropout_offset) tensors.dropout_offset = dropout_offset_.data();
  tensors.x = x_.data();
  tensors.y = y_.data();
  tensors.dy = dy_.data();
  tensors.dx = dx_.data();
  if (c.states) {
    tensors.h0 = h0_.data();
    tensors.c0 = static_cast<const float *>(c0_.data());
    tensors.dhn = dhn_.data();
    tensors.dcn = static_cast<const float *>(dcn_.data());
  }
  if (c.final_states) {
    tensors.hn = hn_.data();
    tensors.cn = static_cast<float *>(cn_.data());
    tensors.dh0 = dh0_.data();
    tensors.dc0 = static_cast<float *>(dc0_.data());
  }
  tensors.reserve = reserve_->data();
  tensors.reserve_bytes = sizes.reserve_bytes;
  tensors.stats.found_inf = found_inf_.data();
  tensors.stats.amax = amax_.data();
}

mp_status_t RnnRun::call(Call function) {
  // A pass must not depend on the workspace contents of the previous one.
  const std::vector<uint8_t> garbage(workspace_->bytes(), kPoison);
  if (!garbage.empty()) workspace_->upload(garbage.data(), garbage.size());
  return function(context(), &desc, &tensors, workspace_->data(), workspace_->bytes(), kStream);
}

void RnnRun::train() {
  require_ok(forward_training());
  require_ok(backward_data());
  require_ok(backward_weights());
}

void RnnRun::enqueue_training(mp_stream_t stream) {
  for (const Call pass : {mp_rnn_forward_training, mp_rnn_backward_data, mp_rnn_backward_weights})
    require_ok(pass(context(), &desc, &tensors, workspace_->data(), workspace_->bytes(), stream));
}

RnnResult RnnRun::result() const {
  RnnResult r{y_.download(),
              hn_.download(),
              cn_.download(),
              dx_.download(),
              dh0_.download(),
              dc0_.download(),
              {},
              found_inf_.download()[0],
              amax_.download()[0]};
  constexpr size_t kParts = std::size(kRnnParts);
  r.dw.resize(grads_.size() / kParts);
  for (size_t i = 0; i < grads_.size(); ++i)
    r.dw[i / kParts].*kRnnParts[i % kParts].values = grads_[i].download();
  return r;
}

std::string RnnRun::damage() const {
  for (const StepArray *array : {&y_, &dx_})
    if (const std::string damage = array->damage(); !damage.empty()) return damage;
  for (const std::deque<DeviceArray> *arrays : {&weights_, &grads_})
    for (const DeviceArray &array : *arrays)
      if (const std::string damage = array.guard_damage(); !damage.empty()) return damage;
  for (const GuardedBytes *bytes : {&*reserve_, &*workspace_})
    if (const std::string damage = bytes->guard_damage(); !damage.empty()) return damage;
  return "";
}

std::vector<const char *> kernels_of(const RnnCase &c) {
  return runnable_kernels([&c](int32_t index, mp_kernel_info_t *answer) {
    return mp_rnn_kernel_info(context(), &c.desc, index, answer);
  });
}

bool is_supported(std::string_view kernel, const RnnCase &c) {
  return std::ranges::count(kernels_of(c), kernel) > 0;
}

RnnResult train(const RnnCase &c, const RnnData &data) {
  RnnRun run(c, data);
  run.train();
  expect_none(run.damage(), "");
  return run.result();
}

}  // namespace mptest
