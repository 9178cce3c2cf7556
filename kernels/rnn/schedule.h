// Shared code of the schedules of all passes (forward.cu, backward_data.cu, backward_weights.cu):
// addresses, and products with the kernels of the plan.  It runs on the CPU and enqueues launches.
#pragma once

#include "kernels/gemm/gemm_args.h"
#include "kernels/rnn/rnn_problem.h"
#include "kernels/rnn/step.h"
#include "kernels/simt/device.h"

namespace mp::MP_TARGET {

inline void *advanced(const void *base, int64_t bytes) {
  if (base == nullptr) return nullptr;
  return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(base) +
                                  static_cast<uintptr_t>(bytes));
}

/// Tensor of rows: row n of step t is at base + t * step + n * row, in elements.
struct StepTensor {
  const void *base;
  int64_t step, row;
};

class RnnSchedule {
 public:
  RnnSchedule(const Device &device, const RnnProblem &problem, mp_stream_t stream)
      : device(device), problem(problem), stream(stream) {}

  const Device &device;
  const RnnProblem &problem;
  const RnnShape &s = problem.shape;
  const mp_rnn_tensors_t &t = problem.tensors;
  const RnnWorkspace &layout = problem.layout;
  const mp_stream_t stream;

  // ---- steps
  bool is_packed() const { return !problem.step_rows.empty(); }
  int64_t first_row(int32_t step) const {
    return is_packed() ? problem.step_rows[static_cast<size_t>(step)] : int64_t{step} * s.batch;
  }
  int64_t count(int32_t step) const { return first_row(step + 1) - first_row(step); }
  int64_t all_rows() const { return first_row(s.timesteps); }
  /// Returns the i-th step in the order of the direction.
  int32_t step_of(int64_t direction, int32_t i) const {
    return direction == 0 ? i : s.timesteps - 1 - i;
  }
  /// Returns the step before `step` in the order of the direction; -1 = none.
  int32_t step_before(int64_t direction, int32_t step) const {
    const int32_t before = direction == 0 ? step - 1 : step + 1;
    return before < s.timesteps ? before : -1;
  }
  StepOrder order(int64_t direction) const {
    return {t.lengths, s.timesteps, static_cast<int32_t>(direction)};
  }

  // ---- memory
  void *region(size_t offset) const { return static_cast<std::byte *>(problem.workspace) + offset; }
  float *floats(size_t offset, int64_t index) const {
    return static_cast<float *>(region(offset)) + index;
  }
  void *elements(const void *base, int64_t index) const {
    return advanced(base, index * s.elem_bytes());
  }
  /// Elements per layer and direction of a tensor [layer][direction][batch][hidden_size].
  int64_t state_elements() const { return int64_t{s.batch} * s.hidden_size; }
  template <class T>
  T *state(const T *base, int64_t layer, int64_t direction) const {
    const int64_t elem_bytes = std::is_void_v<T> ? s.elem_bytes() : int64_t{sizeof(float)};
    const int64_t index = (layer * s.directions + direction) * state_elements();
    return static_cast<T *>(advanced(base, index * elem_bytes));
  }
  const mp_rnn_weights_t &weights(int64_t layer, int64_t direction) const {
    return t.weights[layer * s.directions + direction];
  }

  /// Returns a tensor of the caller; packed tensors have no stride between steps.
  StepTensor outside(const void *base, int64_t step, int64_t row) const {
    return {base, is_packed() ? 0 : step, row};
  }
  /// Returns a tensor inside the workspace or the reserve: outputs of a layer, or their gradients.
  StepTensor inside(const void *base) const { return {base, s.batch * s.outputs(), s.outputs()}; }
  RowMatrix rows_of(const StepTensor &tensor, int32_t step, int64_t column) const {
    const int64_t row = is_packed() ? first_row(step) * tensor.row : step * tensor.step;
    return {elements(tensor.base, row + column), tensor.row};
  }

  // ---- the reserve
  /// Returns the rows of a step in a part of the reserve, from `column` on.
  RowMatrix reserved(const RnnReserve::Part &part, int64_t layer, int32_t step,
                     int64_t column) const {
    if (part.layer_bytes == 0) return {};
    const int64_t bytes = (first_row(step) * part.columns + column) * part.elem_bytes;
    std::byte *const begin = static_cast<std::byte *>(t.reserve) + part.offset;
    return {begin + layer * part.layer_bytes + bytes, part.columns};
  }
  void *slots(int64_t layer) const { return reserved(problem.reserve.slots, layer, 0, 0).base; }
  void *saved_h(int64_t layer) const { return reserved(problem.reserve.h, layer, 0, 0).base; }
  RowMatrix slot_rows(int64_t layer, int64_t direction, int32_t step) const {
    return reserved(problem.reserve.slots, layer, step, slot_column(s, direction, 0));
  }
  RowMatrix saved_h_rows(int64_t layer, int64_t direction, int32_t step) const {
    return reserved(problem.reserve.h, layer, step, direction * s.hidden_size);
  }
  RowMatrix saved_c_rows(int64_t layer, int64_t direction, int32_t step) const {
    return reserved(problem.reserve.c, layer, step, direction * s.hidden_size);
  }
  StepCommon common(int64_t direction, int32_t step) const {
    return {.cell = s.cell,
            .flags = s.flags,
            .dtype = s.dtype,
            .hidden = s.hidden_size,
            .order = order(direction),
            .t = step,
            .count = count(step),
            .slots = {},
            .last_slot = slot_column(s, direction, s.gates) - slot_column(s, direction, 0),
            .clip = s.clip > 0.0f ? s.clip : kNaN};
  }

