// GEMM of cuBLASLt followed by mpcore's statistics pass over D, as a peer: cuBLASLt has no epilogue
// that measures a 16-bit result.
#pragma once

#include <map>
#include <memory>

#include "bench/peers/cublaslt.h"
#include "problem.h"

namespace mpbench {

class GemmThenStats : public Peer {
 public:
  /// @throws std::runtime_error if cuBLASLt has no algorithm for the GEMM.
  GemmThenStats(const Machine &machine, const CublasLt &library, const mp_gemm_desc_t &desc,
                const Problem &problem)
      : machine_(machine), gemm_(library, desc) {
    for (const Operands &set : problem.all_sets()) {
      void *data = set.out;
      const int64_t numel = desc.m * desc.n;
      mp_tensor_list_desc_t list_desc;
      MP_INIT_STRUCT(&list_desc);
      list_desc.dtype = desc.dtype_cd;
      list_desc.count = 1;
      list_desc.data = &data;
      list_desc.numel = &numel;
      mp_tensor_list_t list = nullptr;
      check(mp_tensor_list_create(&list, machine.context(), &list_desc));
      lists_[data].reset(list);
    }
  }

  size_t choices() const override { return gemm_.choices(); }
  PeerWorkspace workspace(size_t choice) const override { return gemm_.workspace(choice); }
  void enqueue(const Operands &t, size_t choice) const override {
    gemm_.enqueue(t, choice);
    mp_stats_outputs_t outputs;
    MP_INIT_STRUCT(&outputs);
    outputs.amax = t.epilogue.amax;
    outputs.found_inf = t.epilogue.found_inf;
    check(mp_tensor_stats(lists_.at(t.out).get(), &outputs, machine_.stream()));
  }

 private:
  const Machine &machine_;
  CublasLtGemm gemm_;
  std::map<const void *, TensorList> lists_;  ///< key: address of D
};

}  // namespace mpbench
