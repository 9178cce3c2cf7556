// An operation with the data for mpcore and its peers.
#pragma once

#include <string>
#include <vector>

#include "bench/timing/timing.h"
#include "operation.h"

namespace mpbench {

class Problem {
 public:
  Problem(const Machine &machine, RandomPool &pool, Operation operation);
  Problem(const Problem &) = delete;
  Problem &operator=(const Problem &) = delete;

  const Operation &operation() const { return operation_; }
  int64_t sets() const { return static_cast<int64_t>(sets_.size()); }
  const Operands &first_set() const { return sets_.front(); }
  const std::vector<Operands> &all_sets() const { return sets_; }
  /// Size for the library's choice, and for forced kernels used so far.
  int64_t workspace_bytes() const { return workspace_.bytes(); }
  /// Name of the kernel that own() runs.
  std::string selected_kernel() const;

  /// Work that runs all calls on the next set of operands; allocates the workspace of a forced
  /// kernel.
  Work own(const char *kernel = nullptr);
  Work peer(const PeerCall &call);

  /// Compares the results of mpcore and the peer, except for sums and flags of an epilogue.
  /// @return a clause that describes the difference, "" if there is none
  std::string difference_to(const PeerCall &call);

 private:
  void fill_sets(RandomPool &pool);
  int64_t pointer_bytes() const;
  void put_pointers(Operands &set, char *memory) const;
  std::vector<Result> results_of(const Operands &set) const;
  void reserve_workspace(const char *kernel);
  int64_t first_bytes() const;
  int64_t out_bytes() const;
  const Operands &next_set();
  void enqueue_own(const char *kernel, const Operands &set) const;
  template <typename Call>
  void for_each_call(const Operands &set, const Call &call) const;

  const Machine &machine_;
  Operation operation_;
  Buffer operands_;
  std::vector<Operands> sets_;  ///< data of further calls follow in first and out
  size_t next_ = 0;
  Buffer workspace_;
};

}  // namespace mpbench
