// Copies between memory and registers: cp.async, and vectors of elements of every type.
#include "cases.h"
#include "kernels/simt/sm80.h"
#include "kernels/simt/vector.h"
#include "tests/support/numeric.h"

namespace mp::MP_TARGET {

namespace {

// ---------------------------------------------------------------- cp.async

constexpr int kPieceBytes = 16;
constexpr int kPieces = kPieceBytes + 1;  // one per count of valid bytes, 0 to 16
constexpr int kStages = 3;
using Piece = Pack<unsigned char, kPieceBytes>;

struct CopyArgs {
  const unsigned char *in;  ///< [kStages][kPieces][kPieceBytes]
  unsigned char *out;       ///< same layout as `in`
  bool reversed;
};

/// Copies in groups, two in flight; each thread reads a vector that another thread copied.
MP_KERNEL(kWarpSize, 1) copy_in_groups(MP_PARAM(CopyArgs) args) {
  MP_SHARED(Piece, pieces, [kStages][kPieces]);
  const int mine = thread_index();
  const auto start = [&](int stage) {
    if (mine < kPieces) {
      const int valid = args.reversed ? kPieces - 1 - mine : mine;
      copy_async_16(&pieces[stage][mine], args.in + (stage * kPieces + mine) * kPieceBytes, valid);
    }
    copy_async_commit();
  };
  const auto store = [&](int stage) {
    block_sync();
    const int other = kPieces - 1 - mine;
    if (mine >= kPieces) return;
    for (int i = 0; i < kPieceBytes; i++)
      args.out[(stage * kPieces + other) * kPieceBytes + i] = pieces[stage][other].x[i];
  };
  for (int stage = 0; stage < kStages; stage++) start(stage);
  copy_async_wait<2>();
  store(0);
  copy_async_wait<1>();
  store(1);
  copy_async_wait<0>();
  store(2);
}

// ---------------------------------------------------------------- vectors of elements

constexpr int kAccesses = 16 * (kVec + 1);  // offsets 0 to 15, 0 to 8 valid elements
constexpr int kVectorThreads = 160;
constexpr int kSpan = 32;  // elements of memory per access

template <class T>
struct VectorArgs {
  const T *in;    ///< [kAccesses][kSpan]
  float *loaded;  ///< [kAccesses][kVec]
  float *packed;  ///< [kAccesses][kVec], by load_elements; 16-byte words if aligned
  T *stored;      ///< [kAccesses][kSpan]
  int off;        ///< added to the offsets
};

template <class T>
MP_KERNEL(kVectorThreads, 1)
load_and_store(MP_PARAM(VectorArgs<T>) args) {
  const int run = thread_index();
  if (run >= kAccesses) return;
  const int offset = (run / (kVec + 1) + args.off) % 16, valid = run % (kVec + 1);
  const T *const from = args.in + run * kSpan + offset;
  float x[kVec];
  load_vector(x, from, valid);
  Packed<T> words;
  if (is_aligned_16(from))
    words.load(from);
  else
    words.load_elements(from, valid);
  for (int i = 0; i < kVec; i++) {
    args.loaded[run * kVec + i] = x[i];
    args.packed[run * kVec + i] = i < Packed<T>::kElems ? words[i] : -1.0f;
  }
  for (int i = 0; i < kVec; i++) x[i] = x[i] * 3.0f + 0.25f;
  store_vector(args.stored + run * kSpan + offset, x, valid);
}

/// Results of load_and_store.
template <class T>
struct Vectors {
  std::vector<float> loaded, packed;
  std::vector<T> stored;

  Vectors(mp_dtype_t dtype, const std::vector<T> &elements) : stored(elements.size()) {
    constexpr int kElems = Packed<T>::kElems;
    std::memset(stored.data(), mpconform::kUntouched, stored.size() * sizeof(T));
    const auto value = [&](int i) {
      uint32_t bits = 0;
      std::memcpy(&bits, &elements[static_cast<size_t>(i)], sizeof(T));
      return static_cast<float>(mptest::decode(dtype, bits));
    };
    for (int run = 0; run < kAccesses; run++) {
      const int offset = run / (kVec + 1), valid = run % (kVec + 1), at = run * kSpan + offset;
      const int num_packed = offset * sizeof(T) % 16 == 0 ? kElems : min_of(valid, kElems);
      for (int i = 0; i < kVec; i++) {
        loaded.push_back(i < valid ? value(at + i) : 0.0f);
        packed.push_back(i >= kElems ? -1.0f : i < num_packed ? value(at + i) : 0.0f);
        if (i >= valid) continue;
        const float tripled = value(at + i) * 3.0f;  // exact
        const uint32_t bits = mptest::encode(dtype, double{tripled + 0.25f});
        std::memcpy(&stored[static_cast<size_t>(at + i)], &bits, sizeof(T));
      }
    }
  }
};

template <class T>
void add_runs(Output &output, const Device &device, mp_dtype_t dtype, const std::string &type,
              Mistake mistake) {
  std::vector<T> elements(kAccesses * kSpan);
  for (size_t i = 0; i < elements.size(); i++) {
    const float value = static_cast<float>(i * 7 % 2039) - 1000.0f;  // exact in fp16
    if constexpr (std::is_same_v<T, float>)
      elements[i] = value;
    else
      elements[i] = {static_cast<uint16_t>(i * 31 % 0x7000)};  // finite in both types
  }
  const Memory<T> in(device, elements), stored(device, elements.size());
  const Memory<float> loaded(device, kAccesses * kVec), packed(device, kAccesses * kVec);
  run(device, "load_and_store", load_and_store<T>, {1, kVectorThreads},
      {in.data(), loaded.data(), packed.data(), stored.data(), mistake == Mistake::made ? 1 : 0});
  const Vectors<T> defined(dtype, elements);
  output.push_back(make_part("load_vector, " + type, kVec, loaded.download(), defined.loaded));
  output.push_back(make_part("Packed, " + type, kVec, packed.download(), defined.packed));
  output.push_back(make_part("store_vector, " + type, kSpan, stored.download(), defined.stored));
}

}  // namespace

Output conform_async_copies(const Device &device, Mistake mistake) {
  std::vector<unsigned char> bytes(kStages * kPieces * kPieceBytes);
  for (size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<unsigned char>(i % 251 + 1);
  const Memory<unsigned char> in(device, bytes), out(device, bytes.size());
  run(device, "copy_in_groups", copy_in_groups, {1, kWarpSize},
      {in.data(), out.data(), mistake == Mistake::made});
  std::vector<unsigned char> defined = bytes;
  for (size_t i = 0; i < defined.size(); i++)
    if (i % kPieceBytes >= i / kPieceBytes % kPieces) defined[i] = 0;
  return {make_part("copy_async_16 of 0 to 16 bytes", kPieceBytes, out.download(), defined)};
}

Output conform_vectors(const Device &device, Mistake mistake) {
  Output output;
  add_runs<half>(output, device, MP_FP16, "fp16", mistake);
  add_runs<bf16>(output, device, MP_BF16, "bf16", mistake);
  add_runs<float>(output, device, MP_FP32, "fp32", mistake);
  return output;
}

}  // namespace mp::MP_TARGET
