// One GEMM with its data, or several of one shape: what mpcore and the peer are both given.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/peers/cublaslt.h"
#include "bench/shapes/shapes.h"
#include "bench/timing/machine.h"
#include "bench/timing/timing.h"

namespace mpbench {

class GemmProblem {
 public:
  /// @param calls  products after each other, with A and D of their own and one B; each Work is all of
  ///               them
  GemmProblem(const Machine &machine, RandomPool &pool, const mp_gemm_desc_t &desc,
              int64_t calls = 1);
  GemmProblem(const GemmProblem &) = delete;
  GemmProblem &operator=(const GemmProblem &) = delete;

  /// Names of the kernels that can run it, the library's choice first.
  const std::vector<const char *> &kernels() const { return kernels_; }
  /// Of all products, by the cost model that chose the kernel.
  double predicted_us() const;
  int64_t sets() const { return static_cast<int64_t>(sets_.size()); }
  /// What every implementation reads and writes at least.
  double min_bytes() const { return mpbench::min_bytes(desc_, calls_); }
  /// What the library asks for, and what forced kernels have asked for since.
  int64_t workspace_bytes() const { return workspace_.bytes(); }

  /// mp_gemm on the next set of operands; makes room for what a forced kernel needs.
  Work own(const char *kernel = nullptr);
  /// @param choice  of the peer's algorithms
  Work peer(const CublasLtGemm &gemm, size_t choice = 0);

  /// Whether D is the same within the roundings that two correct implementations may differ by.
  bool agrees_with(const CublasLtGemm &gemm, size_t choice = 0);

 private:
  /// Device matrices, each at its own 256-byte boundary; those of later products follow A and D.
  struct Set {
    void *a, *b, *d;
  };

  void list_kernels();
  void fill_sets(RandomPool &pool);
  void reserve_workspace(const mp_gemm_desc_t &desc);
  int64_t bytes_of_a() const;
  int64_t bytes_of_d() const;
  const Set &next_set();
  /// Calls `multiply` with the operands of each product.
  template <typename Multiply>
  void for_each_product(const Set &set, Multiply multiply) const;
  void enqueue_own(const mp_gemm_desc_t &desc, const Set &set) const;
  void enqueue_peer(const CublasLtGemm &gemm, size_t choice, const Set &set) const;

  const Machine &machine_;
  mp_gemm_desc_t desc_;
  int64_t calls_;
  std::vector<const char *> kernels_;
  Buffer operands_;
  std::vector<Set> sets_;
  size_t next_ = 0;
  Buffer workspace_;
};

}  // namespace mpbench
