#include "cudnn_rnn.h"

namespace mpbench {

const char *name_of(cudnn::RnnAlgo algo) {
  return algo == cudnn::kStandard        ? "standard"
         : algo == cudnn::kPersistStatic ? "persistent static"
                                         : "persistent dynamic";
}

CudnnRnn::CudnnRnn(const Cudnn &library, const RnnShape &shape, mp_dtype_t dtype,
                   cudnn::RnnAlgo algo, const std::vector<RnnTensors> &sets, PeerMath math)
    : library_(library), shape_(shape), dtype_(dtype), algo_(algo), sets_(sets) {
  rnn_.load(library.library_);
  try {
    create_descriptors(math);
    create_sets();
  } catch (...) {
    destroy_descriptors();
    throw;
  }
}

CudnnRnn::~CudnnRnn() {
  destroy_descriptors();
}

void CudnnRnn::create_descriptors(PeerMath math) {
  const cudnn::Functions &dnn = library_.dnn_;
  const cudnn::DataType type = cudnn::data_type(dtype_);
  const auto hidden = static_cast<int>(shape_.hidden), batch = static_cast<int>(shape_.batch);
  const auto timesteps = static_cast<int>(shape_.timesteps);

  // cuDNN requires a descriptor even without dropout, and then accepts no states (as in PyTorch).
  library_.check(rnn_.create_dropout(&dropout_), "cudnnCreateDropoutDescriptor");
  library_.check(rnn_.set_dropout(dropout_, library_.handle_, 0.0f, nullptr, 0, 0),
                 "cudnnSetDropoutDescriptor");

  const cudnn::RnnCell cell = shape_.cell == "lstm"  ? cudnn::kLstm
                              : shape_.cell == "gru" ? cudnn::kGru
                                                     : cudnn::kRnnRelu;
  const cudnn::MathType fp32_math = math == PeerMath::kTf32 ? cudnn::kDefault : cudnn::kFma;
  library_.check(rnn_.create(&layer_), "cudnnCreateRNNDescriptor");
  library_.check(
      rnn_.set(layer_, algo_, cell, cudnn::kDoubleBias, cudnn::kUnidirectional, cudnn::kSkipInput,
               type, cudnn::kFloat, dtype_ == MP_FP32 ? fp32_math : cudnn::kTensorOp, hidden,
               hidden, hidden, /*layers=*/1, dropout_, /*flags=*/0),
      "cudnnSetRNNDescriptor_v8");
  if (algo_ == cudnn::kPersistDynamic)
    library_.check(rnn_.build_dynamic(library_.handle_, layer_, batch), "cudnnBuildRNNDynamic");

  // Sequences of equal length need no packing.
  const std::vector<int> lengths(static_cast<size_t>(batch), timesteps);
  library_.check(rnn_.create_data(&steps_), "cudnnCreateRNNDataDescriptor");
  library_.check(rnn_.set_data(steps_, type, cudnn::kSeqMajorPacked, timesteps, batch, hidden,
                               lengths.data(), nullptr),
                 "cudnnSetRNNDataDescriptor");
  // cuDNN before 8.9.1 also reads the lengths on the device.
  const auto length_bytes = lengths.size() * sizeof(int);
  lengths_ = Buffer(library_.context_, static_cast<int64_t>(length_bytes));
  check(mp_memcpy(library_.context_, lengths_.data(), lengths.data(), length_bytes,
                  library_.stream_));
  check(mp_stream_sync(library_.context_, library_.stream_));  // `lengths` is about to be freed

  for (cudnn::TensorDesc *desc : {&state_, &matrix_, &bias_})
    library_.check(dnn.create_tensor(desc), "cudnnCreateTensorDescriptor");
  const int extents[] = {1, batch, hidden}, strides[] = {batch * hidden, hidden, 1};
  library_.check(rnn_.set_tensor_nd(state_, type, 3, extents, strides),
                 "cudnnSetTensorNdDescriptor");
}

void CudnnRnn::create_sets() {
  const cudnn::ForwardMode mode = shape_.is_training() ? cudnn::kTraining : cudnn::kInference;
  size_t workspace_bytes = 0;
  library_.check(
      rnn_.space_bytes(library_.handle_, layer_, mode, steps_, &workspace_bytes, &reserve_bytes_),
      "cudnnGetRNNTempSpaceSizes");
  library_.check(rnn_.weight_bytes(library_.handle_, layer_, &weight_bytes_),
                 "cudnnGetRNNWeightSpaceSize");
  const auto make = [&](size_t bytes) {
    return Buffer(library_.context_, static_cast<int64_t>(bytes));
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

void CudnnRnn::destroy_descriptors() {
  for (const cudnn::TensorDesc desc : {state_, matrix_, bias_})
    if (desc != nullptr) library_.dnn_.destroy_tensor(desc);
  if (steps_ != nullptr) rnn_.destroy_data(steps_);
  if (layer_ != nullptr) rnn_.destroy(layer_);
  if (dropout_ != nullptr) rnn_.destroy_dropout(dropout_);
}

CudnnRnn::Param CudnnRnn::param(void *weights, int64_t matrix) const {
  Param found{};
  library_.check(
      rnn_.weight_params(library_.handle_, layer_, /*layer=*/0, weight_bytes_, weights,
                         static_cast<int32_t>(matrix), matrix_, &found.matrix, bias_, &found.bias),
      "cudnnGetRNNWeightParams");
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
  check(
      mp_memset(library_.context_, own_[set].dweights.data(), 0, weight_bytes_, library_.stream_));
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
    check(mp_memcpy(library_.context_, to, from, static_cast<size_t>(count * dtype_bytes(to_dtype)),
                    library_.stream_));
  else
    check(mp_cast(library_.context_, from, from_dtype, to, to_dtype, count, library_.stream_));
}

void CudnnRnn::enqueue(RnnPass pass, size_t set) const {
  const RnnTensors &t = sets_[set];
  const Own &own = own_[set];
  const auto *const lengths = lengths_.as<int32_t>();
  const auto workspace_bytes = static_cast<size_t>(workspace_.bytes());
  if (pass == RnnPass::kForward)
    return library_.check(
        rnn_.forward(library_.handle_, layer_,
                     shape_.is_training() ? cudnn::kTraining : cudnn::kInference, lengths, steps_,
                     t.x, steps_, t.y, state_, t.h0, t.hn, state_, nullptr, nullptr, weight_bytes_,
                     own.weights.data(), workspace_bytes, workspace_.data(), reserve_bytes_,
                     own.reserve.data()),
        "cudnnRNNForward");
  if (pass == RnnPass::kBackwardData)
    return library_.check(
        rnn_.backward_data(library_.handle_, layer_, lengths, steps_, t.y, t.dy, steps_, t.dx,
                           state_, t.h0, nullptr, t.dh0, state_, nullptr, nullptr, nullptr,
                           weight_bytes_, own.weights.data(), workspace_bytes, workspace_.data(),
                           reserve_bytes_, own.reserve.data()),
        "cudnnRNNBackwardData_v8");
  library_.check(
      rnn_.backward_weights(library_.handle_, layer_, cudnn::kAdd, lengths, steps_, t.x, state_,
                            t.h0, steps_, t.y, weight_bytes_, own.dweights.data(), workspace_bytes,
                            workspace_.data(), reserve_bytes_, own.reserve.data()),
      "cudnnRNNBackwardWeights_v8");
}

}  // namespace mpbench
