// A multilayer perceptron on mp_gemm:  y = relu(x W + b), layer by layer, without relu at the end.
//
// W is stored in x out, row-major, so that a batch (rows x in) meets it untransposed:
//
//     fprop   y  = x W           op N, N     bias and relu in the epilogue
//     dgrad   dx = dz Wᵀ         op N, T     relu' and the bias gradient below in the epilogue
//     wgrad   dW = xᵀ dz         op T, N
//
// No transposed copy exists.  In mixed precision W, y, dz and dW are fp16, products are summed in
// fp32, and the fp32 master of W belongs to the optimizer; biases and their gradients stay fp32.
// Source: Micikevicius et al., Mixed Precision Training, ICLR 2018, section 3.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common.h"
#include "dataset.h"
#include "random.h"

namespace mpdemo {

/// One tensor to train, in device memory.
struct Parameter {
  int64_t numel;
  float *master;
  void *model;  ///< what the GEMMs read where that is not the master itself, else NULL
  void *grad;
  mp_dtype_t grad_dtype;
};

/// Device memory of a network, by role.
struct Memory {
  int64_t weights;      ///< bytes the GEMMs read as W and b
  int64_t activations;  ///< bytes of all y
  int64_t gradients;    ///< bytes of all dW, db and dz
};

class Network {
 public:
  /// @param widths  of the input, the hidden layers and the logits.
  /// @param dtype   MP_FP32, or the 16-bit type of mixed precision.
  Network(mp_context_t context, std::span<const int64_t> widths, int64_t max_rows,
          mp_dtype_t dtype);

  /// W after He et al. 2015; b = 0.
  void initialise(Random &random);

  /// Computes logits().
  void forward(const Batch &batch);
  /// Computes all parameter gradients from dlogits(), after forward() of the same batch.
  /// @param found_inf  device, 1 float, optional: set to 1 by an overflowing activation gradient.
  void backward(const Batch &batch, float *found_inf);

  void *logits() const { return layers_.back().y.data(); }
  void *dlogits() const { return layers_.back().dz.data(); }
  mp_dtype_t dtype() const { return dtype_; }
  std::vector<Parameter> parameters() const;
  Memory memory() const;

  /// Gradients of all W, and of all z for `rows` rows, as fp32 on the host.  Waits.
  std::vector<float> weight_gradients_sync() const;
  std::vector<float> activation_gradients_sync(int64_t rows) const;

 private:
  struct Layer {
    int64_t in, out;
    mp_activation_t activation;
    Buffer weight;        ///< in x out, fp32 master
    Buffer weight_model;  ///< its 16-bit copy; empty in fp32
    Buffer bias;          ///< out, fp32
    Buffer dweight;       ///< in x out
    Buffer dbias;         ///< out, fp32
    Buffer y, dz;         ///< max_rows x out

    const void *gemm_weight() const {
      return weight_model.data() != nullptr ? weight_model.data() : weight.data();
    }
  };

  mp_gemm_desc_t fprop_desc(const Layer &layer, int64_t rows) const;
  mp_gemm_desc_t dgrad_desc(const Layer &layer, int64_t rows) const;
  mp_gemm_desc_t wgrad_desc(const Layer &layer, int64_t rows) const;
  int64_t workspace_bytes(int64_t rows) const;
  void multiply(const mp_gemm_desc_t &desc, const void *a, const void *b, void *d,
                const mp_epilogue_t &epilogue) const;
  void sum_rows(const Layer &layer, int64_t rows) const;
  void append_as_fp32(const Buffer &tensor, int64_t numel, std::vector<float> &all) const;

  mp_context_t context_;
  mp_dtype_t dtype_;
  std::vector<Layer> layers_;
  Buffer ones_;  ///< max_rows, for sum_rows
  Buffer workspace_;
};

}  // namespace mpdemo
