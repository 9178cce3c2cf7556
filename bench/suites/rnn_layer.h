// Whole recurrent layers beside their GEMMs alone, cuDNN's, the same in FP32, and torch's.
#pragma once

#include <memory>
#include <optional>

#include "bench/rows/rnn_layer_row.h"
#include "comparison.h"
#include "peer_library.h"
#include "problem.h"
#include "rnn_data.h"
#include "torch_peer.h"

namespace mpbench {

class RnnLayerTimer {
 public:
  RnnLayerTimer(const Options &options, const Machine &machine, Report &report);

  RnnLayerRow measure(const RnnShape &shape);

 private:
  /// The layer in FP32, by whoever computes it.
  struct Fp32Side {
    std::optional<RnnData> data;
    std::unique_ptr<CudnnRnn> fp32, tf32;
  };

  /// Fills in its times, in turns.
  void time(RnnLayerRow &row, RnnData &data);
  void add_baselines(const RnnShape &shape, Fp32Side &side, Comparison &comparison,
                     Baselines &baselines);
  /// cuDNN's fastest algorithm; NULL where none runs the layer, and a note says why and `what` it would have been.
  std::unique_ptr<CudnnRnn> make_peer(const char *what, RnnData &data, PeerMath math);
  /// Makes torch ready, and what of mpcore stands beside it; else a note says why there is none.
  bool prepare_torch(const RnnData &data, std::optional<RnnData> &with_w_ih);
  bool check_agreement(RnnData &data, const CudnnRnn &peer);

  const Options &options_;
  const Machine &machine_;
  Report &report_;
  Stopwatch stopwatch_;
  RandomPool pool_;
  std::optional<Cudnn> library_;
  std::unique_ptr<TorchPeer> torch_;  ///< NULL = it is not asked for, or not there
};

}  // namespace mpbench
