#include "softgpu/tests/race_kernel.h"

#include <algorithm>

namespace softgpu::test {

Outcome run_checked(const std::string &module, const Shape &shape) {
  const WithOptions with([](Options &o) { o.checks_races = true; });
  Buffer<uint32_t> memory(4 * 1024);
  return Kernel(module)(shape, memory);
}

Outcome race(const std::string &body, uint32_t num_threads, uint32_t cluster) {
  Shape shape;
  shape.threads = {num_threads, 1, 1};
  shape.blocks = shape.cluster = {cluster, 1, 1};
  return run_checked(body_text(1, R"(
    .shared .align 128 .b32 words[2048];
    .shared .align 8 .b64 bar;
    .reg .b32 %own, %next, %first, %b, %v, %x, %w;
    .reg .b64 %g, %state;
    .reg .pred %lane0, %one, %q;
    mov.u32 %first, words;
    mov.u32 %b, bar;
    mad.lo.u32 %own, %t, 4, %first;
    add.u32 %x, %t, 1;
    and.b32 %x, %x, 63;
    mad.lo.u32 %next, %x, 4, %first;
    shr.u32 %w, %t, 5;
    and.b32 %x, %t, 31;
    setp.eq.u32 %lane0, %x, 0;
    setp.eq.u32 %one, %t, 0;
    mad.wide.u32 %g, %t, 16, %p0;
  )" + body + "ret;"),
                     shape);
}

bool is_race(const Outcome &outcome) {
  return outcome.fault.empty() &&
         std::any_of(outcome.violations.begin(), outcome.violations.end(),
                     [](const std::string &message) { return message.starts_with("race: "); });
}

}  // namespace softgpu::test
