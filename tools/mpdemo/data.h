// Dataset in the memory of each rank.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "batch.h"
#include "options.h"
#include "support/ranks.h"
#include "training.h"

namespace mpdemo {

class RankData {
 public:
  /// Loads Fashion-MNIST, or a text for the character model.
  RankData(const Ranks &ranks, const Options &options);

  const std::string &name() const { return name_; }
  /// One per rank.
  const std::vector<DeviceData> &ranks() const { return ranks_; }

 private:
  void load_images(const Ranks &ranks, const Options &options);
  void load_text(const Ranks &ranks, const Options &options);

  std::string name_;
  std::vector<DeviceData> ranks_;
};

}  // namespace mpdemo
