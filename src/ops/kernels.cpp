// SPDX-License-Identifier: Apache-2.0
#include "ops/kernels.h"

#include <dnnl.h>

#include <algorithm>

namespace ballast::ops {

namespace isa_plain {
const Kernels& table();
}
#if defined(__x86_64__)
namespace isa_avx2 {
const Kernels& table();
}

namespace isa_avx512 {
const Kernels& table();
}
#endif

const Kernels& kernels_of(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::avx512:
      return isa_avx512::table();
    case Isa::avx2:
      return isa_avx2::table();
    case Isa::scalar:
      break;
  }
#else
  static_cast<void>(isa);
#endif
  return isa_plain::table();
}

namespace {

Isa allowed_isa() {
  const unsigned allowed = dnnl_get_effective_cpu_isa();  // a set of bits, those of narrower ones among them
  const auto has = [&](unsigned isa) { return (allowed & isa) == isa; };
  return has(dnnl_cpu_isa_avx512_core) ? Isa::avx512 : (has(dnnl_cpu_isa_avx2) ? Isa::avx2 : Isa::scalar);
}

}  // namespace

Isa isa_in_use() {
  static const Isa used = std::min(best_isa(), allowed_isa());
  return used;
}

const Kernels& kernels() {
  static const Kernels& best = kernels_of(isa_in_use());
  return best;
}

}  // namespace ballast::ops
