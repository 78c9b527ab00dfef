// The dtype of a line of numbers, for the kernels of all devices.
#pragma once

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/core/dtype_checks.h"

namespace argand {

// `dtype` if it is given and holds both ends; else the default dtype, or its complex one.
inline int linspace_dtype(const Scalar& start, const Scalar& end, int dtype) {
  const int given =
      builtins::promote_types(builtins::default_dtype(), builtins::promote_types(builtins::scalar_dtype(start), builtins::scalar_dtype(end)));
  const int made = dtype == ARGAND_DTYPE_NONE ? given : dtype;
  check_not_bool("linspace", made);
  if (is_complex(given) && !is_complex(made))
    fail(ARGAND_RUNTIME_ERROR, "linspace: got complex numbers for dtype %s, expected real ones; leave dtype out, or take a complex one",
         kDTypeName[made]);
  for (const Scalar& s : {start, end}) check_fits("linspace", made, value(s));
  return made;
}

}  // namespace argand
