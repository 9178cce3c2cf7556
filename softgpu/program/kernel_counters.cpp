#include "softgpu/program/kernel_counters.h"

#include <algorithm>

namespace softgpu {

void KernelCounters::reset(size_t num_code) {
  executed.assign(num_code, 0);
  accesses.assign(num_code, {});
  touched.assign(num_code, {});
  num_instructions = num_launches = num_blocks = 0;
}

void KernelCounters::add(const KernelCounters &other) {
  executed.resize(std::max(executed.size(), other.executed.size()));
  accesses.resize(executed.size());
  for (size_t i = 0; i < other.executed.size(); i++) {
    executed[i] += other.executed[i];
    for (const AccessField &field : kAccessFields)
      accesses[i].*field.value += other.accesses[i].*field.value;
  }
  num_instructions += other.num_instructions;
  num_launches += other.num_launches;
  num_blocks += other.num_blocks;
}

KernelCounters KernelCounters::since(const KernelCounters &before) const {
  KernelCounters rest = *this;
  for (size_t i = 0; i < before.executed.size(); i++) {
    rest.executed[i] -= before.executed[i];
    for (const AccessField &field : kAccessFields)
      rest.accesses[i].*field.value -= before.accesses[i].*field.value;
  }
  rest.num_instructions -= before.num_instructions;
  rest.num_launches -= before.num_launches;
  rest.num_blocks -= before.num_blocks;
  return rest;
}

}  // namespace softgpu
