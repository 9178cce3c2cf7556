// Dataset in the memory of each rank.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "support/ranks.h"
#include "training.h"

namespace mpdemo {

struct Data {
  std::string name;
  std::vector<DeviceData> ranks;
};

/// Loads the text or the images of a network.
Data load_data(const Ranks &ranks, const Options &options, const Architecture &architecture);

}  // namespace mpdemo
