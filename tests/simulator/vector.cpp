// Loads and stores of vectors and packed words (vector.h) of every type, length, alignment and
// remainder.
#include "kernels/simt/vector.h"
#include "testing.h"

using namespace mp::host;
using namespace mptest;

namespace {

constexpr int kSpan = 32;  // elements of memory, larger than any vector
constexpr float kFilling = -1.0f;

template <class T, int kRun>
void check_run(int offset, int valid) {
  INFO("vector of " << kRun << " x " << sizeof(T) << " bytes at " << offset << ", " << valid);
  alignas(64) T memory[kSpan];
  for (T &x : memory) x = round_to<T>(kFilling);
  float out[kRun], in[kRun];
  for (int i = 0; i < kRun; i++) out[i] = static_cast<float>(3 * i + 1);

  store_vector(memory + offset, out, valid);
  load_vector(in, memory + offset, valid);

  int wrong = 0;
  for (int i = 0; i < kSpan; i++) {
    const bool inside = i >= offset && i < offset + valid;
    wrong += to_float(memory[i]) != (inside ? out[i - offset] : kFilling);
  }
  for (int i = 0; i < kRun; i++) wrong += in[i] != (i < valid ? out[i] : 0.0f);
  CHECK(wrong == 0);
}

template <class T, int kRun>
void check_runs() {
  for (int offset = 0; offset < 16; offset++) {
    for (int valid = 0; valid <= kRun; valid++) check_run<T, kRun>(offset, valid);
  }
}

template <class T>
void check_type() {
  check_runs<T, 1>();
  check_runs<T, 2>();
  check_runs<T, 4>();
  check_runs<T, 8>();
  check_runs<T, 16>();
}

template <class T>
void check_packed() {
  constexpr int kElems = Packed<T>::kElems;
  alignas(16) T memory[kSpan];
  for (int i = 0; i < kSpan; i++) memory[i] = round_to<T>(static_cast<float>(3 * i - 40));
  const auto count_wrong = [&](const Packed<T> &packed, int offset, int valid) {
    float out[kElems];
    widen(out, packed);
    int wrong = 0;
    for (int i = 0; i < kElems; i++) {
      const float wanted = i < valid ? to_float(memory[offset + i]) : 0.0f;
      wrong += packed[i] != wanted || out[i] != wanted;
    }
    return wrong;
  };
  Packed<T> packed;
  packed.load(memory + kElems);
  CHECK(count_wrong(packed, kElems, kElems) == 0);
  for (int offset = 0; offset < 16; offset++) {
    for (int valid = -1; valid <= kElems + 1; valid++) {
      INFO(kElems << " elements at " << offset << ", " << valid);
      packed.load_elements(memory + offset, valid);
      CHECK(count_wrong(packed, offset, valid) == 0);
    }
  }
}

template <int kRows, int kCols>
void check_transpose() {
  float in[kRows][kCols], out[kCols][kRows];
  for (int i = 0; i < kRows * kCols; i++) in[i / kCols][i % kCols] = static_cast<float>(i);
  transpose(out, in);
  int wrong = 0;
  for (int i = 0; i < kRows * kCols; i++)
    wrong += out[i % kCols][i / kCols] != in[i / kCols][i % kCols];
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("vector: loads and stores of every length, type and alignment are exact", "[vector]") {
  check_type<half>();
  check_type<bf16>();
  check_type<float>();
}

TEST_CASE("vector: packed words of every type and alignment are exact", "[vector]") {
  check_packed<half>();
  check_packed<bf16>();
  check_packed<float>();
}

TEST_CASE("vector: a transposition exchanges rows and columns", "[vector]") {
  check_transpose<8, 8>();
  check_transpose<8, 4>();
  check_transpose<4, 8>();
}
