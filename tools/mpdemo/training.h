// Trains a network once, in one precision and with one loss scaler, and measures it.
//
// The training loop only enqueues.  Losses and scales go to a history on the device, which the
// host fetches every kStepsPerFetch steps; nothing else waits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "architectures.h"
#include "batch.h"
#include "gradients.h"
#include "network.h"
#include "support/ranks.h"

namespace mpdemo {

/// One row of the result table.
struct RunPlan {
  std::string name;
  mp_dtype_t dtype;  ///< MP_FP32, or the 16-bit type of mixed precision
  std::optional<mp_scaler_config_t> scaler;
  bool is_judged;  ///< the metric of FP32 is asked of it
};

/// What all runs of one table share.
struct Setting {
  std::string id;     ///< in file names and JSON
  std::string title;  ///< one line above the table and the pictures
  double epochs;      ///< need not be whole
  /// Multiplies the loss, as a task weight does; a power of two.  The optimizer makes up for it, so that the
  /// weights should take the same path whatever it is.
  float loss_weight;
  std::vector<RunPlan> runs;
};

struct RunResult {
  RunPlan plan;
  std::vector<float> losses;  ///< one per step, without loss_weight
  std::vector<float> scales;  ///< S of every step; empty without a scaler
  double train_loss;          ///< mean over the last epoch
  double test;                ///< the network's metric after the last epoch
  double seconds;             ///< training, without the evaluations
  std::optional<mp_scaler_state_t> scaler;
  Memory memory;               ///< of one rank
  std::vector<float> weights;  ///< fp32, after training
  std::string explanation;     ///< how autocast has given each operation its type; empty in FP32
  std::string explanation_json;
  std::string text;  ///< that a network which reads text has written after training
  /// Of the first batch, after training; FP32 runs only.
  std::optional<Gradients> gradients;
};

/// Device copies of the dataset, for one rank.
struct DeviceData {
  Batches train;  ///< its share of every batch
  Batches test;   ///< all of it, on rank 0; empty on the others
};

/// Equal seeds give equal initial weights and an equal order of batches.
///
/// Ranks make the batch of one: each has its rows, the gradients are added, and all step alike.  What
/// differs from one rank is the order of sums, and that batch normalisation looks at a rank's own rows.
/// @param data  one per rank
RunResult train(Ranks &ranks, const std::vector<DeviceData> &data, const Architecture &architecture,
                const Setting &setting, const RunPlan &plan, uint64_t seed);

}  // namespace mpdemo
