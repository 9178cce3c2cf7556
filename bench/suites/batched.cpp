// mpbench batched: strided batches compared with cuBLASLt, pointer arrays with cublasGemmBatchedEx,
// groups with a loop over cuBLASLt and with cublasGemmGroupedBatchedEx.
#include <memory>

#include "batched_operation.h"
#include "bench/rows/rows.h"
#include "peer_library.h"
#include "problem_timer.h"
#include "suite.h"

namespace mpbench {
namespace {

class BatchedBench : BenchState {
 public:
  using BenchState::BenchState;

  void begin() const {
    if (blas_ && !blas_->has_groups())
      report_.add_note("No reference for grouped GEMMs: this cuBLAS is older than 12.5.");
  }
  void measure(const BatchedShape &shape) {
    report_.add(BatchedRow{.shape = shape, .figures = timer_.time(comparand(shape))});
  }

 private:
  Comparand comparand(const BatchedShape &shape) const;
  std::string library_for(BatchForm form) const;
  PeerCalls make_peer(const BatchedShape &shape) const;

  ProblemTimer timer_{options_, machine_, report_};
  std::unique_ptr<CublasLt> lt_ = open_peer<CublasLt>(
      options_.peers.cublaslt, "batches with strides and groups", machine_, report_);
  std::unique_ptr<Cublas> blas_ =
      open_peer<Cublas>(options_.peers.cublaslt, "batches with pointers", machine_, report_);
};

std::string BatchedBench::library_for(BatchForm form) const {
  if (form == BatchForm::kPointers) return blas_ ? name_of(*blas_) : "";
  if (!lt_) return "";
  const bool has_both = is_group(form) && blas_ && blas_->has_groups();
  return name_of(*lt_) + (!is_group(form) ? ""
                          : has_both      ? ", a loop; 2 is cublasGemmGroupedBatchedEx"
                                          : ", a loop");
}

PeerCalls BatchedBench::make_peer(const BatchedShape &shape) const {
  const mp_gemm_desc_t desc = make_desc(shape, options_.dtype);
  if (shape.form == BatchForm::kStrided) return lt_->gemm(desc);
  if (shape.form == BatchForm::kPointers) return {blas_->batched_gemm(desc)};
  const Cublas *const grouped = blas_ && blas_->has_groups() ? blas_.get() : nullptr;
  return group_calls(*lt_, grouped, shape, options_.dtype);
}

Comparand BatchedBench::comparand(const BatchedShape &shape) const {
  return {.name = shape.name(),
          .is_bare = true,
          .operation = [=, this] { return batched_operation(machine_, shape, options_.dtype); },
          .library = library_for(shape.form),
          .make_peer = [=, this](const Problem &) { return make_peer(shape); }};
}

}  // namespace

Suite batched_suite(const Options &options, const Machine &machine, Report &report) {
  return make_suite_of_sets<BatchedBench, BatchedShape>("batched", options, machine, report);
}

}  // namespace mpbench
