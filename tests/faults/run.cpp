#include "run.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "progress.h"
#include "tests/support/numeric.h"

namespace mptest::faults {

namespace {

constexpr int kCode = 7;  // error code of a failing communicator

int32_t device_of_environment() {
  const char *const name = std::getenv("MP_TEST_DEVICE");
  const bool is_cuda = name != nullptr && std::strcmp(name, "cuda") == 0;
  return is_cuda ? MP_DEVICE_CURRENT : MP_DEVICE_HOST;
}

}  // namespace

Failure failure_of(Source source) {
  switch (source) {
    case Source::kAllocator:
      return {MP_ERROR_OUT_OF_MEMORY, "allocator->alloc returned NULL for "};
    case Source::kComm:
      return {MP_ERROR_COMM, " returned 7"};
    default:
      return {MP_ERROR_OUT_OF_MEMORY, "out of host memory"};
  }
}

// ---------------------------------------------------------------------------- calls

Run::Run(bool has_allocator, std::string &findings)
    : source_(planned_fault().source), persists_(planned_fault().persists), findings_(findings) {
  mp_allocator_t allocator;
  MP_INIT_STRUCT(&allocator);
  allocator.alloc = allocate;
  allocator.free = release;
  allocator.user = this;
  mp_context_config_t config = mp_context_config_default();
  config.device = device_of_environment();
  if (has_allocator) config.allocator = &allocator;
  FAULTY_CREATE(*this, mp_context_create, context_, &config);
}

void Run::finish() {
  for (void *memory : memory_) destroy("mp_free", [&] { mp_free(context_, memory); });
  FAULTY_DESTROY(*this, mp_context_destroy, context_);
  if (!blocks_.empty()) note("has left " + std::to_string(blocks_.size()) + " blocks");
}

void Run::begin(const char *function) {
  function_ = function;
  progress().enter(function);
  had_struck_ = has_struck();
  if (!is_spared_) arm();
}

void Run::end() {
  disarm();
  if (group_depth_ == 0) return;
  note("does not end the group of its communicator");
  group_depth_ = 0;
}

void Run::note(const std::string &what) {
  findings_ += std::string("  ") + function_ + " " + what + "\n";
}

void Run::stop(const std::string &what) {
  note(what);
  throw Stuck();
}

void Run::check_failure(mp_status_t status) {
  const std::string sentence = mp_last_error();
  const std::string said = std::string(mp_status_string(status)) + ": " + sentence;
  if (had_struck_ || !has_struck()) stop("failed without a fault: " + said);
  // Message of the library if it cannot allocate another one.
  constexpr const char *kWordsWithoutMemory =
      "a call failed; out of memory while storing its message";
  const Failure wanted = failure_of(source_);
  if (status == wanted.status && persists_ && sentence == kWordsWithoutMemory) return;
  const bool is_named = sentence.starts_with(std::string(function_) + ": ");
  if (status != wanted.status || !is_named || sentence.find(wanted.words) == std::string::npos)
    note("said " + said);
}

// ---------------------------------------------------------------------------- memory

void Run::upload(void *device, const void *host, size_t bytes) {
  FAULTY_CALL(*this, mp_memcpy, context_, device, host, bytes, nullptr);
  FAULTY_CALL(*this, mp_stream_sync, context_, nullptr);
}

void *Run::bytes(size_t count) {
  void *memory = nullptr;
  create("mp_malloc", memory, [&] { return mp_malloc(context_, &memory, count); });
  memory_.push_back(memory);
  FAULTY_CALL(*this, mp_memset, context_, memory, 0, count, nullptr);
  return memory;
}

void *Run::tensor(mp_dtype_t dtype, int64_t count, int seed) {
  const size_t size = mp_dtype_size(dtype);
  std::vector<uint8_t> image(static_cast<size_t>(count) * size);
  for (int64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>((i * 7 + seed * 3) % 9 - 4) / 4.0;
    const uint32_t bits = encode(dtype, value);  // little-endian: the low bytes come first
    std::memcpy(image.data() + static_cast<size_t>(i) * size, &bits, size);
  }
  void *const memory = bytes(image.size());
  upload(memory, image.data(), image.size());
  return memory;
}

int32_t *Run::integers(const std::vector<int32_t> &values) {
  void *const memory = bytes(values.size() * sizeof(int32_t));
  upload(memory, values.data(), values.size() * sizeof(int32_t));
  return static_cast<int32_t *>(memory);
}

void Run::record(const void *host, size_t bytes) {
  const auto *first = static_cast<const uint8_t *>(host);
  results_.insert(results_.end(), first, first + bytes);
}

void Run::record_device(const void *device, size_t bytes) {
  std::vector<uint8_t> image(bytes);
  FAULTY_CALL(*this, mp_memcpy, context_, image.data(), device, bytes, nullptr);
  FAULTY_CALL(*this, mp_stream_sync, context_, nullptr);
  record(image.data(), bytes);
}

// ---------------------------------------------------------------------------- callbacks

void *Run::allocate(size_t bytes, void *user) {
  if (is_refused(Source::kAllocator)) return nullptr;
  const Paused paused;
  void *const block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  static_cast<Run *>(user)->blocks_.emplace_back(block, bytes);
  return block;
}

void Run::release(void *block, size_t bytes, void *user) {
  const Paused paused;
  Run &run = *static_cast<Run *>(user);
  const auto found = std::ranges::find(run.blocks_, std::pair(block, bytes));
  if (found == run.blocks_.end()) return run.note("frees an unknown block, or with a wrong size");
  run.blocks_.erase(found);
  std::free(block);
}

mp_comm_t Run::comm() {
  mp_comm_t table = mp_comm_default();
  table.world_size = 2;
  table.all_reduce = all_reduce;
  table.group_begin = group_begin;
  table.group_end = group_end;
  table.user = this;
  return table;
}

int Run::all_reduce(const void *, void *, size_t, mp_dtype_t, mp_reduce_op_t, mp_stream_t, void *) {
  return is_refused(Source::kComm) ? kCode : 0;
}

int Run::group_begin(void *user) {
  if (is_refused(Source::kComm)) return kCode;
  ++static_cast<Run *>(user)->group_depth_;
  return 0;
}

/// A group has ended even if group_end reports a failure.
int Run::group_end(void *user) {
  --static_cast<Run *>(user)->group_depth_;
  return is_refused(Source::kComm) ? kCode : 0;
}

}  // namespace mptest::faults
