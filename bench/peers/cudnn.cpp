#include "cudnn.h"

namespace mpbench {
namespace {

constexpr int kMaxAlgos = 16;  // cuDNN has at most 8

}  // namespace

Cudnn::Cudnn(mp_context_t context, mp_stream_t stream)
    : library_({"libcudnn.so.9", "libcudnn.so.8"}), context_(context), stream_(stream) {
  dnn_.load(library_);
  graph_.load(library_);
  check(dnn_.create(&handle_), "cudnnCreate");
  const cudnn::Status status = dnn_.set_stream(handle_, stream);
  if (status != 0) dnn_.destroy(handle_);
  check(status, "cudnnSetStream");
}

Cudnn::~Cudnn() {
  dnn_.destroy(handle_);
}

void *Cudnn::workspace() const {
  if (workspace_.data() == nullptr) workspace_ = Buffer(context_, kWorkspaceBytes);
  return workspace_.data();
}

void Cudnn::check(cudnn::Status status, const char *call) const {
  if (status != 0)
    throw std::runtime_error(std::string(call) + ": " + dnn_.get_error_string(status));
}

CudnnConv::CudnnConv(const Cudnn &library, const mp_conv2d_desc_t &desc, mp_conv_op_t op,
                     PeerLayout layout, const void *first, const void *second, void *out,
                     PeerMath math)
    : library_(library), desc_(desc), op_(op) {
  if (desc.pad_top != desc.pad_bottom || desc.pad_left != desc.pad_right)
    throw std::runtime_error("cuDNN does not support asymmetric padding");
  if (desc.dtype != desc.dtype_out)
    throw std::runtime_error("cuDNN requires equal input and output types");
  try {
    create_descriptors(math);
    if (layout == PeerLayout::kFastest)
      choose({cudnn::kNhwc, cudnn::kNchw}, first, second, out);
    else
      choose({cudnn::kNhwc}, first, second, out);
  } catch (...) {
    destroy_descriptors();
    throw;
  }
}

CudnnConv::~CudnnConv() {
  destroy_descriptors();
}

void CudnnConv::create_descriptors(PeerMath math) {
  const cudnn::Functions &dnn = library_.dnn_;
  library_.check(dnn.create_tensor(&x_), "cudnnCreateTensorDescriptor");
  library_.check(dnn.create_tensor(&y_), "cudnnCreateTensorDescriptor");
  library_.check(dnn.create_filter(&filter_), "cudnnCreateFilterDescriptor");
  library_.check(dnn.create_convolution(&conv_), "cudnnCreateConvolutionDescriptor");
  library_.check(dnn.set_convolution_2d(conv_, desc_.pad_top, desc_.pad_left, desc_.stride_h,
                                        desc_.stride_w, desc_.dilation_h, desc_.dilation_w,
                                        cudnn::kCrossCorrelation, cudnn::kFloat),
                 "cudnnSetConvolution2dDescriptor");
  library_.check(dnn.set_group_count(conv_, desc_.groups), "cudnnSetConvolutionGroupCount");
  const cudnn::MathType fp32_math = math == PeerMath::kTf32 ? cudnn::kDefault : cudnn::kFma;
  library_.check(dnn.set_math_type(conv_, desc_.dtype == MP_FP32 ? fp32_math : cudnn::kTensorOp),
                 "cudnnSetConvolutionMathType");
}

void CudnnConv::destroy_descriptors() {
  const cudnn::Functions &dnn = library_.dnn_;
  if (x_ != nullptr) dnn.destroy_tensor(x_);
  if (y_ != nullptr) dnn.destroy_tensor(y_);
  if (filter_ != nullptr) dnn.destroy_filter(filter_);
  if (conv_ != nullptr) dnn.destroy_convolution(conv_);
}

/// Extents are passed in the order N C H W for every format.
void CudnnConv::set_format(cudnn::Format format) {
  const cudnn::Functions &dnn = library_.dnn_;
  const cudnn::DataType type = cudnn::data_type(desc_.dtype);
  int32_t p = 0, q = 0;
  mpbench::check(mp_conv2d_get_output_size(&desc_, &p, &q));
  library_.check(dnn.set_tensor_4d(x_, format, type, desc_.n, desc_.c, desc_.h, desc_.w),
                 "cudnnSetTensor4dDescriptor");
  library_.check(dnn.set_tensor_4d(y_, format, type, desc_.n, desc_.k, p, q),
                 "cudnnSetTensor4dDescriptor");
  library_.check(
      dnn.set_filter_4d(filter_, type, format, desc_.k, desc_.c / desc_.groups, desc_.r, desc_.s),
      "cudnnSetFilter4dDescriptor");
}

cudnn::AlgoPerf CudnnConv::find(const void *first, const void *second, void *out) const {
  const cudnn::Functions &dnn = library_.dnn_;
  const cudnn::Handle handle = library_.handle_;
  void *const space = library_.workspace();
  constexpr size_t kSpaceBytes = Cudnn::kWorkspaceBytes;
  cudnn::AlgoPerf found[kMaxAlgos] = {};
  int count = 0;
  cudnn::Status status = 0;
  switch (op_) {
    case MP_CONV_FPROP:
      status = dnn.find_forward(handle, x_, first, filter_, second, conv_, y_, out, kMaxAlgos,
                                &count, found, space, kSpaceBytes);
      break;
    case MP_CONV_DGRAD:
      status = dnn.find_backward_data(handle, filter_, second, y_, first, conv_, x_, out, kMaxAlgos,
                                      &count, found, space, kSpaceBytes);
      break;
    case MP_CONV_WGRAD:
      status = dnn.find_backward_filter(handle, x_, first, y_, second, conv_, filter_, out,
                                        kMaxAlgos, &count, found, space, kSpaceBytes);
      break;
  }
  cudnn::AlgoPerf best = {};
  best.time_ms = -1;
  for (int i = 0; status == 0 && i < count; ++i) {
    const bool is_usable = found[i].status == 0 && found[i].memory_bytes <= kSpaceBytes;
    if (is_usable && (best.time_ms < 0 || found[i].time_ms < best.time_ms)) best = found[i];
  }
  return best;
}

void CudnnConv::choose(std::initializer_list<cudnn::Format> formats, const void *first,
                       const void *second, void *out) {
  best_.time_ms = -1;
  cudnn::Format best_format = *formats.begin();
  for (const cudnn::Format format : formats) {
    set_format(format);
    const cudnn::AlgoPerf found = find(first, second, out);
    if (found.time_ms < 0 || (best_.time_ms >= 0 && found.time_ms >= best_.time_ms)) continue;
    best_ = found;
    best_format = format;
  }
  if (best_.time_ms < 0) throw std::runtime_error("cuDNN has no algorithm");
  set_format(best_format);
  if (desc_.dtype == MP_FP32) return;  // as requested
  library_.check(library_.dnn_.set_math_type(conv_, best_.math), "cudnnSetConvolutionMathType");
}

void CudnnConv::enqueue(const void *first, const void *second, void *out) const {
  const cudnn::Functions &dnn = library_.dnn_;
  const cudnn::Handle handle = library_.handle_;
  void *const space = library_.workspace();
  const size_t space_bytes = best_.memory_bytes;
  constexpr float kAlpha = 1.0f;
  const float beta = desc_.beta;
  switch (op_) {
    case MP_CONV_FPROP:
      return library_.check(dnn.forward(handle, &kAlpha, x_, first, filter_, second, conv_,
                                        best_.algo, space, space_bytes, &beta, y_, out),
                            "cudnnConvolutionForward");
    case MP_CONV_DGRAD:
      return library_.check(dnn.backward_data(handle, &kAlpha, filter_, second, y_, first, conv_,
                                              best_.algo, space, space_bytes, &beta, x_, out),
                            "cudnnConvolutionBackwardData");
    case MP_CONV_WGRAD:
      return library_.check(
          dnn.backward_filter(handle, &kAlpha, x_, first, y_, second, conv_, best_.algo, space,
                              space_bytes, &beta, filter_, out),
          "cudnnConvolutionBackwardFilter");
  }
}

}  // namespace mpbench