  /// Returns the dropout of the inputs of layer `layer`.
  Dropout dropout(int64_t layer) const {
    if (!s.drops(layer) || layer >= s.layers) return {};
    return {.keep_factor = keep_factor_of(s.dropout),
            .threshold = drop_threshold(s.dropout),
            .layer = static_cast<uint32_t>(layer),
            .seed = s.dropout_seed,
            .offset = t.dropout_offset,
            .batch = s.batch,
            .directions = s.directions,
            .quads_per_row = ceil_div<int64_t>(s.hidden_size, kQuad)};
  }

  // ---- copies
  /// Copies `from`, or zeros if it is NULL.
  void copy_or_clear(void *to, const void *from, int64_t bytes) const {
    if (bytes == 0 || to == from) return;
    if (from != nullptr)
      copy(device, to, from, static_cast<size_t>(bytes), stream);
    else
      fill(device, to, 0, static_cast<size_t>(bytes), stream);
  }
  /// Returns the arguments of a copy of `steps` steps from `first` on to the workspace.
  GatherRows gather_args(int64_t direction, int32_t first, int32_t steps, int64_t columns,
                         int64_t parts) const {
    GatherRows args{};
    args.dtype = s.dtype;
    args.order = order(direction);
    args.range = {first, steps, s.batch, parts};
    args.columns = columns;
    args.to = region(layout.inputs);
    return args;
  }
  /// Gathers the range in one launch, or in one per step if packed.
  void gather(GatherRows args, const StepTensor &tensor, int64_t column) const {
    const StepRange all = args.range;
    args.from_step = tensor.step;
    args.from_row = tensor.row;
    const int64_t row_bytes = all.parts * args.columns * s.elem_bytes();
    for (int32_t i = 0; i < all.steps; i++) {
      const int32_t step = all.t + i;
      const int32_t from = args.before ? step_before(args.order.direction, step) : step;
      args.range = {step, is_packed() ? 1 : all.steps, count(step), all.parts};
      args.count_before = is_packed() && from < 0 ? 0 : count(is_packed() ? from : step);
      // The kernel checks for the first step, whose previous rows lie outside the tensor.
      const int64_t shift = args.order.direction == 0 ? -tensor.step : tensor.step;
      args.from = is_packed()
                      ? (from < 0 ? nullptr : rows_of(tensor, from, column).base)
                      : elements(rows_of(tensor, step, column).base, args.before ? shift : 0);
      launch_gather_rows(device, args, stream);
      if (!is_packed()) return;
      args.to = advanced(args.to, args.range.count * row_bytes);
    }
  }
};

/// Product of a layer that is run repeatedly with different pointers.
class RnnMultiplier {
 public:
  RnnMultiplier(const RnnSchedule &schedule, RnnProduct kind, int64_t layer)
      : problem(rnn_product(schedule.s, kind, layer)),
        schedule_(schedule),
        planned_(schedule.problem.plan->plans[layer > 0][static_cast<int>(kind)]) {}

  GemmProblem problem;

  void set_a(const RowMatrix &rows) {
    problem.a.base = rows.base;
    problem.a.ld = rows.ld;
  }
  void set_b(const void *base) { problem.b.base = base; }
  void set_d(const RowMatrix &rows) {
    problem.out.d.base = rows.base;
    problem.out.d.ld = rows.ld;
    problem.out.c = problem.out.d;
  }
  /// Sets A and D to the rows of `steps` steps from `first` on: one matrix, or a batch if the steps
  /// of A or D are not contiguous.
  void set_rows(const StepTensor &a, const StepTensor &d, int32_t first, int32_t steps) {
    const RnnSchedule &f = schedule_;
    int64_t count = f.s.batch;
    if (f.is_packed()) {
      count = f.first_row(first + steps) - f.first_row(first);
      steps = 1;
    }
    const auto follow = [&](const StepTensor &x) { return steps == 1 || x.step == count * x.row; };
    Output &out = problem.out;
    problem.a = {a.base, nullptr, a.row, 0};
    out.d = {d.base, nullptr, d.row, 0};
    out.m = steps * count;
    out.batch_count = 1;
    if (count == 1 && steps > 1) {
      problem.a.ld = a.step;
      out.d.ld = d.step;
    } else if (!follow(a) || !follow(d)) {
      // The larger extent becomes m, to fill tiles.
      const bool by_step = count >= steps;
      out.m = by_step ? count : steps;
      out.batch_count = by_step ? steps : count;
      problem.a = {a.base, nullptr, by_step ? a.row : a.step, by_step ? a.step : a.row};
      out.d = {d.base, nullptr, by_step ? d.row : d.step, by_step ? d.step : d.row};
    }
    out.c = out.d;
  }

  void run() {
    if (problem.out.m == 0 || problem.out.batch_count == 0) return;
    const GemmShape shape = shape_of(problem);
    const RnnPlan &rnn = *schedule_.problem.plan;
    if (shape != shape_) {
      plan_ = adapt_plan(shape, planned_, {rnn.device, *rnn.tuning, rnn.gemm_bytes});
      shape_ = shape;
    }
    gemm(schedule_.device, problem, plan_,
         {schedule_.region(schedule_.layout.gemm), rnn.gemm_bytes}, schedule_.stream);
  }

 private:
  const RnnSchedule &schedule_;
  const GemmPlan &planned_;
  GemmPlan plan_{};
  GemmShape shape_{};  ///< shape of plan_
};

}  // namespace mp::MP_TARGET
