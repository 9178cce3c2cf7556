// Tests of the MPI adapter: its 16-bit floats, exact sums, and errors of MPI.
#include <bit>

#include "world.h"

using namespace mptest;

TEST_CASE("mpi: 16-bit floats match IEEE 754") {
  const auto check = [](mp_dtype_t dtype, auto from, auto to) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const double value = decode(dtype, bits);
      CHECK(same_value(from(static_cast<uint16_t>(bits)), value));
      if (!std::isnan(value)) CHECK(to(static_cast<float>(value)) == bits);
    }
    Random random(1);
    for (int i = 0; i < 100000; ++i) {
      const float x = std::bit_cast<float>(static_cast<uint32_t>(random.bits()));
      if (std::isnan(x))
        CHECK(std::isnan(decode(dtype, to(x))));
      else
        CHECK(to(x) == encode(dtype, x));
    }
  };
#define CHECK_TYPE(dtype, name) check(dtype, mp_mpi_from_##name, mp_mpi_to_##name);
  MP_MPI_HALF_TYPES(CHECK_TYPE)
#undef CHECK_TYPE
}

TEST_CASE("mpi: sums of integers are exact on every rank") {
  const World world;
  TensorSet grads(awkward_tensors());
  Random random(2);
  TensorValues wanted = constant_values(grads.specs(), 0.0);
  for (int rank = 0; rank < world.size(); ++rank) {
    const TensorValues values = integer_values(grads.specs(), random, 30);
    if (rank == world.rank()) grads.upload(values);
    for (size_t t = 0; t < values.size(); ++t) {
      for (size_t i = 0; i < values[t].size(); ++i) wanted[t][i] += values[t][i];
    }
  }
  require_ok(mp_grads_all_reduce(grads.list(), &world.comm(), 1.0f, 1.0f, kStream));
  CHECK(grads.download() == wanted);
}

TEST_CASE("mpi: the average of equal gradients is bit-identical to them") {
  const World world;
  if (std::popcount(static_cast<unsigned>(world.size())) != 1) return;  // 1 / 3 is not a float
  const float share = 1.0f / static_cast<float>(world.size());
  for (const bool before : {true, false}) {
    TensorSet grads(small_tensors());
    Random random(3);
    grads.upload(real_values(grads.specs(), random, 8.0));
    const std::vector<uint8_t> bits = grads.bits();
    require_ok(mp_grads_all_reduce(grads.list(), &world.comm(), before ? share : 1.0f,
                                   before ? 1.0f : share, kStream));
    CHECK(grads.bits() == bits);
  }
}

TEST_CASE("mpi: a non-finite value of one rank reaches all ranks") {
  const World world;
  for (const mp_dtype_t dtype : kDtypes) {
    TensorSet grads({{dtype, 40}});
    grads.upload(constant_values(grads.specs(), 1.0));
    if (world.rank() == 0) grads.inject(0, 3, encode(dtype, -HUGE_VAL));
    if (world.rank() == world.size() - 1) grads.inject(0, 7, encode(dtype, std::nan("")));
    require_ok(mp_grads_all_reduce(grads.list(), &world.comm(), 1.0f, 1.0f, kStream));
    const std::vector<double> values = grads.download().front();
    CHECK(values[3] == -HUGE_VAL);
    CHECK(std::isnan(values[7]));
    CHECK(std::count(values.begin(), values.end(), world.size()) == 38);
  }
}

TEST_CASE("mpi: the maximum is correct for every type") {
  const World world;
  for (const mp_dtype_t dtype : kDtypes) {
    DeviceArray send(dtype, std::vector<double>{1.0 * world.rank(), 7.0, 5.0 - world.rank()});
    DeviceArray recv(dtype, 3);
    const mp_comm_t &comm = world.comm();
    REQUIRE(comm.all_reduce(send.data(), recv.data(), 3, dtype, MP_REDUCE_MAX, kStream,
                            comm.user) == 0);
    CHECK(recv.download() == std::vector<double>{world.size() - 1.0, 7.0, 5.0});
  }
}

TEST_CASE("mpi: errors of MPI are returned with their codes") {
  World world;
  TensorSet grads({{MP_FP16, 4}});
  grads.upload(constant_values(grads.specs(), 1.0));
  const MPI_Op sum = world.mpi().sum_fp16;
  world.mpi().sum_fp16 = MPI_OP_NULL;
  const mp_status_t status = mp_grads_all_reduce(grads.list(), &world.comm(), 1.0f, 1.0f, kStream);
  const std::string sentence = mp_last_error();
  world.mpi().sum_fp16 = sum;
  expect_status(status, MP_ERROR_COMM);
  const std::string expected = "mp_grads_all_reduce: comm->all_reduce returned ";
  REQUIRE(sentence.starts_with(expected));
  int error_class = MPI_SUCCESS;
  MPI_Error_class(std::stoi(sentence.substr(expected.size())), &error_class);
  CHECK(error_class == MPI_ERR_OP);
}
