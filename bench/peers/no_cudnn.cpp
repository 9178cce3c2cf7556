// cuDNN's classes in builds without its headers: opening the library fails, so that nothing else is
// called.
#if !__has_include(<cudnn.h>)

#ifdef __clang__
#pragma clang diagnostic ignored "-Wunused-private-field"
#endif

#include "cudnn_graph.h"
#include "cudnn_layers.h"
#include "cudnn_rnn.h"

namespace mpbench {

Cudnn::Cudnn(mp_context_t, mp_stream_t)
    : library_({(throw std::runtime_error("mpbench was built without cudnn.h"), "")}) {}
Cudnn::~Cudnn() = default;
size_t Cudnn::version() const {
  return 0;
}

CudnnConv::CudnnConv(const Cudnn &library, const mp_conv2d_desc_t &desc, mp_conv_op_t op,
                     PeerLayout, const void *, const void *, void *, PeerMath)
    : library_(library), desc_(desc), op_(op) {}
void CudnnConv::enqueue(const void *, const void *, void *) const {}

struct CudnnGraph::Plans {};
CudnnGraph::CudnnGraph(const Cudnn &library, const mp_conv2d_desc_t &, mp_conv_op_t)
    : library_(library) {}
CudnnGraph::CudnnGraph(const Cudnn &library, const LayerShape &, mp_dtype_t) : library_(library) {}
CudnnGraph::~CudnnGraph() = default;
void CudnnGraph::enqueue(const std::vector<const void *> &, size_t) const {}

CudnnLayer::CudnnLayer(const Cudnn &library, const LayerShape &shape, mp_dtype_t)
    : library_(library), shape_(shape) {}
void CudnnLayer::enqueue(const std::vector<void *> &) const {}

CudnnRnn::CudnnRnn(const Cudnn &library, const RnnShape &shape, mp_dtype_t dtype, RnnAlgo algo,
                   const std::vector<RnnTensors> &, PeerMath)
    : library_(library), shape_(shape), dtype_(dtype), algo_(algo) {}
void CudnnRnn::enqueue(RnnPass, size_t) const {}
void CudnnRnn::clear_weight_grads(size_t) const {}
void CudnnRnn::copy_weight_grads(size_t, mp_dtype_t) const {}

}  // namespace mpbench

#endif
