// PyTorch's fused AdamW with GradScaler as a peer of mp_scale_step, timed by torch_adamw.py in a
// process of its own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../layouts.h"
#include "../report.h"

namespace mpbench {

/// By the name and the number of parameters of a layout; empty where PyTorch is not importable or
/// does not see the device.
using TorchResults = std::map<std::pair<std::string, int64_t>, PeerResult>;

TorchResults time_torch_adamw(const std::string &home, int ordinal,
                              const std::vector<Layout> &layouts);

}  // namespace mpbench
