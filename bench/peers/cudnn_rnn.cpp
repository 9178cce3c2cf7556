#include "cudnn_rnn.h"

#if __has_include(<cudnn.h>)
#include "cudnn_functions.h"

namespace mpbench {

CudnnRnn::CudnnRnn(const Cudnn &library, const RnnShape &shape, mp_dtype_t dtype, RnnAlgo algo,
                   const std::vector<RnnTensors> &sets, PeerMath math)
    : library_(library), shape_(shape), dtype_(dtype), algo_(algo), sets_(sets) {
  create_descriptors(math);
  create_sets();
}

void CudnnRnn::create_descriptors(PeerMath math) {
  const cudnnDataType_t type = cudnn_type(dtype_);
  const auto hidden = static_cast<int>(shape_.hidden), batch = static_cast<int>(shape_.batch);
  const auto timesteps = static_cast<int>(shape_.timesteps);

  // cuDNN requires a descriptor even without dropout, and then accepts no states (as in PyTorch).
  dropout_ = MPBENCH_DNN_NEW(Dropout);
  MPBENCH_DNN(cudnnSetDropoutDescriptor, dropout_, library_.handle(), 0.0f, nullptr, 0, 0);

  const cudnnRNNMode_t cell = shape_.cell == "lstm"  ? CUDNN_LSTM
                              : shape_.cell == "gru" ? CUDNN_GRU
                                                     : CUDNN_RNN_RELU;
  layer_ = MPBENCH_DNN_NEW(RNN);
  MPBENCH_DNN(cudnnSetRNNDescriptor_v8, layer_, static_cast<cudnnRNNAlgo_t>(algo_), cell,
              CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL, CUDNN_SKIP_INPUT, type, CUDNN_DATA_FLOAT,
              math_type(dtype_, math), hidden, hidden, hidden, /*layers=*/1, dropout_, /*flags=*/0);
  if (algo_ == RnnAlgo::kPersistDynamic)
    MPBENCH_DNN(cudnnBuildRNNDynamic, library_.handle(), layer_, batch);

  // Sequences of equal length need no packing.
  const std::vector<int> lengths(static_cast<size_t>(batch), timesteps);
  steps_ = MPBENCH_DNN_NEW(RNNData);
  MPBENCH_DNN(cudnnSetRNNDataDescriptor, steps_, type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
              timesteps, batch, hidden, lengths.data(), nullptr);
  // cuDNN before 8.9.1 also reads the lengths on the device.
  const auto length_bytes = lengths.size() * sizeof(int);
  lengths_ = Buffer(library_.context(), static_cast<int64_t>(length_bytes));
  check(mp_memcpy(library_.context(), lengths_.data(), lengths.data(), length_bytes,
                  library_.stream()));
  check(mp_stream_sync(library_.context(), library_.stream()));  // `lengths` is about to be freed

  for (TensorDescriptor *desc : {&state_, &matrix_, &bias_}) *desc = MPBENCH_DNN_NEW(Tensor);
  const int extents[] = {1, batch, hidden}, strides[] = {batch * hidden, hidden, 1};
  MPBENCH_DNN(cudnnSetTensorNdDescriptor, state_, type, 3, extents, strides);
}

void CudnnRnn::create_sets() {
  const cudnnForwardMode_t mode =
      shape_.is_training() ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
  size_t workspace_bytes = 0;
  MPBENCH_DNN(cudnnGetRNNTempSpaceSizes, library_.handle(), layer_, mode, steps_, &workspace_bytes,
              &reserve_bytes_);
  MPBENCH_DNN(cudnnGetRNNWeightSpaceSize, library_.handle(), layer_, &weight_bytes_);
  const auto make = [&](size_t bytes) {
    return Buffer(library_.context(), static_cast<int64_t>(bytes));
  };
  workspace_ = make(workspace_bytes);
  const bool has_weight_grads = shape_.call() == RnnPass::kBackwardWeights;
  for (const RnnTensors &set : sets_) {
    own_.push_back({.weights = make(weight_bytes_),
                    .dweights = make(has_weight_grads ? weight_bytes_ : 0),
                    .reserve = make(reserve_bytes_)});
    copy_weights(own_.back(), set);
  }
}

CudnnRnn::Param CudnnRnn::param(void *weights, int64_t matrix) const {
  Param found{};
  MPBENCH_DNN(cudnnGetRNNWeightParams, library_.handle(), layer_, /*layer=*/0, weight_bytes_,
              weights, static_cast<int32_t>(matrix), matrix_, &found.matrix, bias_, &found.bias);
  return found;
}

/// Both libraries order the gates alike, each h rows of h elements; cuDNN has biases in the type of
/// the weights.
void CudnnRnn::copy_weights(const Own &own, const RnnTensors &set) const {
  const int64_t gates = shape_.gates(), hidden = shape_.hidden;
  for (int64_t gate = 0; gate < gates; ++gate) {
    const Param input = param(own.weights.data(), gate);
    const Param recurrent = param(own.weights.data(), gates + gate);
    const int64_t matrix_bytes = hidden * hidden * dtype_bytes(dtype_);
    convert(static_cast<const char *>(set.w_hh) + gate * matrix_bytes, dtype_, recurrent.matrix,
            dtype_, hidden * hidden);
    convert(set.b_ih + gate * hidden, MP_FP32, input.bias, dtype_, hidden);
    convert(set.b_hh + gate * hidden, MP_FP32, recurrent.bias, dtype_, hidden);
  }
}

void CudnnRnn::clear_weight_grads(size_t set) const {
  check(mp_memset(library_.context(), own_[set].dweights.data(), 0, weight_bytes_,
                  library_.stream()));
}

void CudnnRnn::copy_weight_grads(size_t set, mp_dtype_t dtype_dw) const {
  const int64_t gates = shape_.gates(), elems = shape_.hidden * shape_.hidden;
  char *const dw_hh = static_cast<char *>(sets_[set].dw_hh);
  for (int64_t gate = 0; gate < gates; ++gate)
    convert(param(own_[set].dweights.data(), gates + gate).matrix, dtype_,
            dw_hh + gate * elems * dtype_bytes(dtype_dw), dtype_dw, elems);
}

void CudnnRnn::convert(const void *from, mp_dtype_t from_dtype, void *to, mp_dtype_t to_dtype,
                       int64_t count) const {
  if (from == nullptr || to == nullptr)
    throw std::runtime_error("cuDNN reports no address for a weight or a bias of the layer");
  if (from_dtype == to_dtype)
    check(mp_memcpy(library_.context(), to, from,
                    static_cast<size_t>(count * dtype_bytes(to_dtype)), library_.stream()));
  else
    check(mp_cast(library_.context(), from, from_dtype, to, to_dtype, count, library_.stream()));
}

void CudnnRnn::enqueue(RnnPass pass, size_t set) const {
  const RnnTensors &t = sets_[set];
  const Own &own = own_[set];
  const auto *const lengths = lengths_.as<int32_t>();
  const auto workspace_bytes = static_cast<size_t>(workspace_.bytes());
  if (pass == RnnPass::kForward)
    return MPBENCH_DNN(cudnnRNNForward, library_.handle(), layer_,
                       shape_.is_training() ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
                       lengths, steps_, t.x, steps_, t.y, state_, t.h0, t.hn, state_, nullptr,
                       nullptr, weight_bytes_, own.weights.data(), workspace_bytes,
                       workspace_.data(), reserve_bytes_, own.reserve.data());
  if (pass == RnnPass::kBackwardData)
    return MPBENCH_DNN(cudnnRNNBackwardData_v8, library_.handle(), layer_, lengths, steps_, t.y,
                       t.dy, steps_, t.dx, state_, t.h0, nullptr, t.dh0, state_, nullptr, nullptr,
                       nullptr, weight_bytes_, own.weights.data(), workspace_bytes,
                       workspace_.data(), reserve_bytes_, own.reserve.data());
  MPBENCH_DNN(cudnnRNNBackwardWeights_v8, library_.handle(), layer_, CUDNN_WGRAD_MODE_ADD, lengths,
              steps_, t.x, state_, t.h0, steps_, t.y, weight_bytes_, own.dweights.data(),
              workspace_bytes, workspace_.data(), reserve_bytes_, own.reserve.data());
}

}  // namespace mpbench

#endif
