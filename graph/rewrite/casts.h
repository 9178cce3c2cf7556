// The types of the tensors of a painted graph, and the fewest casts between them.
//
// Readers of the producer's colour, and those that read either, take a tensor as it is.  If others
// remain, the tensor needs its other type:
//
//   a parameter that is needed low        the optimizer's 16-bit copy: no kernel
//   all readers want the other type, and  the producer writes that: no cast
//   the producer can write either
//   otherwise                             one cast, shared by all of them
//
// So there is at most one cast per tensor, and fewest of all while nobody reads either: such a reader is
// left the type that it has, for it may be one that wants its precision.  An output has a reader outside; it
// changes its type only where that reader is known, with MP_AUTOCAST_KEEP_IO.
//
// Emulation (TensorFlow's, for CPUs) rounds instead: what a low vertex writes or reads is cast to low
// once, and cast back for each input of a low vertex, and once for all fp32 readers.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/rewrite/assign_precision.h"
#include "mpcore.h"

namespace mp::autocast {

class Casts {
 public:
  Casts(const Policy &policy, const mp_autocast_graph_t &graph,
        const PrecisionAssignment &painting);

  int32_t count() const { return count_; }
  int32_t num_model_copies() const { return num_model_copies_; }

  /// What the producer writes.
  mp_dtype_t dtype(int32_t tensor) const;
  /// The cast that `input` of `node` reads, or -1.
  int32_t cast_of_input(int32_t node, int32_t input) const;

  /// Each may be nullptr.
  void write(uint8_t *tensor_dtype, int32_t *input_cast, mp_autocast_cast_t *casts) const;

 private:
  /// The casts of one tensor, in this order.
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
  const PrecisionAssignment &painting_;
  const mp_dtype_t low_;
  const bool keeps_io_, emulates_;
  std::vector<int32_t> readers_;     ///< per tensor
  std::vector<int32_t> others_;      ///< of which want the type that the producer's colour is not
  std::vector<int32_t> first_cast_;  ///< per tensor: the number of its first cast
  std::vector<int32_t> cast_back_;   ///< emulation, per input: the cast for it alone, or -1
  int32_t count_ = 0;
  int32_t num_model_copies_ = 0;
};

}  // namespace mp::autocast
