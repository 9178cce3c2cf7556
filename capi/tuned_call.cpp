// See tuned_call.h.
#include "capi/tuned_call.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/cache.h"
#include "base/environment.h"
#include "base/files.h"
#include "base/lifetime.h"
#include "capi/overlap.h"
#include "kernels/gemm/plan_text.h"

using namespace mp;

// ---------------------------------------------------------------------------- MP_GEMM_TUNING

namespace {

constexpr size_t kMaxBytes = 1 << 20;  // 100 times the size of a complete table

/// File descriptor, closed by the destructor.
struct File {
  int number;
  ~File() {
    if (number >= 0) close(number);
  }
};

/// Reads a file.  Not a std::ifstream, which reports end of file if it cannot allocate its buffer.
/// @return false on failure, with the reason in `why`
bool read_file(const char *path, std::string *text, std::string *why) {
  const File file{open_regular_file(path)};
  if (file.number < 0 && errno == EINVAL) {
    *why = "must be a regular file";
    return false;
  }
  char block[4096];
  for (;;) {
    const ssize_t bytes = read(file.number, block, sizeof block);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) *why = "cannot be read";
    if (bytes <= 0) return bytes == 0;
    text->append(block, static_cast<size_t>(bytes));
    if (text->size() <= kMaxBytes) continue;
    *why = "exceeds 1 MiB";
    return false;
  }
}

std::shared_ptr<const GemmTuning> tuning_of_environment() {
  const std::string path(environment_value("MP_GEMM_TUNING"));
  if (path.empty()) return nullptr;
  std::string text, why;
  std::shared_ptr<const GemmTuning> tuning;
  if (read_file(path.c_str(), &text, &why)) tuning = parse_gemm_tuning(text, &why);
  static std::atomic_flag is_told;  // concurrent first calls log once
  if (is_told.test_and_set()) return tuning;
  if (tuning != nullptr)
    log(MP_LOG_INFO, "mp_gemm: using MP_GEMM_TUNING = ", path);
  else
    log(MP_LOG_WARN, "mp_gemm: MP_GEMM_TUNING = ", path, ": ", why, "; using the built-in table");
  return tuning;
}

}  // namespace

const GemmTuning &mp::gemm_tuning() {
  const auto &from_file = lazy_init([] { return tuning_of_environment(); });
  return from_file != nullptr ? *from_file : builtin_gemm_tuning();
}

// ---------------------------------------------------------------------------- measured kernels

namespace {

struct Measurement {
  std::string kernel, text;
};
/// All measurements of the process, by TunedCall::key_.  Entries are neither changed nor removed.
using Measurements = std::map<uint64_t, Measurement>;

std::mutex measurements_mutex;
const ForkGuard<measurements_mutex> measurements_of_a_child;
std::atomic<uint64_t> generation;
constinit thread_local int32_t measured_by_thread = 0;

Measurements &measurements() {
  return lazy_init([] { return Measurements(); });
}

void mix(Hash &hash, const MatrixLayout &layout) {
  hash.mix({layout.ld, layout.stride, int64_t{layout.alignment}});
}

void mix_layouts(Hash &hash, const OutputShape &out) {
  for (const MatrixLayout &layout : {out.c, out.d, out.epilogue.aux}) mix(hash, layout);
}

// The hashes of shapes leave out layouts that few programs vary.
uint64_t hash_of(const GemmShape &shape) {
  Hash hash{shape.hash()};
  for (const MatrixLayout &layout : {shape.a, shape.b}) mix(hash, layout);
  mix_layouts(hash, shape.out);
  return hash.sum;
}

uint64_t hash_of(const ConvKey &key) {
  Hash hash{key.hash()};
  hash.mix({int64_t{key.image_is_aligned}, int64_t{key.other_is_aligned}, int64_t{key.shape.p},
            int64_t{key.shape.q}});
  mix_layouts(hash, key.out);
  return hash.sum;
}

uint64_t measurement_key(const Device &device, uint64_t shape, size_t workspace_bytes) {
  Hash hash{shape};
  hash.mix({int64_t{mp_version()}, static_cast<int64_t>(device.target), int64_t{device.arch},
            int64_t{device.num_sms}, static_cast<int64_t>(workspace_bytes)});
  return hash.sum;
}

/// Returns the time per launch: the shortest mean of several rounds.
double microseconds(const Context &context, const std::function<void()> &launch,
                    mp_stream_t stream) {
  constexpr int kRounds = 4, kMaxLaunches = 64;
  constexpr double kRoundUs = 1000;
  using Clock = std::chrono::steady_clock;
  double best = 0;
  int launches = 1;  // the first round may load code, and is not counted
  for (int round = 0; round < kRounds; round++) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < launches; i++) launch();
    context.backend.synchronize(context.device, stream);
    const std::chrono::duration<double, std::micro> elapsed = Clock::now() - start;
    const double us = elapsed.count() / launches;
    if (round == 1 || (round > 1 && us < best)) best = us;
    launches = static_cast<int>(std::clamp(kRoundUs / std::max(us, 1e-3), 1.0, 1.0 * kMaxLaunches));
  }
  return best;
}

std::string text_of_us(double us) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", us);
  return text;
}

