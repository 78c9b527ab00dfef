// Helpers of the generated <family>.autograd.cc files.
#pragma once

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/autograd/csrc/derivative.h"

namespace argand::autograd {

// A tensor argument of which only the geometry was kept.
struct Geometry {
  const BackwardContext& c;
  int arg;
  bool defined() const { return c.is_tensor(arg); }
};

// A result of which only the geometry was kept.
struct ResultGeometry {
  const BackwardContext& c;
  int index;
};

inline Tensor grad_or_zeros(const BackwardContext& c, int index) {
  Tensor g = c.grad(index);
  if (g) return g;
  for (int i = 0; !g; i++) g = c.grad(i);  // one is defined; it tells the device
  return ops::new_zeros(g, c.result_sizes(index), c.result_dtype(index));
}

inline void set_list(BackwardContext& c, int arg, TensorList grads) {
  for (int i = 0; i < c.list_len(arg); i++)
    if (c.needs(arg, i)) c.set(arg, i, std::move(grads[i]));
}

}  // namespace argand::autograd

namespace argand::builtins {

inline IntList shape_of(const autograd::Geometry& g) { return g.c.sizes(g.arg); }
inline IntList strides_of(const autograd::Geometry& g) { return g.c.strides(g.arg); }
inline int64_t offset_of(const autograd::Geometry& g) { return g.c.offset(g.arg); }
inline int64_t ndim_of(const autograd::Geometry& g) { return g.c.sizes(g.arg).size(); }
inline int64_t numel_of(const autograd::Geometry& g) { return prod(g.c.sizes(g.arg)); }
inline int dtype_of(const autograd::Geometry& g) { return g.c.dtype(g.arg); }
inline std::optional<ArgandDevice> device_of(const autograd::Geometry& g) { return g.c.device(g.arg); }
inline IntList shape_of(const autograd::ResultGeometry& g) { return g.c.result_sizes(g.index); }
inline int64_t ndim_of(const autograd::ResultGeometry& g) { return g.c.result_sizes(g.index).size(); }
inline int64_t numel_of(const autograd::ResultGeometry& g) { return prod(g.c.result_sizes(g.index)); }

}  // namespace argand::builtins
