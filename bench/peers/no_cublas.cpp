// Classes of cuBLAS and cuBLASLt in builds without the toolkit's headers: opening the library
// fails, so that nothing else is called.
#if !__has_include(<cublasLt.h>) || !__has_include(<cublas_v2.h>)

#ifdef __clang__
#pragma clang diagnostic ignored "-Wunused-private-field"
#endif

#include "cublas.h"

namespace mpbench {

CublasLt::CublasLt(mp_context_t, mp_stream_t)
    : library_({(throw std::runtime_error("mpbench was built without cublasLt.h"), "")}) {}
CublasLt::~CublasLt() = default;
size_t CublasLt::version() const {
  return 0;
}

struct CublasLtGemm::Matmul {};
CublasLtGemm::CublasLtGemm(const CublasLt &library, const mp_gemm_desc_t &, PeerMath, Epilogue)
    : library_(library) {}
CublasLtGemm::~CublasLtGemm() = default;
void CublasLtGemm::enqueue(const Operands &, size_t) const {}

Cublas::Cublas(mp_context_t, mp_stream_t)
    : library_({(throw std::runtime_error("mpbench was built without cublas_v2.h"), "")}) {}
Cublas::~Cublas() = default;
size_t Cublas::version() const {
  return 0;
}
bool Cublas::has_groups() const {
  return false;
}

CublasBatchedGemm::CublasBatchedGemm(const Cublas &library, const mp_gemm_desc_t &desc)
    : library_(library), desc_(desc) {}
void CublasBatchedGemm::enqueue(const Operands &, size_t) const {}

CublasGroupedGemm::CublasGroupedGemm(const Cublas &library, const std::vector<mp_gemm_desc_t> &)
    : library_(library) {}
void CublasGroupedGemm::enqueue(const Operands &, size_t) const {}

}  // namespace mpbench

#endif
