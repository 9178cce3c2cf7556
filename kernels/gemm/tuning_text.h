// The constants of predicted times as a text, whose form is at the top of tuning.h.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace mp {

enum class DeviceClass;
struct GemmKernel;
struct GemmTuning;

/// The built-in constants, with those of a table in their place.  NULL if `text` is no table; then
/// `why` is one clause, "line 3: ...".
std::shared_ptr<const GemmTuning> parse_gemm_tuning(std::string_view text, std::string *why);

/// The lines that say what `tuning` holds of one class and these kernels; parse_gemm_tuning reads
/// them back to the same bits.
std::string tuning_text(const GemmTuning &tuning, DeviceClass device_class,
                        std::span<const GemmKernel *const> kernels);

}  // namespace mp
