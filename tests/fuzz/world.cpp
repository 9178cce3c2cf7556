#include "tests/fuzz/world.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace fuzz {

namespace {

constexpr size_t kAlignment = 256;
alignas(kAlignment) char arena[2 * kMaxBytes];

// clang-format off
constexpr const char *kTexts[] = {
    "", "Linear", "Conv2D", "BiasAdd", "Relu", "Gelu", "Sigmoid", "Add", "Mul", "MaxPool",
    "AvgPool", "BatchNorm", "Embedding", "Dropout", "Reshape", "LSTM", "GRU", "RNN", "SoftmaxXent",
    "Silu", "MSE", "L1", "BCEWithLogits", "erf", "ceil_mode",
    "LayerNorm", "RMSNorm", "Attention", "RotaryEmbedding", "Swiglu", "Geglu", "LogSoftmax",
    "heads", "kv_heads", "causal", "window_left", "window_right", "scale", "rotated_heads",
    "rotary_dim", "base", "interleaved", "zero_centered",
    "Sub", "Div", "LeakyRelu", "Clip", "slope", "min", "max", "Concat", "Split", "Slice", "Pad", "Transpose", "Sum", "Mean", "axis", "axes", "extents",
    "begin", "end", "before", "after", "permutation", "keep_dims",
    "transposed", "stride", "pad", "dilation", "groups", "window", "include_pad", "epsilon",
    "momentum", "p", "seed", "extent", "relu", "weight", "label_smoothing", "ignore_label",
    "MatMul", "Softmax", "Exp", "Cast", "Identity", "linear", "binary_cross_entropy", "a/b", "a/*",
    "[a-z]*", "[", "*", "dynamic", "backoff", "lognormal", "simt_64x64x16", "wmma_64x64x32_s2",
    "wgmma_128x128x64_s4", "gemv", "direct", "%s%n", "\xff\xfe", "x"};
// clang-format on

/// Prints statistics at exit: calls, and functions that never succeeded.
class Statistics {
 public:
  ~Statistics() {
    int64_t calls = 0, succeeded = 0;
    for (const auto &[function, of_it] : functions_) {
      calls += of_it.calls;
      succeeded += of_it.succeeded;
      if (of_it.succeeded == 0)
        std::fprintf(stderr, "fuzz: none of %lld: %s\n", static_cast<long long>(of_it.calls),
                     of_it.why.c_str());
    }
    std::fprintf(stderr, "fuzz: %lld calls of %zu functions, %lld succeeded\n",
                 static_cast<long long>(calls), functions_.size(),
                 static_cast<long long>(succeeded));
  }
  void add(const std::string &function, mp_status_t status) {
    Function &of_it = functions_[function];
    ++of_it.calls;
    of_it.succeeded += status == MP_SUCCESS;
    if (status != MP_SUCCESS) of_it.why = mp_last_error();
  }

 private:
  struct Function {
    int64_t calls = 0, succeeded = 0;
    std::string why;  ///< message of the last failure
  };
  std::map<std::string, Function> functions_;
};
Statistics statistics;

}  // namespace

bool has_injected(const char *mistake) {
  static const char *const injected = std::getenv("FUZZ_INJECT");
  return injected != nullptr && std::strcmp(injected, mistake) == 0;
}

World::World(const uint8_t *bytes, size_t size) : bytes_(bytes, size) {}

World::~World() {
  while (!objects_.empty()) {
    const auto unneeded = std::find_if(objects_.begin(), objects_.end(), [&](const Object &object) {
      return object.destroy && !is_needed(object);
    });
    if (unneeded == objects_.end()) found("objects", "they need each other in a circle");
    destroy(*unneeded);
  }
  if (!allocated_.empty()) found("mp_allocator", "did not get all of its memory back");
}

void World::begin_call() {
  is_careful_ = once_in(2);
  favourite_ = int64_t{1} << index_below(7) >> 1;
  elements_ = once_in(16) ? kMaxElements : index_below(6);
  room_ = once_in(2) ? 65536 : index_below(300);
  untouched_.clear();
  used_.clear();
}

void World::end_call(const char *function, mp_status_t status) {
  const std::string name = mp_status_string(status);
  if (name == "?" || status == MP_ERROR_INTERNAL)
    found(function, (name + ": " + mp_last_error()).c_str());
  statistics.add(function, status);
  if (status == MP_SUCCESS) return;
  const std::string why = has_injected("sentence") ? "" : mp_last_error();
  if (why.rfind(std::string(function) + ": ", 0) != 0) found(function, why.c_str());
  if (status >= 40) return;
  for (const Untouched &output : untouched_)
    if (std::memcmp(output.memory, output.before.data(), output.before.size()) != 0)
      found(function, "an output was written by a call that failed");
}

// ---------------------------------------------------------------------------- numbers

int64_t World::integer() {
  constexpr int64_t kEdges[] = {-1,
                                -2,
                                16,
                                64,
                                127,
                                128,
                                255,
                                4096,
                                65536,
                                INT32_MAX,
                                INT32_MIN,
                                int64_t{1} << 31,
                                int64_t{1} << 32,
                                int64_t{1} << 40,
                                int64_t{1} << 62,
                                INT64_MAX,
                                INT64_MIN};
  if (is_careful_ && !once_in(8)) return favourite_;
  if (!once_in(4)) return bytes_.ConsumeIntegralInRange<int64_t>(0, 15);
  return once_in(4) ? bytes_.ConsumeIntegral<int64_t>() : bytes_.PickValueInArray(kEdges);
}

