// Types of the tensors after precision assignment, and the casts between them.
//
// A tensor is read without a cast by readers of its producer's precision and by readers that accept
// either type.  All other readers need the other type:
//
//     a parameter that is needed low        uses the optimizer's 16-bit copy: no kernel
//     all readers need the other type, and  the producer writes that type: no cast
//     the producer can write either
//     otherwise                             one cast, shared by these readers
//
// A tensor therefore has at most one cast.  The total is minimal unless a reader accepts either
// type: such a reader keeps the producer's type, because it may depend on its precision.  An output
// also has an external reader.  Its type is known only with MP_AUTOCAST_FLAG_KEEP_IO; otherwise the
// type of the output does not change.
//
// Emulation (TensorFlow's, for CPUs) rounds instead.  A tensor that a low vertex writes or reads is
// cast to low once.  It is cast back for each input of a low vertex, and once for all fp32 readers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/rewrite/assign_precision.h"

namespace mp::autocast {

class Casts {
 public:
  Casts(const Policy &policy, const mp_autocast_graph_t &graph,
        const PrecisionAssignment &assignment);

  int32_t count() const { return count_; }
  int32_t num_model_copies() const { return num_model_copies_; }

  /// Returns the type that the producer writes.
  mp_dtype_t dtype(int32_t tensor) const;
  /// Returns the cast that `input` of `node` reads, or -1.
  int32_t cast_of_input(int32_t node, int32_t input) const;

  /// Writes the arrays; each may be nullptr.
  void write(uint8_t *tensor_dtype, int32_t *input_cast, mp_autocast_cast_t *casts) const;

 private:
  /// Casts of one tensor, in this order.
  struct Needed {
    bool to_low, to_fp32;
  };

  bool has_low_producer(int32_t tensor) const;
  bool is_model_copy(int32_t tensor) const;
  bool producer_writes_other(int32_t tensor) const;
  Needed needed(int32_t tensor) const;
  bool is_low_reader(int32_t node, int32_t input) const;
  bool reads_either(int32_t node, int32_t input) const;
  void count_readers();
  void number_casts();

  const mp_autocast_graph_t &graph_;
  const PrecisionAssignment &assignment_;
  const mp_dtype_t low_;
  const bool keeps_io_, emulates_;
  std::vector<int32_t> readers_;     ///< per tensor
  std::vector<int32_t> others_;      ///< readers that need the type other than the producer's
  std::vector<int32_t> first_cast_;  ///< index of each tensor's first cast
  std::vector<int32_t> cast_back_;   ///< emulation, per input: cast for this input only, or -1
  int32_t count_ = 0;
  int32_t num_model_copies_ = 0;
};

// ---------------------------------------------------------------------------- report

/// Graph before or after its rewrite.
struct Rewritten {
  /// Rewrites the graph if `disabled_reason` is nullptr.
  Rewritten(const Policy &policy, const mp_autocast_graph_t &graph, const char *disabled_reason);

  const mp_autocast_graph_t &graph;
  const mp_dtype_t low;
  const char *const disabled_reason;  ///< reason why nothing changed; nullptr after a rewrite
  std::optional<PrecisionAssignment> assignment;  ///< absent before the rewrite, like casts
  std::optional<Casts> casts;
};

std::string report(const Rewritten &rewritten, mp_autocast_format_t format);

}  // namespace mp::autocast
