// A compiled network.  Mixed precision takes one more call, graph.autocast.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "batch.h"
#include "description.h"
#include "random.h"

namespace mpdemo {

struct Architecture;

/// Device memory of a training run in bytes, by kind.  Every owner of memory adds its part.
/// Excluded are the dataset, the record of losses and scales, and memory of the library: 7 KiB for
/// the perceptron, and 24 KiB that the host reads.
struct Memory {
  int64_t parameters = 0;  ///< fp32 parameters of the optimizer
  int64_t copies = 0;      ///< 16-bit copies for GEMMs in mixed precision
  int64_t gradients = 0;
  int64_t optimizer_state = 0;
  int64_t states = 0;       ///< batch normalization statistics, h and c between windows, constants
  int64_t activations = 0;  ///< activations and gradients, which share memory
  int64_t workspace = 0;

  int64_t together() const;
};

struct MemoryKind {
  const char *id;     ///< in JSON
  const char *title;  ///< in the table
  int64_t Memory::*bytes;
};

constexpr std::array kMemoryKinds = {
    MemoryKind{"parameter_bytes", "FP32 weights", &Memory::parameters},
    MemoryKind{"copy_bytes", "16-bit weight copies", &Memory::copies},
    MemoryKind{"gradient_bytes", "weight gradients", &Memory::gradients},
    MemoryKind{"optimizer_bytes", "optimizer state", &Memory::optimizer_state},
    MemoryKind{"state_bytes", "states", &Memory::states},
    MemoryKind{"activation_bytes", "activations, gradients", &Memory::activations},
    MemoryKind{"workspace_bytes", "workspace", &Memory::workspace},
};

inline int64_t Memory::together() const {
  int64_t sum = 0;
  for (const MemoryKind &kind : kMemoryKinds) sum += this->*kind.bytes;
  return sum;
}

class Network {
 public:
  Network(mp_context_t context, const Architecture &architecture, const Form &form);

  void initialise(Random &random);
  /// Copies the parameters of a trained network with the same architecture.
  void copy_from(const Network &trained);

  /// Computes the loss too if the batch has labels; in training backward() computes it.
  void forward(const Batch &batch, mp_graph_mode_t mode);
  /// Computes gradients of all parameters; follows a forward() in training.
  /// @param scaler  may be NULL: S = 1
  void backward(mp_scaler_t scaler);

  /// Device memory, 1 float.
  const float *loss() const { return data_of<float>(description_.mean_loss); }
  /// Device memory, one float per image or step; 0 without a label.
  const float *row_loss() const { return data_of<float>(description_.row_loss); }
  /// Device memory: number of labels with the largest logit.
  const int64_t *num_correct() const { return data_of<int64_t>(description_.num_correct); }

  mp::graph_lists lists() const { return description_.graph.lists(); }
  /// Parameters in the order of the lists, and states.
  const std::vector<Variable> &variables() const { return description_.variables; }
  /// Memory of everything except the optimizer.
  Memory memory() const;
  /// Reason for the type of each operation; empty without autocast.
  std::string explanation(mp_autocast_format_t form) const;

  /// Copies all master parameters to the host.  Synchronizes.
  std::vector<float> masters_sync() const;
  /// Copies the logits of one image or step to the host as fp32.  Synchronizes.  This and the next
  /// two functions require an observed network.
  /// @param row  index of the image or step
  std::vector<float> logits_sync(int64_t row) const;
  /// Gradients of all weights, and of layer outputs, in host memory.  FP32 only.  Synchronize.
  std::vector<float> weight_gradients_sync() const;
  std::vector<float> activation_gradients_sync() const;

 private:
  template <typename T>
  T *data_of(int32_t tensor) const {
    return static_cast<T *>(description_.graph.get_tensor(tensor).data);
  }
  void append_gradient(int32_t tensor, std::vector<float> &all) const;
  /// Binds h and c of the previous batch, or none.
  void bind_carried(bool continues);

  mp_context_t context_;
  mp_dtype_t dtype_;
  Description description_;
  std::vector<Buffer> carried_;
};

/// Generates text, character by character.
/// @param network  observed, with one sequence of `steps` steps: each character depends on that
///     many characters before it, and on the state that the network carries.
/// @return `characters` characters, from the start of a verse.  Networks with similar predictions
///     write the same text until a random number falls between them.
std::string write_text(mp_context_t context, Network &network, int64_t steps, int64_t characters,
                       Random random);

}  // namespace mpdemo
