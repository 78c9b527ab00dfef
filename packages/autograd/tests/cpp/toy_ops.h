// A few operators over simple loops, with hand-written derivatives, so that the tape and the engine are tested without any other layer.
// Tensors are float64 or float32 (int64 for one test) on the CPU; elements are read and written one by one as doubles.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "packages/autograd/csrc/derivative.h"
#include "packages/c10/tests/cpp/check.h"

namespace toy {

using namespace argand;
using argand::autograd::BackwardContext;
using argand::autograd::Derivative;

inline double get(const Tensor& t, int64_t at) {
  switch (t.dtype()) {
    case ARGAND_FLOAT32:
      return t.data<float>()[at];
    case ARGAND_INT64:
      return static_cast<double>(t.data<int64_t>()[at]);
    default:
      return t.data<double>()[at];
  }
}
inline void put(const Tensor& t, int64_t at, double v) {
  switch (t.dtype()) {
    case ARGAND_FLOAT32:
      t.data<float>()[at] = static_cast<float>(v);
      break;
    case ARGAND_INT64:
      t.data<int64_t>()[at] = static_cast<int64_t>(v);
      break;
    default:
      t.data<double>()[at] = v;
  }
}

// Element offset of index `i` (row-major over `sizes`) in a tensor that is broadcast to `sizes`.
inline int64_t element(const Tensor& t, IntList sizes, int64_t i) {
  int64_t at = 0;
  for (int64_t d = sizes.n - 1, own = t.dim() - 1; d >= 0; d--, own--) {
    const int64_t index = i % sizes[d];
    i /= sizes[d];
    if (own >= 0 && t.size(own) != 1) at += index * t.stride(own);
  }
  return at;
}
inline int64_t count(IntList sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

inline Tensor call(const char* name, std::initializer_list<ArgandValue> given) {
  const ArgandOperator* op = find_operator(name);
  ArgandValue args[8] = {}, ret{};
  int n = 0;
  for (const ArgandValue& v : given) args[n++] = v;
  check(api->call(op, args, &ret));
  return take_tensor(ret);
}

// ---- kernels -------------------------------------------------------------------------------------------------------
inline std::vector<int64_t> broadcast(const Tensor& a, const Tensor& b) {
  const int64_t n = std::max(a.dim(), b.dim());
  std::vector<int64_t> out(static_cast<size_t>(n), 1);
  for (const Tensor& t : {a, b}) {
    for (int64_t d = 0; d < t.dim(); d++) out[static_cast<size_t>(n - t.dim() + d)] = std::max(out[static_cast<size_t>(n - t.dim() + d)], t.size(d));
  }
  return out;
}

template <class F>
int binary(const ArgandValue* args, ArgandValue* rets, bool in_place, F f) {
  return guarded([&] {
    const Tensor a = as_tensor(args[0]), b = as_tensor(args[1]);
    const std::vector<int64_t> sizes = in_place ? a.sizes().vec() : b ? broadcast(a, b) : a.sizes().vec();
    const Tensor out = in_place ? a : empty(sizes, std::max(a.dtype(), b ? b.dtype() : 0));
    std::vector<double> made(static_cast<size_t>(count(sizes)));
    for (size_t i = 0; i < made.size(); i++) {
      const auto k = static_cast<int64_t>(i);
      made[i] = f(get(a, element(a, sizes, k)), b ? get(b, element(b, sizes, k)) : as_double(args[1]));
    }
    for (size_t i = 0; i < made.size(); i++) put(out, element(out, sizes, static_cast<int64_t>(i)), made[i]);
    if (in_place) out.bump_version();
    give(rets[0], out);
  });
}
template <class F>
int unary(const ArgandValue* args, ArgandValue* rets, bool in_place, F f) {
  return guarded([&] {
    const Tensor a = as_tensor(args[0]);
    const Tensor out = in_place ? a : empty(a.sizes(), a.dtype());
    for (int64_t i = 0; i < a.numel(); i++) put(out, element(out, a.sizes(), i), f(get(a, element(a, a.sizes(), i))));
    if (in_place) out.bump_version();
    give(rets[0], out);
  });
}
#define TOY_KERNEL(name) inline int name(const ArgandOperator*, uint64_t, const ArgandValue* args, ArgandValue* rets)
TOY_KERNEL(add) {
  return binary(args, rets, false, [](double a, double b) { return a + b; });
}
TOY_KERNEL(add_in) {
  return binary(args, rets, true, [](double a, double b) { return a + b; });
}
TOY_KERNEL(mul) {
  return binary(args, rets, false, [](double a, double b) { return a * b; });
}
TOY_KERNEL(mul_in) {
  return binary(args, rets, true, [](double a, double b) { return a * b; });
}
TOY_KERNEL(exp_out_of_place) {
  return unary(args, rets, false, [](double a) { return std::exp(a); });
}
TOY_KERNEL(exp_in) {
  return unary(args, rets, true, [](double a) { return std::exp(a); });
}
TOY_KERNEL(clone) {
  return unary(args, rets, false, [](double a) { return a; });
}
TOY_KERNEL(copy_in) {
  return binary(args, rets, true, [](double, double b) { return b; });
}
TOY_KERNEL(fill_in) {
  return binary(args, rets, true, [](double, double b) { return b; });
}
TOY_KERNEL(to_copy) {
  return guarded([&] {
    const Tensor a = as_tensor(args[0]), out = empty(a.sizes(), as_dtype(args[1], a.dtype()));
    for (int64_t i = 0; i < a.numel(); i++) put(out, i, get(a, element(a, a.sizes(), i)));
    give(rets[0], out);
  });
}
TOY_KERNEL(sum_to_size) {
  return guarded([&] {
    const Tensor a = as_tensor(args[0]), out = empty(as_ints(args[1]), a.dtype());
    for (int64_t i = 0; i < out.numel(); i++) put(out, i, 0);
    for (int64_t i = 0; i < a.numel(); i++) {
      const int64_t at = element(out, a.sizes(), i);
      put(out, at, get(out, at) + get(a, element(a, a.sizes(), i)));
    }
    give(rets[0], out);
  });
}
TOY_KERNEL(sum) {
  return guarded([&] {
    const Tensor a = as_tensor(args[0]), out = empty({}, a.dtype());
    double total = 0;
    for (int64_t i = 0; i < a.numel(); i++) total += get(a, element(a, a.sizes(), i));
    put(out, 0, total);
    give(rets[0], out);
  });
}
TOY_KERNEL(greater) {
  return guarded([&] {
    const Tensor a = as_tensor(args[0]), out = empty(a.sizes(), ARGAND_INT64);
    for (int64_t i = 0; i < a.numel(); i++) put(out, i, get(a, element(a, a.sizes(), i)) > as_double(args[1]));
    give(rets[0], out);
  });
}
TOY_KERNEL(as_strided) {
  return guarded(
      [&] { give(rets[0], view_of(as_tensor(args[0]), as_ints(args[1]), as_ints(args[2]), is_none(args[3]) ? args[0].t->offset : args[3].i)); });
}
TOY_KERNEL(expand) {
  return guarded([&] {
    const Tensor a = as_tensor(args[0]);
    const IntList sizes = as_ints(args[1]);
    std::vector<int64_t> strides(static_cast<size_t>(sizes.n), 0);
    for (int64_t d = 0; d < a.dim(); d++) {
      if (a.size(d) != 1) strides[static_cast<size_t>(sizes.n - a.dim() + d)] = a.stride(d);
    }
    give(rets[0], view_of(a, sizes, strides, a->offset));
  });
}
TOY_KERNEL(as_strided_backward) {  // for views that do not overlap themselves
  return guarded([&] {
    const Tensor g = as_tensor(args[0]);
    const Tensor out = empty_strided(as_ints(args[1]), as_ints(args[2]), g.dtype());
    for (int64_t i = 0; i < out.numel(); i++) put(out, element(out, out.sizes(), i), 0);
    const Tensor place = view_of(out, as_ints(args[4]), as_ints(args[5]), args[6].i - args[3].i);
    for (int64_t i = 0; i < g.numel(); i++) put(place, element(place, g.sizes(), i), get(g, element(g, g.sizes(), i)));
    give(rets[0], out);
  });
}
// split2(x): the two halves of the first dimension, as a list; cat2 joins a list.
TOY_KERNEL(split2) {
  return guarded([&] {
    const Tensor a = as_tensor(args[0]);
    std::vector<int64_t> sizes = a.sizes().vec();
    sizes[0] /= 2;
    TensorList list = {view_of(a, sizes, a.strides(), a->offset), view_of(a, sizes, a.strides(), a->offset + sizes[0] * a.stride(0))};
    give(rets[0], list);
  });
}
TOY_KERNEL(cat2) {
  return guarded([&] {
    const TensorList list = as_tensors(args[0]);
    std::vector<int64_t> sizes = list[0].sizes().vec();
    sizes[0] *= 2;
    const Tensor out = empty(sizes, list[0].dtype());
    for (int64_t k = 0, at = 0; k < 2; k++) {
      const Tensor& t = list[static_cast<size_t>(k)];
      for (int64_t i = 0; i < t.numel(); i++) put(out, at++, get(t, element(t, t.sizes(), i)));
    }
    give(rets[0], out);
  });
}
TOY_KERNEL(detach) {
  return guarded([&] {
    give(rets[0], view_of(as_tensor(args[0]), {args[0].t->sizes, args[0].t->ndim}, {args[0].t->strides, args[0].t->ndim}, args[0].t->offset));
  });
}

// ---- derivatives ---------------------------------------------------------------------------------------------------
inline Tensor mul_operand(BackwardContext& c, const Tensor& g, int arg) {
  return call("mul", {value(g), c.is_tensor(arg) ? value(c.tensor(arg)) : c.value(arg)});
}
inline void add_backward(BackwardContext& c) {
  c.set(0, c.grad(0));
  c.set(1, c.grad(0));
}
inline void mul_backward(BackwardContext& c) {
  if (c.needs(0)) c.set(0, mul_operand(c, c.grad(0), 1));
  if (c.needs(1)) c.set(1, mul_operand(c, c.grad(0), 0));
}
inline void exp_backward(BackwardContext& c) { c.set(0, call("mul", {value(c.grad(0)), value(c.result(0))})); }
inline void clone_backward(BackwardContext& c) { c.set(0, c.grad(0)); }
inline void copy_backward(BackwardContext& c) { c.set(1, c.grad(0)); }
inline void sum_to_size_backward(BackwardContext& c) { c.set(0, call("expand", {value(c.grad(0)), value(c.sizes(0))})); }
inline void expand_backward(BackwardContext& c) { c.set(0, call("sum_to_size", {value(c.grad(0)), value(c.sizes(0))})); }
inline void as_strided_grad(BackwardContext& c) {
  c.set(0, call("as_strided_backward", {value(c.grad(0)), value(c.sizes(0)), value(c.strides(0)), value(c.offset(0)), c.value(1), c.value(2),
                                        is_none(c.value(3)) ? value(c.offset(0)) : c.value(3)}));
}
inline void as_strided_backward_grad(BackwardContext& c) {
  c.set(0, call("as_strided", {value(c.grad(0)), c.value(4), c.value(5), value(c.value(6).i - c.value(3).i)}));
}
inline void split2_backward(BackwardContext& c) {
  TensorList list;
  for (int i = 0; i < 2; i++) {
    list.push_back(c.grad(i));
    if (!list.back()) {
      list.back() = empty(c.result_sizes(i), ARGAND_FLOAT64);
      call("fill_", {value(list.back()), value(0)});
    }
  }
  c.set(0, call("cat2", {value(list)}));
}
inline void cat2_backward(BackwardContext& c) {
  ArgandValue arg = value(c.grad(0)), ret{};
  check(api->call(find_operator("split2"), &arg, &ret));
  TensorList parts = take_tensors(ret);
  for (int i = 0; i < c.list_len(0); i++) c.set(0, i, parts[static_cast<size_t>(i)]);
}

inline const uint64_t kMulSaves[] = {2, 1, 0};
inline const uint64_t kNothing[] = {0, 0, 0, 0, 0, 0, 0};
inline const uint64_t kResult[] = {1};
inline const Derivative kDerivatives[] = {
    {"add", add_backward, 3, 1, 0, 0, kNothing, kNothing},
    {"mul", mul_backward, 3, 1, 3, 0, kMulSaves, kNothing},
    {"exp", exp_backward, 1, 1, 0, 1, kNothing, kResult},
    {"clone", clone_backward, 1, 1, 0, 0, kNothing, kNothing},
    {"_to_copy", clone_backward, 1, 1, 0, 0, kNothing, kNothing},
    {"copy_", copy_backward, 2, 1, 0, 0, kNothing, kNothing},
    {"sum", sum_to_size_backward, 1, 1, 0, 0, kNothing, kNothing},
    {"sum_to_size", sum_to_size_backward, 1, 1, 0, 0, kNothing, kNothing},
    {"expand", expand_backward, 1, 1, 0, 0, kNothing, kNothing},
    {"as_strided", as_strided_grad, 1, 1, 0, 0, kNothing, kNothing},
    {"as_strided_backward", as_strided_backward_grad, 1, 1, 0, 0, kNothing, kNothing},
    {"split2", split2_backward, 1, 1, 0, 0, kNothing, kNothing},
    {"cat2", cat2_backward, 1, 1, 0, 0, kNothing, kNothing},
    {"gt", nullptr, 0, 0, 0, 0, kNothing, kNothing},
    {"fill_", nullptr, 0, 0, 0, 0, kNothing, kNothing},
};

inline void define(const char* name, uint16_t n_args, uint16_t flags, ArgandKernel kernel) {
  static uint64_t hash = 1;
  ArgandOperator* op = nullptr;
  check(api->op_register(name, (std::string(name) + "(...)").c_str(), ++hash, n_args, 1, flags, &op));
  check(api->op_set_kernel(op, ARGAND_KEY_CPU, kernel, nullptr));
}

inline void define_operators() {
  define("add", 3, 0, add);
  define("add_", 3, ARGAND_OP_INPLACE, add_in);
  define("mul", 2, 0, mul);
  define("mul_", 2, ARGAND_OP_INPLACE, mul_in);
  define("exp", 1, 0, exp_out_of_place);
  define("exp_", 1, ARGAND_OP_INPLACE, exp_in);
  define("clone", 1, 0, clone);
  define("copy_", 3, ARGAND_OP_INPLACE, copy_in);
  define("fill_", 2, ARGAND_OP_INPLACE, fill_in);
  define("_to_copy", 2, 0, to_copy);
  define("sum_to_size", 2, 0, sum_to_size);
  define("sum", 1, 0, sum);
  define("gt", 2, 0, greater);
  define("as_strided", 4, ARGAND_OP_VIEW, as_strided);
  define("expand", 2, ARGAND_OP_VIEW, expand);
  define("as_strided_backward", 7, 0, as_strided_backward);
  define("split2", 1, ARGAND_OP_VIEW, split2);
  define("cat2", 1, 0, cat2);
  define("detach", 1, ARGAND_OP_VIEW, detach);
  define("opaque", 1, 0, clone);  // no derivative
  define("add_out", 3, 0, add);   // stands for an out= form
}

}  // namespace toy