double World::real() {
  constexpr double kEdges[] = {0.0,     -0.0, 1.0,   0.5,  2.0,   1e-3,     0.1,       0.9, 0.999,
                               65536.0, -1.0, 1e-45, 1e38, 1e300, INFINITY, -INFINITY, NAN};
  return once_in(16) ? bytes_.ConsumeFloatingPoint<double>() : bytes_.PickValueInArray(kEdges);
}

int64_t World::count(bool is_signed) {
  if (is_signed && once_in(16)) return -1;
  return once_in(4) ? index_below(elements_ + 1) : elements_;
}

size_t World::number_of_bytes() {
  return once_in(4) ? index_below(256) : once_in(2) ? kMaxBytes : 65536;
}

size_t *World::room() {
  return plain<size_t>(room_);
}

size_t World::size_of_struct(size_t usual) {
  if (!once_in(16)) return usual;
  return once_in(2) ? usual + 8 * index_below(64) : index_below(static_cast<uint32_t>(usual));
}

// ---------------------------------------------------------------------------- memory

const char *World::text() {
  if (once_in(16)) return nullptr;
  if (!once_in(8)) return bytes_.PickValueInArray(kTexts);
  const std::string any = bytes_.ConsumeRandomLengthString(64);
  char *const copy = static_cast<char *>(keep(any.size() + 1));
  std::memcpy(copy, any.c_str(), any.size() + 1);
  return copy;
}

char *World::written_text() {
  return once_in(4) ? nullptr : static_cast<char *>(keep(room_));
}

int32_t *World::ascending() {
  int32_t *const ends =
      array<int32_t>([&] { return static_cast<int32_t>(index_below(elements_ + 1)); });
  if (ends == nullptr || once_in(16)) return ends;
  std::sort(ends, ends + elements_ + 1);
  ends[0] = 0;
  return ends;
}

void *World::device(size_t alignment) {
  if (once_in(8)) return nullptr;
  const size_t step = once_in(8) ? alignment : kAlignment;
  return arena + step * index_below(static_cast<uint32_t>(kMaxBytes / step));
}

void *World::good_device(uint32_t place) {
  return arena + place * kAlignment;
}

void *World::keep(size_t bytes) {
  return kept_.emplace_back(std::calloc(bytes, 1), std::free).get();
}

void World::is_output(const void *memory, size_t bytes) {
  if (memory == nullptr) return;
  const char *const begin = static_cast<const char *>(memory);
  untouched_.push_back({memory, {begin, begin + bytes}});
  if (has_injected("output")) ++untouched_.back().before[0];
}

// ---------------------------------------------------------------------------- objects

void *World::pick(const void *kind) {
  std::vector<void *> living;
  for (const Object &object : objects_)
    if (object.kind == kind) living.push_back(object.handle);
  if (living.empty() || once_in(16)) return nullptr;
  return used_.emplace_back(living[index_below(static_cast<uint32_t>(living.size()))]);
}

void World::add(const void *kind, void *handle, std::function<void()> destroy) {
  const auto is_same = [&](const Object &object) { return object.handle == handle; };
  if (handle == nullptr || std::any_of(objects_.begin(), objects_.end(), is_same)) return;
  objects_.push_back({kind, handle, std::move(destroy), used_});
}

void World::first_needs_others() {
  for (Object &object : objects_)
    if (!used_.empty() && object.handle == used_[0])
      object.needs.insert(object.needs.end(), used_.begin() + 1, used_.end());
}

/// A borrowed object is destroyed with its owner, unless another object needs the owner.
bool World::is_needed(const Object &object) const {
  return std::any_of(objects_.begin(), objects_.end(), [&](const Object &other) {
    const auto &needs = other.needs;
    const bool needs_it = std::find(needs.begin(), needs.end(), object.handle) != needs.end();
    return needs_it && (other.destroy || is_needed(other));
  });
}

void World::destroy(const Object &object) {
  void *const handle = object.handle;
  object.destroy();
  std::erase_if(objects_, [&](const Object &other) {
    const auto &needs = other.needs;
    return other.handle == handle || std::find(needs.begin(), needs.end(), handle) != needs.end();
  });
}

bool World::destroy_one(const void *kind) {
  const auto unneeded = std::find_if(objects_.begin(), objects_.end(), [&](const Object &object) {
    return object.kind == kind && object.destroy && !is_needed(object);
  });
  if (unneeded == objects_.end()) return false;
  destroy(*unneeded);
  return true;
}

// ---------------------------------------------------------------------------- callbacks

void *World::allocate(size_t bytes, void *user) {
  World &world = *static_cast<World *>(user);
  if (bytes > kMaxBytes || (world.memory_may_run_out_ && world.once_in(16))) return nullptr;
  void *block = nullptr;
  if (posix_memalign(&block, kAlignment, bytes) != 0) return nullptr;
  world.allocated_[block] = bytes + has_injected("release");
  return block;
}

void World::release(void *block, size_t bytes, void *user) {
  auto &allocated = static_cast<World *>(user)->allocated_;
  const auto it = allocated.find(block);
  if (it == allocated.end() || it->second != bytes)
    found("mp_allocator", "got back what it did not give");
  allocated.erase(it);
  std::free(block);
}

int World::all_reduce(const void *, void *, size_t, mp_dtype_t, mp_reduce_op_t, mp_stream_t,
                      void *user) {
  return group(user);
}

int World::group(void *user) {
  return static_cast<World *>(user)->once_in(8) ? 7 : 0;
}

}  // namespace fuzz
