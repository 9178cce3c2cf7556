// Offsets beyond 2^31 elements, cheaply: 4 x 4 matrices, three in a batch, one operand of which
// lies in an arena of several GB with its rows, or its items, more than 2^30 elements apart.  Only
// the pages of those elements are ever touched.
#define MP_ENABLE_EXPERIMENTAL
#include <array>

#include "tests/support/kernels.h"
#include "tests/support/oracle.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

constexpr int64_t kExtent = 4;  // m, n and k
constexpr int64_t kItems = 3;
constexpr int64_t kNearLd = 8;
constexpr int64_t kNearStride = kExtent * kNearLd;
constexpr int64_t kMatrixElems = kItems * kNearStride;
constexpr int64_t kFar = (int64_t{1} << 30) + 8;
constexpr size_t kElemBytes = 2;  // fp16
constexpr size_t kArenaBytes =
    static_cast<size_t>((kExtent - 1) * kFar + 2 * kMatrixElems) * kElemBytes;

enum Operand { kA, kB, kC, kD, kAux, kOperands };
constexpr const char *kNames[] = {"A", "B", "C", "D", "aux"};
enum class Apart { kRows, kItems };

/// Three 4 x 4 fp16 matrices somewhere on the device.
struct Place {
  uint8_t *data;
  int64_t ld, stride;

  template <typename Visit>
  void each_row(Visit visit) const {
    for (int64_t item = 0; item < kItems; ++item) {
      for (int64_t i = 0; i < kExtent; ++i) {
        visit(data + static_cast<size_t>(item * stride + i * ld) * kElemBytes, item, i);
      }
    }
  }

  void upload(const Matrices &values) const {
    each_row([&](uint8_t *at, int64_t item, int64_t i) {
      uint16_t bits[kExtent];
      for (int64_t j = 0; j < kExtent; ++j) {
        bits[j] = static_cast<uint16_t>(encode(MP_FP16, values.at(item, i, j)));
      }
      copy_bytes(at, bits, sizeof bits);
    });
  }

  Matrices download() const {
    Matrices values(kItems, kExtent, kExtent);
    each_row([&](uint8_t *at, int64_t item, int64_t i) {
      uint16_t bits[kExtent];
      copy_bytes(bits, at, sizeof bits);
      for (int64_t j = 0; j < kExtent; ++j) values.at(item, i, j) = decode(MP_FP16, bits[j]);
    });
    return values;
  }
};

using Places = std::array<Place, kOperands>;

Places place_all(uint8_t *near, uint8_t *arena, Operand far, Apart apart) {
  Places places;
  for (int operand = 0; operand < kOperands; ++operand) {
    places[operand] = {near + static_cast<size_t>(operand * kMatrixElems) * kElemBytes, kNearLd,
                       kNearStride};
  }
  places[far].data = arena;
  (apart == Apart::kRows ? places[far].ld : places[far].stride) = kFar;
  if (far == kD && apart == Apart::kItems) {
    // aux has the stride of D, so it goes along.
    places[kAux] = {arena + static_cast<size_t>(kMatrixElems) * kElemBytes, kNearLd, kFar};
  }
  return places;
}

mp_gemm_desc_t describe(const Places &places, mp_op_t op) {
  mp_gemm_desc_t desc = mp_gemm_desc_default(kExtent, kExtent, kExtent, MP_FP16, MP_FP16);
  desc.op_a = op;
  desc.op_b = op;
  desc.beta = 1.0f;
  desc.batch_count = kItems;
  desc.ld_a = places[kA].ld;
  desc.ld_b = places[kB].ld;
  desc.ld_c = places[kC].ld;
  desc.ld_d = places[kD].ld;
  desc.stride_a = places[kA].stride;
  desc.stride_b = places[kB].stride;
  desc.stride_c = places[kC].stride;
  desc.stride_d = places[kD].stride;
  return desc;
}

Matrices integers(Random &random) {
  Matrices values(kItems, kExtent, kExtent);
  for (double &value : values.values) value = static_cast<double>(random.integer(-8, 8));
  return values;
}

oracle::GemmInputs random_inputs(int64_t seed) {
  Random random(static_cast<uint64_t>(seed));
  oracle::GemmInputs in;
  in.count = kItems;
  in.a = integers(random);
  in.b = integers(random);
  in.c = integers(random);
  in.beta = 1.0;
  in.activation = MP_ACT_DRELU;
  in.aux = integers(random);
  return in;
}

void check_far(uint8_t *arena, Operand far, Apart apart, mp_op_t op) {
  DeviceBuffer<uint16_t> near(kOperands * kMatrixElems);
  const Places places = place_all(reinterpret_cast<uint8_t *>(near.data()), arena, far, apart);
  const oracle::GemmInputs in = random_inputs(far);
  const oracle::EpilogueResult expected = oracle::gemm(in);
  places[kA].upload(op == MP_OP_N ? in.a : transposed(in.a));
  places[kB].upload(op == MP_OP_N ? in.b : transposed(in.b));
  places[kC].upload(in.c);
  places[kAux].upload(in.aux);

  DeviceBuffer<float> dbias(kExtent);
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.activation = MP_ACT_DRELU;
  epilogue.aux = places[kAux].data;
  epilogue.ld_aux = places[kAux].ld;
  epilogue.dbias = dbias.data();

  mp_gemm_desc_t desc = describe(places, op);
  for (const char *const kernel : runnable_kernels(desc)) {
    desc.plan = named_plan(kernel);
    CAPTURE(kNames[far], apart == Apart::kRows, op == MP_OP_T, kernel);
    places[kD].upload(Matrices(kItems, kExtent, kExtent, -1.0));
    require_ok(mp_gemm(context(), &desc, places[kA].data, places[kB].data, places[kC].data,
                       places[kD].data, &epilogue, nullptr, 0, kStream));
    require_ok(mp_stream_sync(context(), kStream));
    CHECK(places[kD].download().values == expected.y.values);
    const std::vector<float> sums = dbias.download();
    CHECK(std::vector<double>(sums.begin(), sums.end()) == oracle::column_sums(expected.y).sum);
  }
}

}  // namespace

TEST_CASE("gemm large: rows or batch items more than 2^30 elements apart", "[gemm][short]") {
  const DeviceMemory arena(kArenaBytes);
  if (!arena.allocated()) return skip(format("needs %zu MB of memory", kArenaBytes >> 20));
  for (const Operand far : {kA, kB, kC, kD, kAux})
    for (const Apart apart : {Apart::kRows, Apart::kItems})
      for (const mp_op_t op : {MP_OP_N, MP_OP_T})
        if (far != kAux || apart == Apart::kRows) check_far(arena.data(), far, apart, op);
}
