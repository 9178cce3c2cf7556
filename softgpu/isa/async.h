// Parts of decode_async.  Each returns false for other statements.
#pragma once

#include "softgpu/program/decoder.h"

namespace softgpu {

bool decode_mbarrier(Decoder &, Instruction &);     // mbarrier.cpp
bool decode_tensor_copy(Decoder &, Instruction &);  // tma.cpp: cp.async.bulk.tensor
bool decode_plain_copy(Decoder &, Instruction &);  // plain_copy.cpp: cp.async.bulk without a tensor
bool decode_bulk_group(Decoder &, Instruction &);  // bulk_groups.cpp: commit_group, wait_group
bool decode_tensor_map(Decoder &, Instruction &);  // tensor_map_edit.cpp: tensormap, its proxy
bool decode_proxy_fence(Decoder &, Instruction &);  // proxy_fence.cpp: fence.proxy, mbarrier_init
bool decode_cluster_address(Decoder &, Instruction &);  // cluster_address.cpp: mapa, getctarank

}  // namespace softgpu
