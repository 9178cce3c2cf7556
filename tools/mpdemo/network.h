// A network that runs: its description, compiled.  In mixed precision there is one call more, graph.autocast.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batch.h"
#include "description.h"
#include "memory.h"
#include "random.h"

namespace mpdemo {

struct Architecture;

class Network {
 public:
  Network(mp_context_t context, const Architecture &architecture, const Form &form);

  void initialise(Random &random);
  /// What a network of the same architecture has learned.
  void copy_from(const Network &trained);

  /// The loss too where the batch has labels; in training backward() computes it.
  void forward(const Batch &batch, mp_graph_mode_t mode);
  /// Gradients of all parameters, after forward() in training.
  /// @param scaler  may be NULL: S = 1
  void backward(mp_scaler_t scaler);

  /// Device, 1 float.
  const float *loss() const { return data_of<float>(description_.mean_loss); }
  /// Device, one per image or step; 0 where there is no label.
  const float *row_loss() const { return data_of<float>(description_.row_loss); }
  /// Device: for how many labels the largest logit is theirs.
  const int64_t *num_correct() const { return data_of<int64_t>(description_.num_correct); }

  mp::graph_lists lists() const { return description_.graph.lists(); }
  /// Of each parameter, in the order of the lists.
  std::vector<int64_t> parameter_sizes() const;
  /// All but the optimizer's.
  Memory memory() const;
  /// How each operation came to its type; empty without autocast.
  std::string explanation(mp_autocast_format_t form) const;

  /// All parameters as the optimizer has them, on the host.  Waits.
  std::vector<float> masters_sync() const;
  /// Of one image or step, as fp32 on the host.  Waits.  For this and the next two the network is observed.
  std::vector<float> logits_sync() const;
  /// Gradients of all weights, and of what the layers hand on, on the host.  In fp32 alone.  Wait.
  std::vector<float> weight_gradients_sync() const;
  std::vector<float> activation_gradients_sync() const;

 private:
  template <typename T>
  T *data_of(int32_t tensor) const {
    return static_cast<T *>(description_.graph.get_tensor(tensor).data);
  }
  void append_gradient(int32_t tensor, std::vector<float> &all) const;
  /// h and c of the batch before, or none.
  void bind_carried(bool continues);

  mp_context_t context_;
  mp_dtype_t dtype_;
  Description description_;
  std::vector<Buffer> carried_;
};

}  // namespace mpdemo
