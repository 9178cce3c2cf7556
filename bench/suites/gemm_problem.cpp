#define MP_ENABLE_EXPERIMENTAL
#include "gemm_problem.h"

#include "bench/timing/agreement.h"

namespace mpbench {

GemmProblem::GemmProblem(const Machine &machine, RandomPool &pool, const mp_gemm_desc_t &desc,
                         int64_t calls)
    : machine_(machine), desc_(desc), calls_(calls) {
  list_kernels();
  fill_sets(pool);
  reserve_workspace(desc_);
}

void GemmProblem::list_kernels() {
  mp_status_t status = MP_SUCCESS;
  while (status == MP_SUCCESS) {
    const char *name = nullptr;
    status = mp_gemm_kernel_name(machine_.context(), &desc_, static_cast<int32_t>(kernels_.size()),
                                 &name);
    if (status == MP_SUCCESS) kernels_.push_back(name);
  }
  if (status != MP_ERROR_NOT_FOUND) check(status);
}

double GemmProblem::predicted_us() const {
  mp_kernel_info_t info;
  MP_INIT_STRUCT(&info);
  check(mp_gemm_kernel_info(machine_.context(), &desc_, 0, &info));
  return static_cast<double>(calls_) * info.predicted_us;
}

int64_t GemmProblem::bytes_of_a() const {
  return aligned_bytes(desc_.m * desc_.k * dtype_bytes(desc_.dtype_ab));
}

int64_t GemmProblem::bytes_of_d() const {
  return aligned_bytes(desc_.m * desc_.n * dtype_bytes(desc_.dtype_cd));
}

void GemmProblem::fill_sets(RandomPool &pool) {
  const int64_t a_bytes = calls_ * bytes_of_a();
  const int64_t b_bytes = aligned_bytes(desc_.k * desc_.n * dtype_bytes(desc_.dtype_ab));
  const int64_t d_bytes = calls_ * bytes_of_d();
  const int64_t set_bytes = a_bytes + b_bytes + d_bytes;
  const int64_t count = machine_.sets_beyond_l2(set_bytes);

  operands_ = Buffer(machine_.context(), count * set_bytes);
  for (int64_t i = 0; i < count; ++i) {
    char *const base = operands_.as<char>() + i * set_bytes;
    const Set set{.a = base, .b = base + a_bytes, .d = base + a_bytes + b_bytes};
    pool.fill(set.a, a_bytes / dtype_bytes(desc_.dtype_ab));
    pool.fill(set.b, desc_.k * desc_.n);
    sets_.push_back(set);
  }
}

void GemmProblem::reserve_workspace(const mp_gemm_desc_t &desc) {
  size_t bytes = 0;
  check(mp_gemm_workspace_size(machine_.context(), &desc, &bytes));
  if (static_cast<int64_t>(bytes) > workspace_.bytes())
    workspace_ = Buffer(machine_.context(), static_cast<int64_t>(bytes));
}

const GemmProblem::Set &GemmProblem::next_set() {
  const Set &set = sets_[next_];
  next_ = (next_ + 1) % sets_.size();
  return set;
}

template <typename Multiply>
void GemmProblem::for_each_product(const Set &set, Multiply multiply) const {
  for (int64_t call = 0; call < calls_; ++call)
    multiply(static_cast<const char *>(set.a) + call * bytes_of_a(), set.b,
             static_cast<char *>(set.d) + call * bytes_of_d());
}

void GemmProblem::enqueue_own(const mp_gemm_desc_t &desc, const Set &set) const {
  for_each_product(set, [&](const void *a, const void *b, void *d) {
    check(mp_gemm(machine_.context(), &desc, a, b, d, d, nullptr, workspace_.data(),
                  static_cast<size_t>(workspace_.bytes()), machine_.stream()));
  });
}

void GemmProblem::enqueue_peer(const CublasLtGemm &gemm, size_t choice, const Set &set) const {
  for_each_product(set, [&](const void *a, const void *b, void *d) {
    gemm.enqueue(a, b, d, machine_.stream(), choice);
  });
}

Work GemmProblem::own(const char *kernel) {
  mp_gemm_desc_t desc = desc_;
  desc.kernel = kernel;
  reserve_workspace(desc);
  return [this, desc] { enqueue_own(desc, next_set()); };
}

Work GemmProblem::peer(const CublasLtGemm &gemm, size_t choice) {
  return [this, &gemm, choice] { enqueue_peer(gemm, choice, next_set()); };
}

bool GemmProblem::agrees_with(const CublasLtGemm &gemm, size_t choice) {
  const Set &set = sets_[0];
  const auto result_of = [&](const Work &work) {
    return first_results(machine_, work, set.d, calls_ * desc_.m * desc_.n, desc_.dtype_cd);
  };
  return agree(result_of([&] { enqueue_own(desc_, set); }),
               result_of([&] { enqueue_peer(gemm, choice, set); }));
}

}  // namespace mpbench
