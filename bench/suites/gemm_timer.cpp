#include "gemm_timer.h"

#include "peer_library.h"

namespace mpbench {

GemmTimer::GemmTimer(const Options &options, const Machine &machine, Report &report)
    : options_(options), machine_(machine), timer_(options, machine, report) {
  if (!machine.on_host() && options.peers.cublaslt)
    open_peer_library(library_, "GEMM", report, machine.context(), machine.stream());
}

Comparand GemmTimer::comparand(const Shape &shape, mp_dtype_t out_dtype) const {
  const mp_gemm_desc_t desc = make_desc(shape, options_.dtype, out_dtype);
  mp_gemm_desc_t fp32_desc = desc;
  fp32_desc.dtype_ab = fp32_desc.dtype_cd = MP_FP32;
  return {.name = shape.name(),
          .is_headline = shape.comment.starts_with("headline"),
          .operation = [=, this] { return gemm_operation(machine_, shape, desc); },
          .fp32_operation = [=, this] { return gemm_operation(machine_, shape, fp32_desc); },
          .library = library_ ? name_of(*library_) : "",
          .make_peer =
              [=, this](const Problem &) {
                return std::make_unique<CublasLtGemm>(*library_, desc, PeerMath::kFp32);
              },
          .make_fp32_peer =
              [=, this](const Problem &, PeerMath math) {
                return std::make_unique<CublasLtGemm>(*library_, fp32_desc, math);
              }};
}

}  // namespace mpbench
