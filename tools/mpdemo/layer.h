// What the layers of a network have in common: y from x, and backward from dy to the gradients of
// the parameters and to the dy of the layer below.
//
// In mixed precision weights, their gradients, y and dy are 16 bits, GEMMs and convolutions are summed in fp32,
// and the fp32 master of a weight belongs to the optimizer.  What there is one of per channel (bias,
// batch normalisation) stays fp32, and so do its gradients.
// Source: Micikevicius et al., Mixed Precision Training, ICLR 2018, section 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "batch.h"
#include "common.h"
#include "memory.h"
#include "random.h"

namespace mpdemo {

/// One tensor to train, in device memory.
struct Parameter {
  int64_t numel;
  float *master;
  void *model;  ///< what GEMM and convolution read where that is not the master itself, else NULL
  void *grad;
  mp_dtype_t grad_dtype;
  bool is_weight;  ///< 16 bits in mixed precision
};

/// What all layers of a network share.
struct Setup {
  mp_context_t context;
  mp_dtype_t dtype;  ///< MP_FP32, or the 16-bit type of mixed precision
  int64_t max_rows;  ///< of a batch
};

/// One pass over a batch.
struct Pass {
  int64_t rows;
  Window window;            ///< text only
  bool is_training;         ///< statistics of this batch, not of the training set
  const Buffer &workspace;  ///< as large as the greediest layer asked for
  float *found_inf;         ///< device, 1 float, optional: set to 1 by an overflowing dy
};

class Layer {
 public:
  virtual ~Layer() = default;

  virtual void initialise(Random &) {}
  virtual void forward(const void *x, const Pass &pass) = 0;
  /// After forward() of the same batch, with dy() computed.
  /// @param below  the layer whose y is x, and whose dy is written; NULL: it is not needed.
  virtual void backward(const void *x, const Layer *below, const Pass &pass) = 0;
  virtual std::vector<Parameter> parameters() const { return {}; }
  virtual size_t workspace_bytes() const { return 0; }
  /// Adds what the layer holds beside its parameters and the workspace: y and dy, and what else there is.
  virtual void add_memory(Memory &memory) const;

  /// What the GEMM that computes dy() is to do on the way.  Only GEMMs and convolutions have epilogues,
  /// so a layer that needs one stands below such a layer.
  virtual mp_epilogue_t dy_epilogue() const { return mp_epilogue_default(); }

  const Buffer &y() const { return y_; }
  const Buffer &dy() const { return dy_; }
  int64_t out() const { return out_; }

 protected:
  /// @param out  elements of y per row of the batch.
  Layer(const Setup &setup, int64_t out);

  mp_context_t context() const { return setup_.context; }
  mp_dtype_t dtype() const { return setup_.dtype; }
  int64_t max_rows() const { return setup_.max_rows; }
  /// dy_epilogue() of the layer below, and found_inf.
  static mp_epilogue_t dx_epilogue(const Layer &below, const Pass &pass);

 private:
  Setup setup_;
  int64_t out_;
  Buffer y_, dy_;
};

using Layers = std::vector<std::unique_ptr<Layer>>;

/// Sets all floats of a tensor.
void fill(mp_context_t context, const Buffer &tensor, float value);

/// The weight of a GEMM or a convolution.
class Weight {
 public:
  Weight(const Setup &setup, int64_t numel);

  /// After He et al. 2015.
  /// @param fan_in  terms of the sum that makes one element of y.
  void initialise(Random &random, int64_t fan_in);
  /// In [-bound, bound).
  void initialise_uniform(Random &random, double bound);
  /// What GEMM and convolution read.
  const void *data() const { return model_.data() != nullptr ? model_.data() : master_.data(); }
  void *grad() const { return grad_.data(); }
  Parameter parameter() const;

 private:
  Setup setup_;
  int64_t numel_;
  Buffer master_;  ///< fp32
  Buffer model_;   ///< its 16-bit copy; empty in fp32
  Buffer grad_;
};

/// Parameters per channel, in fp32 always.
class Channels {
 public:
  Channels(const Setup &setup, int64_t numel, float initial);

  float *data() const { return master_.as<float>(); }
  float *grad() const { return grad_.as<float>(); }
  void initialise() { fill(context_, master_, initial_); }
  /// In [-bound, bound).
  void initialise_uniform(Random &random, double bound);
  Parameter parameter() const;

 private:
  mp_context_t context_;
  int64_t numel_;
  float initial_;
  Buffer master_, grad_;
};

}  // namespace mpdemo
