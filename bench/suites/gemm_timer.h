// Times GEMMs together with cuBLASLt.
#pragma once

#include <memory>

#include "bench/peers/cublas.h"
#include "bench/shapes/shapes.h"
#include "peer_library.h"
#include "problem_timer.h"

namespace mpbench {

class GemmTimer : BenchState {
 public:
  using BenchState::BenchState;

  /// Times a shape as the options specify.
  Figures time(const Shape &shape) { return timer_.time(comparand(shape, options_.out_dtype)); }
  /// Times a shape with D in the input type, and its peer; no FP32 baselines.
  Figures time_bare(const Shape &shape, const Pace &pace, const std::string &during) {
    Comparand square = comparand(shape, MP_DTYPE_NONE);
    square.is_bare = true;
    return timer_.time(square, during, pace);
  }

 private:
  Comparand comparand(const Shape &shape, mp_dtype_t out_dtype) const;

  ProblemTimer timer_{options_, machine_, report_};
  std::unique_ptr<CublasLt> library_ =
      open_peer<CublasLt>(options_.peers.cublaslt, "GEMM", machine_, report_);
};

inline Comparand GemmTimer::comparand(const Shape &shape, mp_dtype_t out_dtype) const {
  const mp_gemm_desc_t desc = make_desc(shape, options_.dtype, out_dtype);
  mp_gemm_desc_t fp32_desc = desc;
  fp32_desc.dtype_ab = fp32_desc.dtype_cd = MP_FP32;
  return {.name = shape.name(),
          .is_headline = shape.comment.starts_with("headline"),
          .operation = [=, this] { return gemm_operation(machine_, shape, desc); },
          .fp32_operation = [=, this] { return gemm_operation(machine_, shape, fp32_desc); },
          .library = library_ ? name_of(*library_) : "",
          .make_peer = [=, this](const Problem &) { return library_->gemm(desc, PeerMath::kFp32); },
          .make_fp32_peer = [=, this](const Problem &,
                                      PeerMath math) { return library_->gemm(fp32_desc, math); }};
}

}  // namespace mpbench
