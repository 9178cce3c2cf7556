// Shell patterns for node names: * ? [a-z] [!a-z].
#pragma once

#include <string_view>

namespace mp::autocast {

/// Returns whether a pattern is valid: false if a [ is not closed.
bool is_glob(std::string_view pattern);

/// Returns whether all of `text` matches; * also matches "/".  Takes time up to the product of the
/// lengths and allocates no memory.
bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace mp::autocast
