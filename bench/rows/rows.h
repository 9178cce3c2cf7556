// Kinds of result rows.
#pragma once

#include "bench/shapes/batched_shapes.h"
#include "bench/shapes/conv_shapes.h"
#include "bench/shapes/epilogue_shapes.h"
#include "bench/shapes/layer_shapes.h"
#include "bench/shapes/perceptron_shape.h"
#include "bench/shapes/rnn_shapes.h"
#include "bench/shapes/shapes.h"
#include "figures.h"

namespace mpbench {

template <typename ShapeType>
struct ShapeRow {
  ShapeType shape;
  Figures figures;  ///< times and bytes of all matrices
};
using GemmRow = ShapeRow<Shape>;
using EpilogueRow = ShapeRow<EpilogueShape>;
using BatchedRow = ShapeRow<BatchedShape>;
using ConvRow = ShapeRow<ConvShape>;
/// The GEMMs of one pass of a recurrent layer.
using RnnRow = ShapeRow<RnnShape>;

/// torch's layer, which always multiplies its input by W_ih, and mpcore's with that GEMM too.
struct BesideTorch {
  std::string what;  ///< calls that both make
  PeerResult own, torch;
};

/// One pass of a recurrent layer, with the time of its GEMMs alone.
struct RnnLayerRow {
  RnnShape shape;
  Figures figures;  ///< operations count only the GEMMs
  int64_t reserve_bytes;
  std::optional<PeerResult> products = {};  ///< the GEMMs in sequence, interleaved with the layer
  std::optional<int64_t> peer_reserve_bytes = {};
  std::optional<BesideTorch> torch = {};
};

/// One pass of a layer.
struct LayerRow {
  LayerShape shape;
  Figures figures;                         ///< operations count only the products
  std::optional<PeerResult> copy = {};     ///< copy of as many bytes; if there are no products
  std::optional<PeerResult> product = {};  ///< GEMM alone; gated unit
  std::vector<PeerResult> peers = {};      ///< the first one is shown in the table
};

/// The optimizer step, or a part of it.
struct StepRow {
  std::string op, layout;
  int64_t tensors, parameters;
  int64_t bytes_per_parameter;  ///< minimum for the algorithm
  int64_t sets;
  CopyBeside copy;
  Timing timing = {};
  std::vector<PeerResult> peers = {};  ///< the first one is shown in the table
  std::optional<Counts> counts = {};   ///< replace times
};

/// An API call.
struct CallRow {
  std::string call, problem;
  Timing timing;  ///< host time until the call returns
  std::optional<PeerResult> peer = {};
};

/// One phase of a program's startup, until its first result.
struct StartupRow {
  std::string phase;  ///< "load", ...
  std::string what;   ///< function called in the phase
  int64_t edge;       ///< edge of the square GEMM
  int64_t library_bytes;
  Timing timing;  ///< a batch is one process
};

/// Times of a training step through mp_graph_* and by the same calls, measured interleaved.
struct GraphBesideHand {
  Timing graph, by_hand;
};

struct GraphRow {
  PerceptronShape shape;
  mp_dtype_t dtype;  ///< compute type; other than fp32: mixed precision
  int64_t launches;
  GraphBesideHand whole;
  /// Host time until the calls return.  Empty on the host target, where the calls compute
  /// synchronously.
  std::optional<GraphBesideHand> host = {};
};

Fields fields_of(const GemmRow &row, const std::optional<Peak> &peak);
Fields fields_of(const EpilogueRow &row, const std::optional<Peak> &peak);
Fields fields_of(const BatchedRow &row, const std::optional<Peak> &peak);
Fields fields_of(const ConvRow &row, const std::optional<Peak> &peak);
Fields fields_of(const RnnRow &row, const std::optional<Peak> &peak);
Fields fields_of(const RnnLayerRow &row, const std::optional<Peak> &peak);
Fields fields_of(const LayerRow &row, const std::optional<Peak> &peak);
Fields fields_of(const StepRow &row, const std::optional<Peak> &peak);
Fields fields_of(const CallRow &row, const std::optional<Peak> &peak);
Fields fields_of(const StartupRow &row, const std::optional<Peak> &peak);
Fields fields_of(const GraphRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
