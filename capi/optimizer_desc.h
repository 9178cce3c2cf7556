// Reads and checks the descriptor of an optimizer.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "capi/objects.h"
#include "mpcore.h"

namespace mp {

/// Returns the checked descriptor; the next two functions read its host arrays.
mp_optimizer_desc_t read_desc(const mp_optimizer_desc_t *user, const ContextPtr &context);
std::vector<mp_param_group_t> read_groups(const mp_optimizer_desc_t &desc);
std::vector<uint32_t> read_tensor_group(const mp_optimizer_desc_t &desc);

/// Checks a parameter group of `desc`; `name` is its prefix in messages.
void check_hyper(const mp_param_group_t &hyper, std::string_view name,
                 const mp_optimizer_desc_t &desc);

/// Returns whether a group with these hyperparameters writes a first moment.
bool needs_m(const mp_param_group_t &hyper, const mp_optimizer_desc_t &desc);

/// Allocates required moments that the caller has not provided.
void make_moments(mp_optimizer &optimizer);

/// Checks of the types of tensors: masters, moments and extra gradients; model copies.
void require_fp32(const mp_tensor_list &list, const char *name);
void require_16bit(const mp_tensor_list &list, const char *name);

}  // namespace mp
