#define MP_ENABLE_EXPERIMENTAL
#include "conv_problem.h"

#include "bench/timing/agreement.h"

namespace mpbench {

ConvProblem::ConvProblem(const Machine &machine, RandomPool &pool, const ConvShape &shape,
                         const mp_conv2d_desc_t &desc)
    : machine_(machine), shape_(shape), desc_(desc) {
  list_kernels();
  fill_sets(pool);
  reserve_workspace(desc_);
}

ConvProblem::Elems ConvProblem::elems() const {
  const auto x = static_cast<int64_t>(shape_.x_elems());
  const auto y = static_cast<int64_t>(shape_.y_elems());
  const auto filter = static_cast<int64_t>(shape_.filter_elems());
  switch (shape_.op) {
    case MP_CONV_FPROP:
      return {x, filter, y};
    case MP_CONV_DGRAD:
      return {y, filter, x};
    default:
      return {x, y, filter};
  }
}

void ConvProblem::list_kernels() {
  mp_status_t status = MP_SUCCESS;
  while (status == MP_SUCCESS) {
    const char *name = nullptr;
    status = mp_conv2d_kernel_name(machine_.context(), &desc_, shape_.op,
                                   static_cast<int32_t>(kernels_.size()), &name);
    if (status == MP_SUCCESS) kernels_.push_back(name);
  }
  if (status != MP_ERROR_NOT_FOUND) check(status);
}

double ConvProblem::predicted_us() const {
  mp_kernel_info_t info;
  MP_INIT_STRUCT(&info);
  check(mp_conv2d_kernel_info(machine_.context(), &desc_, shape_.op, 0, &info));
  return info.predicted_us;
}

void ConvProblem::fill_sets(RandomPool &pool) {
  const Elems count = elems();
  const int64_t first_bytes = aligned_bytes(count.first * dtype_bytes(desc_.dtype));
  const int64_t second_bytes = aligned_bytes(count.second * dtype_bytes(desc_.dtype));
  const int64_t out_bytes = aligned_bytes(count.out * dtype_bytes(desc_.dtype_out));
  const int64_t set_bytes = first_bytes + second_bytes + out_bytes;
  const int64_t sets = machine_.sets_beyond_l2(set_bytes);

  tensors_ = Buffer(machine_.context(), sets * set_bytes);
  for (int64_t i = 0; i < sets; ++i) {
    char *const base = tensors_.as<char>() + i * set_bytes;
    const Set set{
        .first = base, .second = base + first_bytes, .out = base + first_bytes + second_bytes};
    pool.fill(set.first, count.first);
    pool.fill(set.second, count.second);
    sets_.push_back(set);
  }
}

void ConvProblem::reserve_workspace(const mp_conv2d_desc_t &desc) {
  size_t bytes = 0;
  check(mp_conv2d_workspace_size(machine_.context(), &desc, shape_.op, &bytes));
  if (static_cast<int64_t>(bytes) > workspace_.bytes())
    workspace_ = Buffer(machine_.context(), static_cast<int64_t>(bytes));
}

const ConvProblem::Set &ConvProblem::next_set() {
  const Set &set = sets_[next_];
  next_ = (next_ + 1) % sets_.size();
  return set;
}

void ConvProblem::enqueue_own(const mp_conv2d_desc_t &desc, const Set &set) const {
  const auto pass = shape_.op == MP_CONV_FPROP   ? mp_conv2d_fprop
                    : shape_.op == MP_CONV_DGRAD ? mp_conv2d_dgrad
                                                 : mp_conv2d_wgrad;
  check(pass(machine_.context(), &desc, set.first, set.second, set.out, nullptr, workspace_.data(),
             static_cast<size_t>(workspace_.bytes()), machine_.stream()));
}

Work ConvProblem::own(const char *kernel) {
  mp_conv2d_desc_t desc = desc_;
  desc.kernel = kernel;
  reserve_workspace(desc);
  return [this, desc] { enqueue_own(desc, next_set()); };
}

Work ConvProblem::peer(const CudnnConv &conv) {
  return [this, &conv] {
    const Set &set = next_set();
    conv.enqueue(set.first, set.second, set.out);
  };
}

Work ConvProblem::peer(const CudnnGraphConv &conv, size_t engine) {
  return [this, &conv, engine] {
    const Set &set = next_set();
    conv.enqueue(set.first, set.second, set.out, engine);
  };
}

std::unique_ptr<CudnnConv> ConvProblem::make_peer(const Cudnn &library, PeerLayout layout,
                                                  PeerMath math) const {
  const Set &set = sets_[0];
  return std::make_unique<CudnnConv>(library, desc_, shape_.op, layout, set.first, set.second,
                                     set.out, math);
}

bool ConvProblem::agrees_with_call(const PeerCall &call) {
  const Set &set = sets_[0];
  const auto result_of = [&](const Work &work) {
    return first_results(machine_, work, set.out, elems().out, desc_.dtype_out);
  };
  return agree(result_of([&] { enqueue_own(desc_, set); }), result_of([&] { call(set); }));
}

bool ConvProblem::agrees_with(const CudnnConv &conv) {
  return agrees_with_call([&](const Set &set) { conv.enqueue(set.first, set.second, set.out); });
}

bool ConvProblem::agrees_with(const CudnnGraphConv &conv, size_t engine) {
  return agrees_with_call(
      [&](const Set &set) { conv.enqueue(set.first, set.second, set.out, engine); });
}

}  // namespace mpbench
