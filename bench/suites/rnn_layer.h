// Times complete recurrent layers with their GEMMs alone, cuDNN's layer, both in FP32, and torch's
// layer.
#pragma once

#include <memory>
#include <optional>

#include "bench/rows/rows.h"
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
  /// The layer in FP32, by mpcore and peers.
  struct Fp32Side {
    std::optional<RnnData> data;
    std::unique_ptr<CudnnRnn> fp32, tf32;
  };

  /// Measures the times of the row, interleaved.
  void time(RnnLayerRow &row, RnnData &data);
  void add_baselines(const RnnShape &shape, Fp32Side &side, Comparison &comparison,
                     Baselines &baselines);
  /// Returns cuDNN's fastest algorithm; NULL if none runs the layer, with a note on the missing
  /// `what`.
  std::unique_ptr<CudnnRnn> make_peer(const char *what, RnnData &data, PeerMath math);
  /// Prepares torch's layer and mpcore's equivalent; otherwise adds a note with the reason.
  bool prepare_torch(const RnnData &data, std::optional<RnnData> &with_w_ih);
  bool check_agreement(RnnData &data, const CudnnRnn &peer);

  const Options &options_;
  const Machine &machine_;
  Report &report_;
  Stopwatch stopwatch_;
  RandomPool pool_;
  std::optional<Cudnn> library_;
  std::unique_ptr<TorchPeer> torch_;  ///< NULL = not requested or not installed
};

}  // namespace mpbench
