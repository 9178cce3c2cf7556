// Addresses of operands and partial sums, and the epilogue of every GEMM kernel: from fp32
// accumulators to D.
//
//      z = alpha * *scale * acc + beta * C + bias[col]
//      aux = z                     (forward activations, if aux != NULL)
//      y = activation(z)           (or z * activation'(aux) for the D* kinds)
//      D = round(y),  amax = max(amax, |D|),  found_inf |= !isfinite(D)
//
// A later pass computes dbias, the column sums of D (DbiasPlan).  With split-k, the main loop
// stores partial sums, and split_k.cu adds them in order and applies the epilogue.
#pragma once

#include "kernels/gemm/problem.h"
#include "kernels/simt/activation.h"
#include "kernels/simt/simt.h"
#include "kernels/simt/vector.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

// ---------------------------------------------------------------------------- addresses

/// Returns the address of a batch item.
MP_DEVICE const void *item_address(const Operand &operand, mp_dtype_t dtype, int64_t item) {
  const void *address = nullptr;
  if (operand.items != nullptr)
    address = operand.items[item];
  else if (operand.base != nullptr)
    address = static_cast<const char *>(operand.base) + item * operand.stride * dtype_bytes(dtype);
  return in_gmem(address);
}

/// Returns the elements of the partial sums of one slice of k.  Layout: [slice][batch item][m][n].
MP_HD int64_t elems_per_partial(const Output &out) {
  return out.batch_count * out.m * out.n;
}

/// Returns the address of the element (row, col) of a slice and batch item.
template <class T>
MP_DEVICE T *partial_sum(T *partial_sums, const Output &out, int slice, int64_t item, int64_t row,
                         int64_t col) {
  return partial_sums + slice * elems_per_partial(out) + (item * out.m + row) * out.n + col;
}

// ---------------------------------------------------------------------------- epilogue

/// Sizes and addresses of C and D of one batch item or group entry.
struct EpilogueTarget {
  int64_t m, n;
  const void *c;
  int64_t ld_c;
  void *d;
  int64_t ld_d;
  int64_t aux_offset;  ///< elements, relative to Epilogue::aux
};

MP_DEVICE EpilogueTarget epilogue_target(const Output &out, int64_t item) {
  return {out.m,
          out.n,
          item_address(out.c, out.dtype, item),
          out.c.ld,
          const_cast<void *>(item_address(out.d, out.dtype, item)),
          out.d.ld,
          item * out.epilogue.stride_aux};
}

/// Applies the epilogue to vectors of columns and tracks the amax of this thread's elements of D.
///
/// write() performs all steps.  Each step is public for kernels that store D in another way.
class EpilogueWriter {
 public:
  /// `has_product`: false if k is empty, which occurs in groups of mp_gemm_ragged.
  MP_DEVICE EpilogueWriter(const Output &out, const EpilogueTarget &target, bool has_product = true)
      : out_(out), target_(target) {
    alpha_ = out.epilogue.scale == nullptr ? out.alpha : out.alpha * *out.epilogue.scale;
    if (!has_product) alpha_ = 0.0f;
  }

  MP_DEVICE EpilogueWriter(const Output &out, int64_t item, bool has_product = true)
      : EpilogueWriter(out, epilogue_target(out, item), has_product) {}

  /// Factor of the accumulators.  If it is 0, they count as 0, like in BLAS: D does not depend on
  /// NaN and infinity in A or B.
  MP_DEVICE float alpha() const { return alpha_; }

  /// Rows of D or aux, for kernels that store them in another way.
  struct Rows {
    void *base;
    int64_t ld;
  };
  MP_DEVICE Rows d() const { return {target_.d, target_.ld_d}; }
  MP_DEVICE Rows aux() const {
    const Epilogue &e = out_.epilogue;
    return {static_cast<char *>(e.aux) + target_.aux_offset * dtype_bytes(out_.dtype), e.ld_aux};
  }

  /// Stores D[row][col, col + valid), computed from the accumulators.
  template <int kRun>
  MP_DEVICE void write(int64_t row, int64_t col, float (&acc)[kRun], int valid) {
    transform(row, col, acc, valid);
    store(row, col, acc, valid);
    measure(acc, valid);
  }

  /// Computes y from the accumulators, in place; writes aux if the forward pass keeps it.
  template <int kRun>
  MP_DEVICE void transform(int64_t row, int64_t col, float (&acc)[kRun], int valid) const {
    const Epilogue &e = out_.epilogue;
    unroll<kRun>([&](int i) { acc[i] = alpha_ == 0.0f ? 0.0f : acc[i] * alpha_; });
    if (out_.beta != 0.0f) add_beta_c(row, col, acc, valid);
    if (e.bias != nullptr) add_bias(col, acc, valid);
    activate(row, col, acc, valid);
  }

  /// Stores D = round(y).
  template <int kRun>
  MP_DEVICE void store(int64_t row, int64_t col, const float (&y)[kRun], int valid) const {
    store_vector(out_.dtype, target_.d, row * target_.ld_d + col, y, valid);
  }

  MP_DEVICE bool measures() const {
    return out_.epilogue.amax != nullptr || out_.epilogue.found_inf != nullptr;
  }

  /// Updates amax and found_inf with round(y).
  template <int kRun>
  MP_DEVICE void measure(const float (&y)[kRun], int valid) {
    if (!measures()) return;
    with_type(out_.dtype, [&]<class T>(std::type_identity<T>) {
      MP_UNROLL
      for (int i = 0; i < kRun; i++)
        if (i < valid) largest_.see<T>(y[i]);
    });
  }

  /// Updates amax with the magnitude of an element of D.
  MP_DEVICE void count(uint32_t bits) { largest_.count(bits); }

  /// Publishes amax and found_inf.  Every lane of the warp must call it once, after all elements.
  MP_DEVICE void finish() const {
    if (measures()) largest_.publish(out_.epilogue.found_inf, out_.epilogue.amax);
  }

 private:
  template <int kRun>
  MP_DEVICE void add_beta_c(int64_t row, int64_t col, float (&z)[kRun], int valid) const {
    float c[kRun];
    load_vector(c, out_.dtype, target_.c, row * target_.ld_c + col, valid);
    unroll<kRun>([&](int i) { z[i] += out_.beta * c[i]; });
  }

  template <int kRun>
  MP_DEVICE void add_bias(int64_t col, float (&z)[kRun], int valid) const {
    float bias[kRun];
    load_vector(bias, out_.epilogue.dtype_bias, out_.epilogue.bias, col, valid);
    unroll<kRun>([&](int i) { z[i] += bias[i]; });
  }

  template <int kRun>
  MP_DEVICE void activate(int64_t row, int64_t col, float (&z)[kRun], int valid) const {
    const Epilogue &e = out_.epilogue;
    const int64_t at = target_.aux_offset + row * e.ld_aux + col;
    if (reads_aux(e.activation)) {
      float saved[kRun];
      load_vector(saved, out_.dtype, e.aux, at, valid);
      multiply_by_derivative(e.activation, saved, z);
      return;
    }
    if (e.aux != nullptr) store_vector(out_.dtype, e.aux, at, z, valid);
    mp::MP_TARGET::activate(e.activation, z);
  }

  const Output &out_;
  const EpilogueTarget target_;
  float alpha_;
  LargestMagnitude largest_;
};

}  // namespace mp::MP_TARGET
