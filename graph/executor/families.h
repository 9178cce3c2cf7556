// Operations by family; each family has one file.
#pragma once

#include <span>

#include "graph/executor/operation.h"

namespace mp::graph {

std::span<const Operation *const> product_operations();  ///< Linear, Conv2D, BiasAddGrad
std::span<const Operation *const> image_operations();    ///< pooling, BatchNorm
std::span<const Operation *const>
pointwise_operations();  ///< activations, Add, Mul, BiasAdd, Reshape
std::span<const Operation *const> sequence_operations();   ///< Embedding, Dropout
std::span<const Operation *const> recurrent_operations();  ///< LSTM, GRU, RNN
std::span<const Operation *const> loss_operations();       ///< SoftmaxXent, MSE, L1, BCEWithLogits

}  // namespace mp::graph
