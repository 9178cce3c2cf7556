// Checks a small GEMM on each device for bit-exact results.
#define MP_ENABLE_EXPERIMENTAL
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "doctor.h"
#include "support/text.h"

namespace mpinfo {
namespace {

using mptools::Buffer;
using mptools::kStream;

constexpr int64_t kSize = 64;  // full tiles of tensor cores

// Integers of at most 3 are exact in every type, and 64 products of two of them are added in FP32
// without rounding, in any order.  Neighboring rows or columns differ, so that misplaced elements
// are found.
float a_at(int64_t row, int64_t column) {
  return static_cast<float>((5 * row + 3 * column) % 7 - 3);
}
float b_at(int64_t row, int64_t column) {
  return static_cast<float>((2 * row + 4 * column) % 5 - 2);
}

using Fill = float (*)(int64_t row, int64_t column);

Buffer upload(mp_context_t context, Fill at, mp_dtype_t dtype) {
  std::vector<float> host;
  for (int64_t row = 0; row < kSize; row++)
    for (int64_t column = 0; column < kSize; column++) host.push_back(at(row, column));
  const Buffer wide = mptools::make_buffer(context, kSize * kSize, MP_FP32);
  mptools::check(
      mp_memcpy(context, wide.data(), host.data(), host.size() * sizeof(float), kStream));
  Buffer narrow = mptools::make_buffer(context, kSize * kSize, dtype);
  mptools::check(
      mp_cast(context, wide.data(), MP_FP32, narrow.data(), dtype, kSize * kSize, kStream));
  mptools::check(mp_stream_sync(context, kStream));  // `wide` is freed
  return narrow;
}

std::vector<float> multiply(mp_context_t context, const mp_gemm_desc_t &desc) {
  const Buffer a = upload(context, a_at, desc.dtype_ab), b = upload(context, b_at, desc.dtype_ab);
  const Buffer d = mptools::make_buffer(context, kSize * kSize, MP_FP32);
  size_t bytes = 0;
  mptools::check(mp_gemm_workspace_size(context, &desc, nullptr, &bytes));
  const Buffer workspace(context, static_cast<int64_t>(bytes));
  mptools::check(mp_gemm(context, &desc, a.data(), b.data(), nullptr, d.data(), nullptr,
                         workspace.data(), bytes, kStream));
  return mptools::download_sync(context, d.as<float>(), kSize * kSize);
}

float exact_at(int64_t row, int64_t column) {
  float sum = 0;
  for (int64_t i = 0; i < kSize; i++) sum += a_at(row, i) * b_at(i, column);
  return sum;
}

/// @throws std::runtime_error that names the first wrong element
void compare(const std::vector<float> &d) {
  for (int64_t row = 0; row < kSize; row++)
    for (int64_t column = 0; column < kSize; column++) {
      const float is = d[static_cast<size_t>(row * kSize + column)];
      const float exact = exact_at(row, column);
      if (is != exact)
        throw std::runtime_error(mptools::text("d[%d][%d] is %g, not %g", static_cast<int>(row),
                                               static_cast<int>(column), static_cast<double>(is),
                                               static_cast<double>(exact)));
    }
}

std::string kernel_name(mp_context_t context, const mp_gemm_desc_t &desc) {
  mp_kernel_info_t info;
  MP_INIT_STRUCT(&info);
  mptools::check(mp_gemm_kernel_info(context, &desc, 0, &info));
  return info.name;
}

Finding multiply_on(const Place &place) {
  std::string right;
  for (const mp::FloatType &row : mp::kFloatTypes) {
    const std::string type = row.name;
    try {
      const mp_gemm_desc_t desc = mp_gemm_desc_default(kSize, kSize, kSize, row.dtype, MP_FP32);
      compare(multiply(place.context.get(), desc));
      right +=
          (right.empty() ? "" : ", ") + type + " (" + kernel_name(place.context.get(), desc) + ")";
    } catch (const std::exception &error) {
      return problem(
          place.flag + ": GEMM in " + type + " fails: " + error.what(),
          "Do not use this device. Fix the first problem above; if there is none, please "
          "report this with the complete output of mpinfo doctor.");
    }
  }
  return ok(place.flag + ": GEMM results are exact in " + right);
}

}  // namespace

Findings check_products(Machine &machine) {
  Findings findings;
  for (const Place *const place : machine.usable()) findings.push_back(multiply_on(*place));
  return findings;
}

}  // namespace mpinfo
