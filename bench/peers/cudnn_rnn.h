// cuDNN's recurrent layers as a peer: a DeepBench layer by one of cuDNN's algorithms, with FP32
// compute, on the pointers and stream of mpcore.  Weights, their gradients and the reserve are in
// separate arrays because their layout differs.
#pragma once

#include <vector>

#include "bench/shapes/rnn_shapes.h"
#include "cudnn.h"

// Types that cuDNN declares.
struct cudnnDropoutStruct;
struct cudnnRNNStruct;
struct cudnnRNNDataStruct;

namespace mpbench {

/// Device tensors of a layer; NULL if absent.  Each pass needs some of them.
struct RnnTensors {
  void *x = nullptr, *y = nullptr, *dy = nullptr, *dx = nullptr;
  void *h0 = nullptr, *hn = nullptr, *dh0 = nullptr;
  void *w_ih = nullptr, *w_hh = nullptr, *dw_ih = nullptr, *dw_hh = nullptr;
  float *b_ih = nullptr, *b_hh = nullptr, *db_ih = nullptr, *db_hh = nullptr;
  void *reserve = nullptr;  ///< in mpcore's layout
};

/// Algorithms, with the values of cudnnRNNAlgo_t.
enum class RnnAlgo { kStandard = 0, kPersistStatic = 1, kPersistDynamic = 2 };
constexpr RnnAlgo kRnnAlgos[] = {RnnAlgo::kStandard, RnnAlgo::kPersistStatic,
                                 RnnAlgo::kPersistDynamic};
inline const char *name_of(RnnAlgo algo) {
  return algo == RnnAlgo::kStandard        ? "standard"
         : algo == RnnAlgo::kPersistStatic ? "persistent static"
                                           : "persistent dynamic";
}

/// The passes of a layer by one algorithm, ready to be enqueued.
class CudnnRnn {
 public:
  /// @param sets  data sets, selected by index in enqueue(); their weights are copied now
  /// @param math  precision in which FP32 tensors are multiplied
  /// @throws std::runtime_error if cuDNN rejects the layer or its algorithm, or memory is short.
  CudnnRnn(const Cudnn &library, const RnnShape &shape, mp_dtype_t dtype, RnnAlgo algo,
           const std::vector<RnnTensors> &sets, PeerMath math = PeerMath::kFp32);

  RnnAlgo algo() const { return algo_; }
  int64_t workspace_bytes() const { return workspace_.bytes(); }
  int64_t reserve_bytes() const { return static_cast<int64_t>(reserve_bytes_); }
  /// Contract of mp_rnn_*: backward passes read the results of earlier passes in the set.
  /// Gradients of weights are accumulated.
  void enqueue(RnnPass pass, size_t set) const;
  /// Zeroes the gradients of weights, and copies those of W_hh into the set, whose type is
  /// `dtype_dw`.
  void clear_weight_grads(size_t set) const;
  void copy_weight_grads(size_t set, mp_dtype_t dtype_dw) const;

 private:
  /// Arrays of a set in cuDNN's layout.
  struct Own {
    Buffer weights, dweights, reserve;
  };
  struct Param {
    void *matrix, *bias;  ///< NULL = absent
  };

  void create_descriptors(PeerMath math);
  void create_sets();
  /// @param matrix  0 to g - 1: W_ih of the gates (absent in these layers); g to 2g - 1: W_hh
  Param param(void *weights, int64_t matrix) const;
  void copy_weights(const Own &own, const RnnTensors &set) const;
  void convert(const void *from, mp_dtype_t from_dtype, void *to, mp_dtype_t to_dtype,
               int64_t count) const;

  const Cudnn &library_;
  RnnShape shape_;
  mp_dtype_t dtype_;
  RnnAlgo algo_;
  std::vector<RnnTensors> sets_;
  std::vector<Own> own_;
  Buffer workspace_, lengths_;
  size_t weight_bytes_ = 0, reserve_bytes_ = 0;
  CudnnDescriptor<cudnnDropoutStruct> dropout_;
  CudnnDescriptor<cudnnRNNStruct> layer_;
  CudnnDescriptor<cudnnRNNDataStruct> steps_;
  TensorDescriptor state_, matrix_, bias_;
};

}  // namespace mpbench
