// The networks that the demo trains.
#pragma once

#include <string>

#include "layer.h"

namespace mpdemo {

struct Architecture {
  std::string id;     ///< on the command line, in file names and JSON
  std::string name;   ///< a word
  std::string title;  ///< one line
  Layers (*build)(const Setup &setup);
  /// After 3 epochs mixed precision must reach this accuracy.
  double least_accuracy;
  float peak_lr;  ///< of SGD with momentum, at the first step
};

const Architecture &perceptron();
const Architecture &convnet();
const Architecture &row_lstm();

}  // namespace mpdemo
