#include "softgpu/machine/race_shadow.h"

namespace softgpu {

void RaceShadow::split(Word &word) {
  Bytes bytes;
  for (Cell &cell : bytes) {
    cell = word.cell;
    if (cell.more == 0) continue;
    cell.more = static_cast<uint32_t>(others_.size());
    others_.push_back(Others(others_[word.cell.more]));
  }
  word.bytes = static_cast<uint32_t>(bytes_.size());
  bytes_.push_back(bytes);
}

}  // namespace softgpu
