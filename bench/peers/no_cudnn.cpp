// cuDNN's classes in builds without its headers: opening the library fails, so that nothing else is
// called.
#if !__has_include(<cudnn.h>)

#ifdef __clang__
#pragma clang diagnostic ignored "-Wunused-private-field"
#endif

#include "cudnn_rnn.h"

namespace mpbench {

Cudnn::Cudnn(mp_context_t, mp_stream_t)
    : library_({(throw std::runtime_error("mpbench was built without cudnn.h"), "")}) {}
Cudnn::~Cudnn() = default;
size_t Cudnn::version() const {
  return 0;
}

DnnCall Cudnn::convolution(const mp_conv2d_desc_t &, mp_conv_op_t, PeerLayout, const Operands &,
                           PeerMath) const {
  return {};
}
DnnCall Cudnn::layer(const LayerShape &, mp_dtype_t) const {
  return {};
}
std::vector<DnnCall> Cudnn::convolution_engines(const mp_conv2d_desc_t &, mp_conv_op_t) const {
  return {};
}
std::vector<DnnCall> Cudnn::attention_engines(const LayerShape &, mp_dtype_t) const {
  return {};
}

CudnnRnn::CudnnRnn(const Cudnn &library, const RnnShape &shape, mp_dtype_t dtype, RnnAlgo algo,
                   const std::vector<RnnTensors> &, PeerMath)
    : library_(library), shape_(shape), dtype_(dtype), algo_(algo) {}
void CudnnRnn::enqueue(RnnPass, size_t) const {}
void CudnnRnn::clear_weight_grads(size_t) const {}
void CudnnRnn::copy_weight_grads(size_t, mp_dtype_t) const {}

}  // namespace mpbench

#endif
