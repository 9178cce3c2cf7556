// cuDNN's recurrent layers as a peer: the layer of DeepBench by one of cuDNN's algorithms, with FP32 compute, on the
// pointers and stream of mpcore.  Weights, the reserve and the gradients of weights are in arrays of its own, because
// their layout is.
#pragma once

#include <vector>

#include "bench/shapes/rnn_shapes.h"
#include "cudnn.h"
#include "cudnn_rnn_abi.h"

namespace mpbench {

/// Device tensors of a layer, of which a pass needs some; what is not there is NULL.
struct RnnTensors {
  void *x = nullptr, *y = nullptr, *dy = nullptr, *dx = nullptr;
  void *h0 = nullptr, *hn = nullptr, *dh0 = nullptr;
  void *w_ih = nullptr, *w_hh = nullptr, *dw_ih = nullptr, *dw_hh = nullptr;
  float *b_ih = nullptr, *b_hh = nullptr, *db_ih = nullptr, *db_hh = nullptr;
  void *reserve = nullptr;  ///< of mpcore
};

constexpr cudnn::RnnAlgo kRnnAlgos[] = {cudnn::kStandard, cudnn::kPersistStatic,
                                        cudnn::kPersistDynamic};
const char *name_of(cudnn::RnnAlgo algo);

/// The passes of a layer by one algorithm, ready to be enqueued.
class CudnnRnn {
 public:
  /// @param sets  data that calls are given by number; their weights are copied now
  /// @param math  what FP32 tensors are multiplied in
  /// @throws std::runtime_error if cuDNN refuses the layer or its algorithm, or memory is short.
  CudnnRnn(const Cudnn &library, const RnnShape &shape, mp_dtype_t dtype, cudnn::RnnAlgo algo,
           const std::vector<RnnTensors> &sets, PeerMath math = PeerMath::kFp32);
  CudnnRnn(const CudnnRnn &) = delete;
  CudnnRnn &operator=(const CudnnRnn &) = delete;
  ~CudnnRnn();

  cudnn::RnnAlgo algo() const { return algo_; }
  int64_t workspace_bytes() const { return workspace_.bytes(); }
  int64_t reserve_bytes() const { return static_cast<int64_t>(reserve_bytes_); }
  /// As mp_rnn_*: backward passes find what the passes before them left in the set.  Gradients of weights are
  /// added to what is there.
  void enqueue(RnnPass pass, size_t set) const;
  /// To begin sums of gradients, and to bring those of W_hh into the set, whose type is `dtype_dw`.
  void clear_weight_grads(size_t set) const;
  void copy_weight_grads(size_t set, mp_dtype_t dtype_dw) const;

 private:
  /// What lies in cuDNN's layout, of a set.
  struct Own {
    Buffer weights, dweights, reserve;
  };
  struct Param {
    void *matrix, *bias;  ///< NULL = it has none
  };

  void create_descriptors(PeerMath math);
  void create_sets();
  void destroy_descriptors();
  /// @param matrix  0 to g - 1: of the gates' W_ih, which is not there; g to 2g - 1: of their W_hh
  Param param(void *weights, int64_t matrix) const;
  void copy_weights(const Own &own, const RnnTensors &set) const;
  void convert(const void *from, mp_dtype_t from_dtype, void *to, mp_dtype_t to_dtype,
               int64_t count) const;

  const Cudnn &library_;
  cudnn::RnnFunctions rnn_;
  RnnShape shape_;
  mp_dtype_t dtype_;
  cudnn::RnnAlgo algo_;
  std::vector<RnnTensors> sets_;
  std::vector<Own> own_;
  Buffer workspace_, lengths_;
  size_t weight_bytes_ = 0, reserve_bytes_ = 0;
  cudnn::DropoutDesc dropout_ = nullptr;
  cudnn::RnnDesc layer_ = nullptr;
  cudnn::RnnDataDesc steps_ = nullptr;
  cudnn::TensorDesc state_ = nullptr, matrix_ = nullptr, bias_ = nullptr;
};

}  // namespace mpbench
