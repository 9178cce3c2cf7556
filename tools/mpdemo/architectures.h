// Networks that the demo trains.
#pragma once

#include <cstdint>
#include <string>

#include "description.h"
#include "metric.h"

namespace mpdemo {

struct Architecture {
  std::string id;     ///< in options, file names and JSON
  std::string name;   ///< single word
  std::string title;  ///< single line
  void (*describe)(Description &description);
  const Metric &metric;
  double due;  ///< metric that mixed precision must reach after full_epochs
  double full_epochs;
  double sample_epochs;  ///< default without --full: enough to show learning
  mp_optimizer_kind_t optimizer;
  float peak_lr;    ///< initial learning rate
  int64_t batch;    ///< images or verses
  int64_t steps;    ///< steps per window of text; images: 1
  bool reads_text;  ///< can also generate text
};

const Architecture &perceptron();
const Architecture &convnet();
const Architecture &row_lstm();
const Architecture &character_model();

}  // namespace mpdemo
