// What a caller says of an optimizer, read and checked.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "capi/objects.h"
#include "mpcore.h"

namespace mp {

/// All of it but the host arrays, which the next two read.
mp_optimizer_desc_t read_desc(const mp_optimizer_desc_t *user, const ContextPtr &context);
std::vector<mp_hyper_t> read_groups(const mp_optimizer_desc_t &desc);
std::vector<uint32_t> read_tensor_group(const mp_optimizer_desc_t &desc);

/// One parameter group; `name` is how the caller knows it, and `desc` what it is for.
void check_hyper(const mp_hyper_t &hyper, std::string_view name, const mp_optimizer_desc_t &desc);

/// Returns whether a group with these hyperparameters writes a first moment.
bool needs_m(const mp_hyper_t &hyper, const mp_optimizer_desc_t &desc);

/// Allocates the moments that the groups need and the caller has not given.
void make_moments(mp_optimizer &optimizer);

/// Fail where a tensor is not what masters, moments and extra gradients, or copies, must be.
void require_fp32(const mp_tensor_list &list, const char *name);
void require_16bit(const mp_tensor_list &list, const char *name);

}  // namespace mp
