// mp_comm_t between the CUDA devices of one process: one NCCL communicator per device, all created
// by one call.  NCCL is loaded at run time.
// Source of the declarations: NCCL User Guide, "Creating a Communicator".
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "device.h"

namespace mptools {

class NcclRanks {
 public:
  /// @param ordinals  device of each rank
  explicit NcclRanks(const std::vector<int> &ordinals) : comms_(ordinals.size(), nullptr) {
    void *const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error("several CUDA devices require libnccl.so.2");
    const auto find = [library](const char *name) {
      void *const function = dlsym(library, name);
      if (function == nullptr)
        throw std::runtime_error(std::string("libnccl.so.2 does not export ") + name);
      return function;
    };
    const auto init = reinterpret_cast<InitAll *>(find("ncclCommInitAll"));
    destroy_ = reinterpret_cast<End *>(find("ncclCommDestroy"));
    abort_ = reinterpret_cast<End *>(find("ncclCommAbort"));
    const int result = init(comms_.data(), static_cast<int>(ordinals.size()), ordinals.data());
    if (result != 0) throw std::runtime_error("ncclCommInitAll returned " + std::to_string(result));
  }
  NcclRanks(const NcclRanks &) = delete;
  NcclRanks &operator=(const NcclRanks &) = delete;
  ~NcclRanks() {
    for (void *comm : comms_) destroy_(comm);
  }

  /// Aborts all communicators if a rank ends early, so that the others stop waiting for it.
  void give_up() {
    for (void *comm : comms_) abort_(comm);
    comms_.clear();
  }

  mp_comm_t comm(int rank) const {
    mp_comm_t comm = mp_comm_default();
    check(mp_comm_init_nccl(&comm, comms_[static_cast<size_t>(rank)]));
    return comm;
  }

 private:
  using InitAll = int(void **comms, int count, const int *ordinals);
  using End = int(void *comm);

  std::vector<void *> comms_;
  End *destroy_ = nullptr;
  End *abort_ = nullptr;
};

}  // namespace mptools
