// mpbench batched: strided batches compared with cuBLASLt, pointer arrays with cublasGemmBatchedEx,
// groups with a loop over cuBLASLt and with cublasGemmGroupedBatchedEx.
#include <optional>

#include "batched_operation.h"
#include "bench/rows/rows.h"
#include "peer_library.h"
#include "problem_timer.h"
#include "suite.h"

namespace mpbench {
namespace {

class BatchedBench {
 public:
  BatchedBench(const Options &options, const Machine &machine, Report &report);

  void measure(const BatchedShape &shape) {
    const Figures figures =
        timer_.time_bare(comparand(shape), pace_of(options_, machine_), /*during=*/{});
    report_.add(BatchedRow{.shape = shape, .figures = figures});
  }

 private:
  Comparand comparand(const BatchedShape &shape) const;
  std::string library_for(BatchForm form) const;
  std::unique_ptr<Peer> make_peer(const BatchedShape &shape) const;

  const Options &options_;
  const Machine &machine_;
  Report &report_;
  ProblemTimer timer_;
  std::optional<CublasLt> lt_;
  std::optional<Cublas> blas_;
};

BatchedBench::BatchedBench(const Options &options, const Machine &machine, Report &report)
    : options_(options), machine_(machine), report_(report), timer_(options, machine, report) {
  if (machine.on_host() || !options.peers.cublaslt) return;
  open_peer_library(lt_, "batches with strides and groups", report, machine.context(),
                    machine.stream());
  open_peer_library(blas_, "batches with pointers", report, machine.context(), machine.stream());
  if (blas_ && !blas_->has_groups())
    report.add_note("No reference for grouped GEMMs: this cuBLAS is older than 12.5.");
}

std::string BatchedBench::library_for(BatchForm form) const {
  if (form == BatchForm::kPointers) return blas_ ? name_of(*blas_) : "";
  if (!lt_) return "";
  const bool has_both = is_group(form) && blas_ && blas_->has_groups();
  return name_of(*lt_) + (!is_group(form) ? ""
                          : has_both      ? ", a loop; 2 is cublasGemmGroupedBatchedEx"
                                          : ", a loop");
}

std::unique_ptr<Peer> BatchedBench::make_peer(const BatchedShape &shape) const {
  const mp_gemm_desc_t desc = make_desc(shape, options_.dtype);
  if (shape.form == BatchForm::kStrided) return std::make_unique<CublasLtGemm>(*lt_, desc);
  if (shape.form == BatchForm::kPointers) return std::make_unique<CublasBatchedGemm>(*blas_, desc);
  const Cublas *const grouped = blas_ && blas_->has_groups() ? &*blas_ : nullptr;
  return std::make_unique<GroupPeer>(*lt_, grouped, shape, options_.dtype);
}

Comparand BatchedBench::comparand(const BatchedShape &shape) const {
  return {.name = shape.name(),
          .operation = [=, this] { return batched_operation(machine_, shape, options_.dtype); },
          .library = library_for(shape.form),
          .make_peer = [=, this](const Problem &) { return make_peer(shape); }};
}

}  // namespace

Suite batched_suite(const Options &options, const Machine &machine, Report &report) {
  return make_suite<BatchedBench>("batched", read_batched_shapes(options, machine.on_host()),
                                  options, machine, report);
}

}  // namespace mpbench
