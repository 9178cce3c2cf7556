#include "cudnn_graph.h"

#include <algorithm>
#include <stdexcept>

namespace mpbench {
namespace {

void check_graph(cudnn::Status status, const char *call) {
  if (status != 0) throw std::runtime_error(text("%s: cudnnStatus %d", call, status));
}

/// Tensors in the order of the arguments of mp_conv2d_*.
enum Id : int64_t { kFirst, kSecond, kOut };

/// Attributes of the operation of a pass.
struct Pass {
  cudnn::GraphDescType operation;
  cudnn::GraphAttribute first, second, out, convolution, alpha, beta;
};

Pass pass_of(mp_conv_op_t op) {
  switch (op) {
    case MP_CONV_FPROP:
      return {cudnn::kForward,     cudnn::kForwardX,     cudnn::kForwardFilter, cudnn::kForwardY,
              cudnn::kForwardConv, cudnn::kForwardAlpha, cudnn::kForwardBeta};
    case MP_CONV_DGRAD:
      return {cudnn::kBackwardData, cudnn::kDataDy,    cudnn::kDataFilter, cudnn::kDataDx,
              cudnn::kDataConv,     cudnn::kDataAlpha, cudnn::kDataBeta};
    default:
      return {cudnn::kBackwardFilter, cudnn::kFilterX,     cudnn::kFilterDy,  cudnn::kFilterDfilter,
              cudnn::kFilterConv,     cudnn::kFilterAlpha, cudnn::kFilterBeta};
  }
}

}  // namespace

GraphDescriptor::GraphDescriptor(const cudnn::GraphFunctions &graph, cudnn::GraphDescType type)
    : graph_(graph) {
  check_graph(graph_.create(type, &desc_), "cudnnBackendCreateDescriptor");
}

GraphDescriptor::~GraphDescriptor() {
  graph_.destroy(desc_);
}

void GraphDescriptor::set_all(cudnn::GraphAttribute attribute, cudnn::GraphType type, int64_t count,
                              const void *values) {
  check_graph(graph_.set(desc_, attribute, type, count, values), "cudnnBackendSetAttribute");
}

void GraphDescriptor::finalize() {
  check_graph(graph_.finalize(desc_), "cudnnBackendFinalize");
}

int64_t GraphDescriptor::get_all(cudnn::GraphAttribute attribute, cudnn::GraphType type,
                                 int64_t room, void *values) const {
  int64_t count = 0;
  check_graph(graph_.get(desc_, attribute, type, room, &count, values), "cudnnBackendGetAttribute");
  return count;
}

CudnnGraphConv::CudnnGraphConv(const Cudnn &library, const mp_conv2d_desc_t &desc, mp_conv_op_t op)
    : library_(library), desc_(desc) {
  if (desc.dtype != desc.dtype_out)
    throw std::runtime_error("cuDNN requires equal input and output types");
  make_graph(op);
  find_plans();
}

CudnnGraphConv::Descriptor CudnnGraphConv::make(cudnn::GraphDescType type) const {
  return std::make_unique<GraphDescriptor>(library_.graph_, type);
}

/// Extents are passed in the order N C H W (K C R S); the strides make C the fastest dimension.
CudnnGraphConv::Descriptor CudnnGraphConv::make_tensor(int64_t id, const int64_t (&nchw)[4]) const {
  const auto [n, c, h, w] = nchw;
  Descriptor tensor = make(cudnn::kTensor);
  tensor->set(cudnn::kTensorId, cudnn::kInt64Type, {id});
  tensor->set(cudnn::kTensorDataType, cudnn::kDataTypeType, {cudnn::data_type(desc_.dtype)});
  tensor->set(cudnn::kTensorExtents, cudnn::kInt64Type, {n, c, h, w});
  tensor->set(cudnn::kTensorStrides, cudnn::kInt64Type, {h * w * c, int64_t{1}, w * c, c});
  tensor->set(cudnn::kTensorAlignment, cudnn::kInt64Type, {kAlignment});
  tensor->finalize();
  return tensor;
}

CudnnGraphConv::Descriptor CudnnGraphConv::make_convolution() const {
  const auto set = [](Descriptor &to, cudnn::GraphAttribute attribute, int64_t h, int64_t w) {
    to->set(attribute, cudnn::kInt64Type, {h, w});
  };
  Descriptor conv = make(cudnn::kConvolution);
  conv->set(cudnn::kConvComputeType, cudnn::kDataTypeType, {cudnn::kFloat});
  conv->set(cudnn::kConvMode, cudnn::kModeType, {cudnn::kCrossCorrelation});
  conv->set(cudnn::kConvSpatialDims, cudnn::kInt64Type, {int64_t{2}});
  set(conv, cudnn::kConvDilations, desc_.dilation_h, desc_.dilation_w);
  set(conv, cudnn::kConvStrides, desc_.stride_h, desc_.stride_w);
  set(conv, cudnn::kConvPrePaddings, desc_.pad_top, desc_.pad_left);
  set(conv, cudnn::kConvPostPaddings, desc_.pad_bottom, desc_.pad_right);
  conv->finalize();
  return conv;
}

void CudnnGraphConv::make_graph(mp_conv_op_t op) {
  int32_t p = 0, q = 0;
  mpbench::check(mp_conv2d_get_output_size(&desc_, &p, &q));
  const int64_t x[4] = {desc_.n, desc_.c, desc_.h, desc_.w};
  const int64_t y[4] = {desc_.n, desc_.k, p, q};
  const int64_t filter[4] = {desc_.k, desc_.c / desc_.groups, desc_.r, desc_.s};
  tensors_[kFirst] = make_tensor(kFirst, op == MP_CONV_DGRAD ? y : x);
  tensors_[kSecond] = make_tensor(kSecond, op == MP_CONV_WGRAD ? y : filter);
  tensors_[kOut] = make_tensor(kOut, op == MP_CONV_FPROP ? y : op == MP_CONV_DGRAD ? x : filter);
  convolution_ = make_convolution();

  const Pass pass = pass_of(op);
  operation_ = make(pass.operation);
  operation_->set(pass.first, *tensors_[kFirst]);
  operation_->set(pass.second, *tensors_[kSecond]);
  operation_->set(pass.out, *tensors_[kOut]);
  operation_->set(pass.convolution, *convolution_);
  operation_->set(pass.alpha, cudnn::kFloatType, {1.0f});
  operation_->set(pass.beta, cudnn::kFloatType, {desc_.beta});
  operation_->finalize();

  graph_ = make(cudnn::kGraph);
  graph_->set(cudnn::kGraphHandle, cudnn::kHandleType, {library_.handle_});
  graph_->set(cudnn::kGraphOperations, *operation_);
  graph_->finalize();
}

void CudnnGraphConv::find_plans() {
  const Descriptor heuristic = make(cudnn::kHeuristic);
  heuristic->set(cudnn::kHeuristicGraph, *graph_);
  heuristic->set(cudnn::kHeuristicMode, cudnn::kHeuristicModeType, {cudnn::kModeA});
  heuristic->finalize();

  cudnn::GraphDesc results[kMaxEngines];
  for (cudnn::GraphDesc &result : results) {
    configs_.push_back(make(cudnn::kEngineConfig));
    result = configs_.back()->get();
  }
  const int64_t found =
      heuristic->get_all(cudnn::kHeuristicResults, cudnn::kDescType, kMaxEngines, results);
  configs_.resize(static_cast<size_t>(std::clamp<int64_t>(found, 0, kMaxEngines)));

  for (const Descriptor &config : configs_) {
    try {
      if (!computes_in_fp32(*config)) continue;
      Descriptor plan = make(cudnn::kPlan);
      plan->set(cudnn::kPlanHandle, cudnn::kHandleType, {library_.handle_});
      plan->set(cudnn::kPlanConfig, *config);
      plan->finalize();
      int64_t bytes = 0;
      plan->get_all(cudnn::kPlanWorkspaceBytes, cudnn::kInt64Type, 1, &bytes);
      if (bytes > Cudnn::kWorkspaceBytes) continue;
      plans_.push_back(std::move(plan));
      plan_bytes_.push_back(bytes);
    } catch (const std::exception &) {
      // The heuristic does not guarantee that all of its engines can run.
    }
  }
  if (plans_.empty()) throw std::runtime_error("cuDNN's graph API has no engine");
}

bool CudnnGraphConv::computes_in_fp32(const GraphDescriptor &config) const {
  const Descriptor engine = make(cudnn::kEngine);
  cudnn::GraphDesc descriptor = engine->get();
  config.get_all(cudnn::kConfigEngine, cudnn::kDescType, 1, &descriptor);
  cudnn::NumericalNote notes[cudnn::kNoteCount];
  const int64_t count =
      engine->get_all(cudnn::kEngineNotes, cudnn::kNoteType, cudnn::kNoteCount, notes);
  return std::none_of(notes, notes + count, [](cudnn::NumericalNote note) {
    return note == cudnn::kReducedPrecisionReduction || note == cudnn::kDownConvertInputs;
  });
}

void CudnnGraphConv::enqueue(const void *first, const void *second, void *out,
                             size_t engine) const {
  GraphDescriptor pack(library_.graph_, cudnn::kVariantPack);
  pack.set(cudnn::kPackIds, cudnn::kInt64Type, {int64_t{kFirst}, int64_t{kSecond}, int64_t{kOut}});
  pack.set(cudnn::kPackPointers, cudnn::kPointerType,
           {first, second, static_cast<const void *>(out)});
  pack.set(cudnn::kPackWorkspace, cudnn::kPointerType, {library_.workspace()});
  pack.finalize();
  check_graph(library_.graph_.execute(library_.handle_, plans_[engine]->get(), pack.get()),
              "cudnnBackendExecute");
}

}  // namespace mpbench
