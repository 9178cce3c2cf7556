// MPI_COMM_WORLD as an mpcore callback table, for the tests that run on every rank.
#pragma once

#include "mpcore_mpi.h"
#include "tests/step/step_fixtures.h"

namespace mptest {

class World {
 public:
  World() { REQUIRE(mp_mpi_init(&mpi_, MPI_COMM_WORLD, &comm_) == MPI_SUCCESS); }
  ~World() { mp_mpi_free(&mpi_); }
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  const mp_comm_t &comm() const { return comm_; }
  mp_mpi_t &mpi() { return mpi_; }
  int rank() const { return comm_.rank; }
  int size() const { return comm_.world_size; }

 private:
  mp_mpi_t mpi_{};
  mp_comm_t comm_ = mp_comm_default();
};

}  // namespace mptest
