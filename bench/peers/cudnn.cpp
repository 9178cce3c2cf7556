#include "cudnn.h"

#if __has_include(<cudnn.h>)
#include "cudnn_functions.h"

namespace mpbench {
namespace {

constexpr int kMaxAlgos = 16;  // cuDNN has at most 8

}  // namespace

Cudnn::Cudnn(mp_context_t context, mp_stream_t stream)
    : library_({"libcudnn.so.9", "libcudnn.so.8"}), context_(context), stream_(stream) {
  dnn = library_;
  MPBENCH_DNN(cudnnCreate, &handle_);
  const cudnnStatus_t status = MPBENCH_CUDNN(cudnnSetStream)(handle_, stream);
  if (status != CUDNN_STATUS_SUCCESS) MPBENCH_CUDNN(cudnnDestroy)(handle_);
  check_cudnn(status, "cudnnSetStream");
}

Cudnn::~Cudnn() {
  MPBENCH_CUDNN(cudnnDestroy)(handle_);
}

size_t Cudnn::version() const {
  return MPBENCH_CUDNN(cudnnGetVersion)();
}

void *Cudnn::workspace() const {
  if (workspace_.data() == nullptr) workspace_ = Buffer(context_, kWorkspaceBytes);
  return workspace_.data();
}

CudnnConv::CudnnConv(const Cudnn &library, const mp_conv2d_desc_t &desc, mp_conv_op_t op,
                     PeerLayout layout, const void *first, const void *second, void *out,
                     PeerMath math)
    : library_(library), desc_(desc), op_(op) {
  if (desc.pad_top != desc.pad_bottom || desc.pad_left != desc.pad_right)
    throw std::runtime_error("cuDNN does not support asymmetric padding");
  if (desc.dtype != desc.dtype_out)
    throw std::runtime_error("cuDNN requires equal input and output types");
  create_descriptors(math);
  bool is_nhwc = true;
  set_format(is_nhwc);
  best_ = find(first, second, out);
  if (layout == PeerLayout::kFastest) {
    set_format(false);
    const Algo other = find(first, second, out);
    if (other.time_ms >= 0 && (best_.time_ms < 0 || other.time_ms < best_.time_ms)) {
      best_ = other;
      is_nhwc = false;
    }
  }
  if (best_.time_ms < 0) throw std::runtime_error("cuDNN has no algorithm");
  set_format(is_nhwc);
  if (desc.dtype != MP_FP32)  // otherwise as requested
    MPBENCH_DNN(cudnnSetConvolutionMathType, conv_, static_cast<cudnnMathType_t>(best_.math));
}

void CudnnConv::create_descriptors(PeerMath math) {
  x_ = MPBENCH_DNN_NEW(Tensor);
  y_ = MPBENCH_DNN_NEW(Tensor);
  filter_ = MPBENCH_DNN_NEW(Filter);
  conv_ = MPBENCH_DNN_NEW(Convolution);
  MPBENCH_DNN(cudnnSetConvolution2dDescriptor, conv_, desc_.pad_top, desc_.pad_left, desc_.stride_h,
              desc_.stride_w, desc_.dilation_h, desc_.dilation_w, CUDNN_CROSS_CORRELATION,
              CUDNN_DATA_FLOAT);
  MPBENCH_DNN(cudnnSetConvolutionGroupCount, conv_, desc_.groups);
  MPBENCH_DNN(cudnnSetConvolutionMathType, conv_, math_type(desc_.dtype, math));
}

/// Extents are passed in the order N C H W for every format.
void CudnnConv::set_format(bool is_nhwc) {
  const cudnnTensorFormat_t format = is_nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
  const cudnnDataType_t type = cudnn_type(desc_.dtype);
  int32_t p = 0, q = 0;
  check(mp_conv2d_get_output_size(&desc_, &p, &q));
  MPBENCH_DNN(cudnnSetTensor4dDescriptor, x_, format, type, desc_.n, desc_.c, desc_.h, desc_.w);
  MPBENCH_DNN(cudnnSetTensor4dDescriptor, y_, format, type, desc_.n, desc_.k, p, q);
  MPBENCH_DNN(cudnnSetFilter4dDescriptor, filter_, type, format, desc_.k, desc_.c / desc_.groups,
              desc_.r, desc_.s);
}

CudnnConv::Algo CudnnConv::find(const void *first, const void *second, void *out) const {
  constexpr size_t kSpaceBytes = Cudnn::kWorkspaceBytes;
  void *const space = library_.workspace();
  Algo best{};
  int count = 0;
  const auto keep_fastest = [&](cudnnStatus_t status, const auto &found) {
    for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < count; ++i) {
      const bool is_usable =
          found[i].status == CUDNN_STATUS_SUCCESS && found[i].memory <= kSpaceBytes;
      if (is_usable && (best.time_ms < 0 || found[i].time < best.time_ms))
        best = {found[i].algo, found[i].mathType, found[i].time, found[i].memory};
    }
    return best;
  };
  switch (op_) {
    case MP_CONV_FPROP: {
      cudnnConvolutionFwdAlgoPerf_t found[kMaxAlgos] = {};
      return keep_fastest(MPBENCH_CUDNN(cudnnFindConvolutionForwardAlgorithmEx)(
                              library_.handle_, x_, first, filter_, second, conv_, y_, out,
                              kMaxAlgos, &count, found, space, kSpaceBytes),
                          found);
    }
    case MP_CONV_DGRAD: {
      cudnnConvolutionBwdDataAlgoPerf_t found[kMaxAlgos] = {};
      return keep_fastest(MPBENCH_CUDNN(cudnnFindConvolutionBackwardDataAlgorithmEx)(
                              library_.handle_, filter_, second, y_, first, conv_, x_, out,
                              kMaxAlgos, &count, found, space, kSpaceBytes),
                          found);
    }
    case MP_CONV_WGRAD: {
      cudnnConvolutionBwdFilterAlgoPerf_t found[kMaxAlgos] = {};
      return keep_fastest(MPBENCH_CUDNN(cudnnFindConvolutionBackwardFilterAlgorithmEx)(
                              library_.handle_, x_, first, y_, second, conv_, filter_, out,
                              kMaxAlgos, &count, found, space, kSpaceBytes),
                          found);
    }
  }
  return best;
}

void CudnnConv::enqueue(const void *first, const void *second, void *out) const {
  const cudnnHandle_t handle = library_.handle_;
  void *const space = library_.workspace();
  constexpr float kAlpha = 1.0f;
  const float beta = desc_.beta;
  switch (op_) {
    case MP_CONV_FPROP:
      return MPBENCH_DNN(cudnnConvolutionForward, handle, &kAlpha, x_, first, filter_, second,
                         conv_, static_cast<cudnnConvolutionFwdAlgo_t>(best_.number), space,
                         best_.memory, &beta, y_, out);
    case MP_CONV_DGRAD:
      return MPBENCH_DNN(cudnnConvolutionBackwardData, handle, &kAlpha, filter_, second, y_, first,
                         conv_, static_cast<cudnnConvolutionBwdDataAlgo_t>(best_.number), space,
                         best_.memory, &beta, x_, out);
    case MP_CONV_WGRAD:
      return MPBENCH_DNN(cudnnConvolutionBackwardFilter, handle, &kAlpha, x_, first, y_, second,
                         conv_, static_cast<cudnnConvolutionBwdFilterAlgo_t>(best_.number), space,
                         best_.memory, &beta, filter_, out);
  }
}

}  // namespace mpbench

#endif
