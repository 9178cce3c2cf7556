// Devices and their memory: the functions of a backend besides kernels.  struct Backend in
// kernels/backend.h documents them.  Bodies: host/device.cpp, kernels/simt/cuda/device.cu.
#pragma once

#include <string>

#include "base/device_info.h"
#include "kernels/simt/compiler.h"

namespace mp::MP_TARGET {

constexpr mp_target_t kTargetKind = MP_ON_CUDA ? MP_TARGET_CUDA : MP_TARGET_HOST;

int device_count();
std::string why_no_device();
int current_device();
bool has_code_for(int ordinal);
Device describe(int ordinal);

void *allocate(const Device &, size_t bytes);
void release(const Device &, void *ptr);
MappedMemory allocate_mapped(const Device &, size_t bytes);
void release_mapped(const Device &, const MappedMemory &);
void copy(const Device &, void *dst, const void *src, size_t bytes, mp_stream_t);
void fill(const Device &, void *dst, int byte, size_t bytes, mp_stream_t);
void synchronize(const Device &, mp_stream_t);
void release_idle();

}  // namespace mp::MP_TARGET
