// Patterns of node names, as a shell's: * ? [a-z] [!a-z].
#pragma once

#include <string_view>

namespace mp::autocast {

/// False where a [ is not closed.
bool is_glob(std::string_view pattern);

/// Whether all of `text` matches.  * also matches "/".  Needs time of at most their lengths' product,
/// and no memory.
bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace mp::autocast
