// Text form of the constants of predicted times; tuning.h describes the format.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace mp {

enum class DeviceClass;
struct GemmKernel;
struct GemmTuning;

/// Returns the built-in constants, replaced by those in `text`.  If `text` is not a valid table,
/// returns NULL and sets `why` to one clause, "line 3: ...".
std::shared_ptr<const GemmTuning> parse_gemm_tuning(std::string_view text, std::string *why);

/// Returns the lines of `tuning` for one class and these kernels.  parse_gemm_tuning restores the
/// same bits from them.
std::string tuning_text(const GemmTuning &tuning, DeviceClass device_class,
                        std::span<const GemmKernel *const> kernels);

}  // namespace mp
