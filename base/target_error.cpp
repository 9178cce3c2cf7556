#include "base/target_error.h"

#include <cstdarg>
#include <cstdio>

#include "base/device_info.h"

namespace mp {

void throw_target_error(mp_status_t status, const char *format, ...) {
  char text[640];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  throw TargetError(status, text);
}

}  // namespace mp
