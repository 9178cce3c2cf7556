// A recurrent network on the device, with all tensors between guard zones, in any layout.
#pragma once

#include <deque>
#include <optional>
#include <string_view>

#include "rnn_case.h"

namespace mptest {

/// A tensor of rows, one per step and sequence.
class StepArray {
 public:
  StepArray(const RnnCase &c, int64_t columns, uint8_t pattern);

  void *data() const { return memory_->data(); }
  int64_t step() const { return step_; }
  int64_t row() const { return row_; }
  void upload(const Values &values);  ///< packed layouts: only existing rows
  Values download() const;            ///< packed layouts: 0 for missing rows
  /// Returns "" or that elements between the rows were written.
  std::string damage() const { return memory_->damage(); }

 private:
  int64_t columns_, step_, row_;
  std::vector<int64_t> numbers_;  ///< t batch + n of each row in memory
  Matrices rows_;                 ///< in memory: packed, a single matrix
  size_t elements_;               ///< including missing rows
  std::optional<DeviceMatrices> memory_;
};

class RnnRun {
 public:
  RnnRun(const RnnCase &c, const RnnData &data);

  mp_status_t forward_training() { return call(mp_rnn_forward_training); }
  mp_status_t forward_inference() { return call(mp_rnn_forward_inference); }
  mp_status_t backward_data() { return call(mp_rnn_backward_data); }
  mp_status_t backward_weights() { return call(mp_rnn_backward_weights); }
  /// Makes the three calls of training.
  void train();

  /// Enqueues the three passes of training.
  void enqueue_training(mp_stream_t stream);
  void set_x(const Values &x) { x_.upload(x); }

  /// Returns the outputs of the passes enqueued so far.
  RnnResult result() const;
  std::string damage() const;

  mp_rnn_desc_t desc;
  mp_rnn_tensors_t tensors{};
  mp_rnn_sizes_t sizes{};
  const GuardedBytes &reserve() const { return *reserve_; }

 private:
  using Call = mp_status_t (*)(mp_context_t, const mp_rnn_desc_t *, const mp_rnn_tensors_t *,
                               void *, size_t, mp_stream_t);
  mp_status_t call(Call function);

  StepArray x_, y_, dy_, dx_;
  DeviceArray h0_, c0_, hn_, cn_, dhn_, dcn_, dh0_, dc0_;
  std::deque<DeviceArray> weights_, grads_;  ///< [layer][direction][kRnnParts]
  std::vector<mp_rnn_weights_t> weight_pointers_;
  std::vector<mp_rnn_weight_grads_t> grad_pointers_;
  DeviceBuffer<int32_t> lengths_;
  std::vector<int32_t> batch_sizes_;
  DeviceBuffer<uint64_t> dropout_offset_;
  DeviceBuffer<float> found_inf_, amax_;
  std::optional<GuardedBytes> reserve_, workspace_;
};

/// Returns the names of the kernels that support the case, the library's choice first.
std::vector<const char *> kernels_of(const RnnCase &c);
bool is_supported(std::string_view kernel, const RnnCase &c);

/// Runs all three passes of training.
RnnResult train(const RnnCase &c, const RnnData &data);

}  // namespace mptest
