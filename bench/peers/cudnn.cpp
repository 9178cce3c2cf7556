#include "cudnn.h"

#if __has_include(<cudnn.h>)
#include "cudnn_functions.h"

namespace mpbench {
namespace {

constexpr int kMaxAlgos = 16;  // cuDNN has at most 8

/// An algorithm; each pass numbers them separately.
struct Algo {
  int number = 0, math = 0;
  float time_ms = -1;
  size_t memory = 0;
};

/// One pass of a convolution.
struct Convolution {
  const Cudnn &library;
  mp_conv2d_desc_t desc;
  mp_conv_op_t op;
  TensorDescriptor x = MPBENCH_DNN_NEW(Tensor), y = MPBENCH_DNN_NEW(Tensor);
  CudnnDescriptor<cudnnFilterStruct> filter = MPBENCH_DNN_NEW(Filter);
  CudnnDescriptor<cudnnConvolutionStruct> conv = MPBENCH_DNN_NEW(Convolution);
  Algo best = {};

  void set_options(PeerMath math) const {
    MPBENCH_DNN(cudnnSetConvolution2dDescriptor, conv, desc.pad_top, desc.pad_left, desc.stride_h,
                desc.stride_w, desc.dilation_h, desc.dilation_w, CUDNN_CROSS_CORRELATION,
                CUDNN_DATA_FLOAT);
    MPBENCH_DNN(cudnnSetConvolutionGroupCount, conv, desc.groups);
    MPBENCH_DNN(cudnnSetConvolutionMathType, conv, math_type(desc.dtype, math));
  }

  /// Sets the extents, in the order N C H W for every format.
  void set_format(bool is_nhwc) const {
    const cudnnTensorFormat_t format = is_nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    const cudnnDataType_t type = cudnn_type(desc.dtype);
    int32_t p = 0, q = 0;
    check(mp_conv2d_get_output_size(&desc, &p, &q));
    MPBENCH_DNN(cudnnSetTensor4dDescriptor, x, format, type, desc.n, desc.c, desc.h, desc.w);
    MPBENCH_DNN(cudnnSetTensor4dDescriptor, y, format, type, desc.n, desc.k, p, q);
    MPBENCH_DNN(cudnnSetFilter4dDescriptor, filter, type, format, desc.k, desc.c / desc.groups,
                desc.r, desc.s);
  }

  /// Returns the fastest algorithm for the current descriptors; time_ms < 0 if there is none.
  Algo find(const Operands &t) const {
    const cudnnHandle_t handle = library.handle();
    constexpr size_t kSpaceBytes = Cudnn::kWorkspaceBytes;
    void *const space = library.workspace();
    Algo fastest{};
    int count = 0;
    const auto keep_fastest = [&](cudnnStatus_t status, const auto &found) {
      for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < count; ++i) {
        const bool is_usable =
            found[i].status == CUDNN_STATUS_SUCCESS && found[i].memory <= kSpaceBytes;
        if (is_usable && (fastest.time_ms < 0 || found[i].time < fastest.time_ms))
          fastest = {found[i].algo, found[i].mathType, found[i].time, found[i].memory};
      }
    };
    if (op == MP_CONV_FPROP) {
      cudnnConvolutionFwdAlgoPerf_t found[kMaxAlgos] = {};
      keep_fastest(MPBENCH_CUDNN(cudnnFindConvolutionForwardAlgorithmEx)(
                       handle, x, t.first, filter, t.second, conv, y, t.out, kMaxAlgos, &count,
                       found, space, kSpaceBytes),
                   found);
    } else if (op == MP_CONV_DGRAD) {
      cudnnConvolutionBwdDataAlgoPerf_t found[kMaxAlgos] = {};
      keep_fastest(MPBENCH_CUDNN(cudnnFindConvolutionBackwardDataAlgorithmEx)(
                       handle, filter, t.second, y, t.first, conv, x, t.out, kMaxAlgos, &count,
                       found, space, kSpaceBytes),
                   found);
    } else {
      cudnnConvolutionBwdFilterAlgoPerf_t found[kMaxAlgos] = {};
      keep_fastest(MPBENCH_CUDNN(cudnnFindConvolutionBackwardFilterAlgorithmEx)(
                       handle, x, t.first, y, t.second, conv, filter, t.out, kMaxAlgos, &count,
                       found, space, kSpaceBytes),
                   found);
    }
    return fastest;
  }

  void enqueue(const std::vector<void *> &t) const {
    const cudnnHandle_t handle = library.handle();
    void *const space = library.workspace();
    constexpr float kAlpha = 1.0f;
    const float beta = desc.beta;
    if (op == MP_CONV_FPROP)
      return MPBENCH_DNN(cudnnConvolutionForward, handle, &kAlpha, x, t[0], filter, t[1], conv,
                         static_cast<cudnnConvolutionFwdAlgo_t>(best.number), space, best.memory,
                         &beta, y, t[2]);
    if (op == MP_CONV_DGRAD)
      return MPBENCH_DNN(cudnnConvolutionBackwardData, handle, &kAlpha, filter, t[1], y, t[0], conv,
                         static_cast<cudnnConvolutionBwdDataAlgo_t>(best.number), space,
                         best.memory, &beta, x, t[2]);
    MPBENCH_DNN(cudnnConvolutionBackwardFilter, handle, &kAlpha, x, t[0], y, t[1], conv,
                static_cast<cudnnConvolutionBwdFilterAlgo_t>(best.number), space, best.memory,
                &beta, filter, t[2]);
  }
};

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

DnnCall Cudnn::convolution(const mp_conv2d_desc_t &desc, mp_conv_op_t op, PeerLayout layout,
                           const Operands &search, PeerMath math) const {
  if (desc.pad_top != desc.pad_bottom || desc.pad_left != desc.pad_right)
    throw std::runtime_error("cuDNN does not support asymmetric padding");
  if (desc.dtype != desc.dtype_out)
    throw std::runtime_error("cuDNN requires equal input and output types");
  Convolution pass{.library = *this, .desc = desc, .op = op};
  pass.set_options(math);
  bool is_nhwc = true;
  pass.set_format(is_nhwc);
  pass.best = pass.find(search);
  if (layout == PeerLayout::kFastest) {
    pass.set_format(false);
    const Algo other = pass.find(search);
    if (other.time_ms >= 0 && (pass.best.time_ms < 0 || other.time_ms < pass.best.time_ms)) {
      pass.best = other;
      is_nhwc = false;
    }
  }
  if (pass.best.time_ms < 0) throw std::runtime_error("cuDNN has no algorithm");
  pass.set_format(is_nhwc);
  if (desc.dtype != MP_FP32)  // otherwise as requested
    MPBENCH_DNN(cudnnSetConvolutionMathType, pass.conv,
                static_cast<cudnnMathType_t>(pass.best.math));
  return {.workspace_bytes = static_cast<int64_t>(pass.best.memory),
          .is_deterministic = {},
          .enqueue = [pass](const std::vector<void *> &tensors) { pass.enqueue(tensors); }};
}

}  // namespace mpbench

#endif