/// Output in scratch memory with the layout and alignment of `out`, for launches whose results are
/// not used.  C stays where it is.
class ScratchOutput : NotCopied {
 public:
  ScratchOutput(const Context &context, const Output &out) : context_(context), out_(out) {
    constexpr size_t kAlignment = 256;
    const size_t elem = mp_dtype_size(out.dtype);
    const auto span = [&](int64_t ld, int64_t stride) {
      return elem * static_cast<size_t>((out.batch_count - 1) * stride + (out.m - 1) * ld + out.n);
    };
    size_t bytes = 0;
    // Returns the offset of a block that is aligned like `original`.
    const auto place = [&](const void *original, size_t size) {
      const size_t offset = bytes + reinterpret_cast<uintptr_t>(original) % kAlignment;
      bytes = align_up(offset + size, kAlignment);
      return offset;
    };
    Epilogue &e = out_.epilogue;
    const bool writes_aux = e.aux != nullptr && !reads_aux(e.activation);
    const size_t d = place(out.d.base, span(out.d.ld, out.d.stride));
    const size_t aux = writes_aux ? place(e.aux, span(e.ld_aux, e.stride_aux)) : 0;
    const size_t sums = e.dbias != nullptr ? static_cast<size_t>(out.n) : 0;
    const size_t dbias = place(e.dbias, sums * sizeof(float));
    const size_t stats = place(nullptr, 2 * sizeof(float));
    memory_ = context.backend.allocate(context.device, bytes);
    auto *const base = static_cast<std::byte *>(memory_);
    auto *const floats = reinterpret_cast<float *>(base + stats);
    out_.d.base = base + d;
    if (writes_aux) e.aux = base + aux;
    if (e.dbias != nullptr) e.dbias = reinterpret_cast<float *>(base + dbias);
    if (e.amax != nullptr) e.amax = floats;
    if (e.found_inf != nullptr) e.found_inf = floats + 1;
  }
  ~ScratchOutput() {
    try {
      context_.backend.release(context_.device, memory_);
    } catch (const std::exception &error) {
      log(MP_LOG_ERROR, "failed to free device memory: ", error.what());
    }
  }
  const Output &get() const { return out_; }

 private:
  const Context &context_;
  Output out_;
  void *memory_;
};

}  // namespace

uint64_t mp::tuning_generation() {
  return generation.load(std::memory_order_relaxed);
}

int32_t mp::measured_kernels(const Context &context) {
  return std::max(context.measured_kernels.load(), measured_by_thread);
}

Measuring::Measuring(int32_t max_kernels)
    : before_(std::exchange(measured_by_thread, std::max(measured_by_thread, max_kernels))) {}
Measuring::~Measuring() {
  measured_by_thread = before_;
}

TunedCall::TunedCall(const Context &context, uint64_t shape, size_t workspace_bytes)
    : context_(context), key_(measurement_key(context.device, shape, workspace_bytes)) {}
TunedCall::TunedCall(const Context &context, const GemmShape &shape, size_t workspace_bytes)
    : TunedCall(context, hash_of(shape), workspace_bytes) {}
TunedCall::TunedCall(const Context &context, const ConvKey &key, size_t workspace_bytes)
    : TunedCall(context, hash_of(key), workspace_bytes) {}

const char *TunedCall::kernel() const {
  {
    const std::lock_guard lock(measurements_mutex);
    const auto measured = measurements().find(key_);
    if (measured != measurements().end()) return measured->second.kernel.c_str();
  }
  return fastest_kernel(gemm_tuning(), key_);
}

void TunedCall::measure_kernels(const std::string &text, Output &out,
                                const std::vector<const char *> &kernels,
                                const std::function<void(size_t)> &launch,
                                mp_stream_t stream) const {
  constexpr double kMinGain = 0.02;  // smaller differences are noise
  const ScratchOutput scratch(context_, out);
  out = scratch.get();
  const char *fastest = nullptr;
  double best_us = 0, first_us = 0;
  for (size_t i = 0; i < kernels.size(); i++) {
    const double us = microseconds(
        context_, [&] { launch(i); }, stream);
    if (i == 0) first_us = us;
    if (fastest != nullptr && us > best_us * (1 - kMinGain)) continue;
    fastest = kernels[i];
    best_us = us;
  }
  if (fastest == nullptr) return;
  std::string times = text_of_us(best_us);
  if (fastest != kernels[0]) times += "; " + (kernels[0] + (": " + text_of_us(first_us)));
  const std::lock_guard lock(measurements_mutex);
  measurements().emplace(key_, Measurement{fastest, text + "; " + times});
  generation++;
}

mp_status_t mp_tuning_measure(mp_context_t context, int32_t max_kernels) {
  return call(__func__, context, [&](const Context &c) {
    require_not_negative(max_kernels, "max_kernels");
    c.measured_kernels = max_kernels;
  });
}

mp_status_t mp_tuning_get_text(char *text, size_t *bytes) {
  return call(__func__, [&] {
    require_pointer(bytes, "bytes");
    std::string lines;
    {
      const std::lock_guard lock(measurements_mutex);
      for (const auto &[key, measured] : measurements()) {
        char start[32];
        std::snprintf(start, sizeof start, "fastest %016" PRIx64 " ", key);
        lines += start + measured.kernel + " # " + measured.text + '\n';
      }
    }
    write_text(lines, text, bytes);
  });
}
