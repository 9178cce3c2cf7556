// A fully connected layer on mp_gemm:  y = relu(x W + b), without relu where y is the logits.
//
// W is stored in x out, row-major, so that a batch (rows x in) meets it untransposed:
//
//     fprop   y  = x W           op N, N     bias and relu in the epilogue
//     dgrad   dx = dz Wᵀ         op N, T     relu' and the bias gradient below in the epilogue
//     wgrad   dW = xᵀ dz         op T, N
//
// No transposed copy exists.  dy() of this layer is dz, the gradient of z = x W + b.
#pragma once

#include <cstdint>
#include <vector>

#include "layer.h"

namespace mpdemo {

enum class Role { hidden, logits };

class Linear : public Layer {
 public:
  Linear(const Setup &setup, int64_t in, int64_t out, Role role);

  void initialise(Random &random) override;
  void forward(const void *x, const Pass &pass) override;
  void backward(const void *x, const Layer *below, const Pass &pass) override;
  std::vector<Parameter> parameters() const override;
  size_t workspace_bytes() const override;
  void add_memory(Memory &memory) const override;
  mp_epilogue_t dy_epilogue() const override;

 private:
  mp_gemm_desc_t fprop_desc(int64_t rows) const;
  mp_gemm_desc_t dgrad_desc(int64_t rows) const;
  mp_gemm_desc_t wgrad_desc(int64_t rows) const;
  void multiply(const mp_gemm_desc_t &desc, const void *a, const void *b, void *d,
                const mp_epilogue_t &epilogue, const Pass &pass) const;
  void sum_rows(const Pass &pass) const;

  int64_t in_;
  mp_activation_t activation_;
  Weight weight_;
  Channels bias_;
  Buffer ones_;  ///< max_rows, for sum_rows; logits only
};

}  // namespace mpdemo
