// SPDX-License-Identifier: Apache-2.0
#include "ops/kernels.h"

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

const Kernels& kernels() {
  static const Kernels& best = kernels_of(best_isa());
  return best;
}

}  // namespace ballast::ops
