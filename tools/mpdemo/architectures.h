// The networks that the demo trains.
#pragma once

#include <cstdint>
#include <string>

#include "description.h"
#include "metric.h"

namespace mpdemo {

struct Architecture {
  std::string id;     ///< on the command line, in file names and JSON
  std::string name;   ///< a word
  std::string title;  ///< one line
  void (*describe)(Description &description);
  const Metric &metric;
  double due;  ///< what mixed precision must reach after full_epochs, by that metric
  double full_epochs;
  double sample_epochs;  ///< without --full: enough to see it learn
  mp_optimizer_kind_t optimizer;
  float peak_lr;    ///< at the first step
  int64_t batch;    ///< images or verses
  int64_t steps;    ///< of a window of text; images: 1
  bool reads_text;  ///< and can write some
};

const Architecture &perceptron();
const Architecture &convnet();
const Architecture &row_lstm();
const Architecture &character_model();

}  // namespace mpdemo
