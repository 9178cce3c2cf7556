// The datasets in the memory of each rank, in every type in which a network reads them.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "batch.h"
#include "options.h"
#include "support/ranks.h"
#include "training.h"

namespace mpdemo {

class RankData {
 public:
  /// Fashion-MNIST, or of the character model a text.
  RankData(const Ranks &ranks, const Options &options);

  const std::string &name() const { return name_; }
  /// One per rank.
  std::vector<const DeviceData *> in(mp_dtype_t dtype) const;

 private:
  void load_images(const Ranks &ranks, const Options &options);
  void load_text(const Ranks &ranks, const Options &options);

  std::string name_;
  std::vector<std::map<mp_dtype_t, DeviceData>> ranks_;  ///< text: FP32 alone, being integers
};

}  // namespace mpdemo
