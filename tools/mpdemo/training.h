// Trains a network once, in one precision with one loss scaler, and measures it.
//
// The training loop only enqueues.  Losses and scales go to a history on the device, which the host
// reads every kStepsPerFetch steps; nothing else synchronizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "architectures.h"
#include "network.h"
#include "support/ranks.h"

namespace mpdemo {

struct Options;

/// Gradients of one batch, computed in fp32.
struct Gradients {
  std::vector<float> weights;      ///< layers with weights
  std::vector<float> activations;  ///< layer outputs, including logits
};

/// Row of the result table.
struct RunPlan {
  std::string name;
  mp_dtype_t dtype;  ///< MP_FP32, or the 16-bit type of mixed precision
  std::optional<mp_scaler_config_t> scaler;
  bool is_judged;  ///< must match the metric of FP32
};

/// Data common to all runs of a table.
struct Setting {
  std::string id;      ///< in file names and JSON
  std::string title;   ///< a line above the table and the pictures
  std::string length;  ///< duration of training, e.g. in epochs
  int64_t num_steps;
  /// Factor of the loss, like a task weight; a power of two.  The optimizer compensates for it, so
  /// that the weights should not depend on it.
  float loss_weight;
  std::vector<RunPlan> runs;
};

/// Returns ordinary training, in which mixed precision should lose no accuracy, and for some
/// networks training with a small task weight, like auxiliary losses: without loss scaling most
/// fp16 gradients round to zero.
/// @param batches  per epoch
std::vector<Setting> make_settings(const Architecture &architecture, const Options &options,
                                   int64_t batches);

struct RunResult {
  RunPlan plan;
  std::vector<float> losses;  ///< one per step, without loss_weight
  std::vector<float> scales;  ///< S of every step; empty without a scaler
  double train_loss;          ///< mean over the last epoch
  double test;                ///< the network's metric after the last epoch
  double seconds;             ///< training without evaluations
  std::optional<mp_scaler_state_t> scaler;
  Memory memory;               ///< per rank
  std::vector<float> weights;  ///< fp32, after training
  std::string explanation;     ///< reasons for the type of each operation; empty in FP32
  std::string explanation_json;
  std::string text;  ///< generated after training, for networks that read text
  /// Gradients of the first batch after training; FP32 runs only.
  std::optional<Gradients> gradients;
};

/// Device copies of the dataset for one rank.
struct DeviceData {
  Batches train;  ///< the rank's part of every batch
  Batches test;   ///< complete on rank 0; empty on the others
};

/// Equal seeds give equal initial weights and an equal order of batches.
///
/// The ranks share each batch: each has some rows, gradients are summed, and all take the same
/// step. Compared with one rank, sums have another order, and batch normalization uses a rank's
/// rows only.
/// @param data  one per rank
RunResult train(Ranks &ranks, const std::vector<DeviceData> &data, const Architecture &architecture,
                const Setting &setting, const RunPlan &plan, uint64_t seed);

}  // namespace mpdemo
