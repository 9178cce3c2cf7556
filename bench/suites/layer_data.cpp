#include "layer_data.h"

#include <random>

namespace mpbench {

LayerData::LayerData(const Machine &machine, const LayerShape &shape, mp_dtype_t dtype)
    : machine_(machine),
      layer_(make_layer(machine, shape, dtype)),
      is_forward_(shape.is_forward),
      workspace_(machine.context(), layer_.workspace_bytes) {
  RandomPool low(machine, dtype), single(machine, MP_FP32);
  const int64_t count = machine.sets_beyond_l2(static_cast<int64_t>(shape.min_bytes(dtype)));
  for (int64_t i = 0; i < count; ++i) sets_.push_back(make_set(low, single));
  if (!is_forward_)
    for (const std::vector<void *> &set : sets_) layer_.enqueue(true, set, workspace_);
  machine.synchronize();
}

std::vector<void *> LayerData::make_set(RandomPool &low, RandomPool &single) {
  std::vector<void *> set;
  for (const LayerArray &array : layer_.arrays) {
    const int64_t elems = array.is_backward && is_forward_ ? 0 : array.elems;
    memory_.push_back(array.values.empty() ? make_buffer(machine_.context(), elems, array.dtype)
                                           : machine_.upload(array.values));
    set.push_back(memory_.back().data());
    if (array.is_input && elems > 0)
      (array.dtype == MP_FP32 ? single : low).fill(set.back(), elems);
  }
  return set;
}

const std::vector<void *> &LayerData::next_set() {
  const std::vector<void *> &set = sets_[next_];
  next_ = (next_ + 1) % sets_.size();
  return set;
}

Work LayerData::own() {
  return [this] { layer_.enqueue(is_forward_, next_set(), workspace_); };
}

Work LayerData::product() {
  return [this] { layer_.multiply(next_set(), workspace_); };
}

std::vector<std::pair<const void *, int64_t>> LayerData::results_of_first_set() const {
  std::vector<std::pair<const void *, int64_t>> results;
  for (size_t i = 0; i < layer_.arrays.size(); ++i) {
    const LayerArray &array = layer_.arrays[i];
    const bool is_written = !array.is_input && array.values.empty() && array.elems > 0;
    if (is_written && array.is_backward != is_forward_)
      results.emplace_back(first_set()[i], array.elems);
  }
  return results;
}

std::string LayerData::difference_to(const Work &peer_of_first_set) const {
  const auto &[array, tolerance] = *layer_.compared;
  const std::vector<Result> results = {{.data = first_set()[array],
                                        .count = layer_.arrays[array].elems,
                                        .dtype = layer_.arrays[array].dtype,
                                        .is_added_to = false}};
  const Values own = values_of(
      machine_, [this] { layer_.enqueue(is_forward_, first_set(), workspace_); }, results);
  return difference(machine_, own, peer_of_first_set, results, tolerance);
}

std::vector<int32_t> random_labels(int64_t rows, int64_t classes) {
  std::mt19937 bits(1);
  std::vector<int32_t> labels(static_cast<size_t>(rows));
  for (int32_t &label : labels) label = static_cast<int32_t>(bits() % classes);
  return labels;
}

}  // namespace mpbench
