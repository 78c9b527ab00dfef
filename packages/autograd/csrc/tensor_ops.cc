#include "packages/autograd/csrc/tensor_ops.h"

#include <atomic>

namespace argand::autograd::tensor_ops {

namespace {

constexpr int kMaxArgs = 16;

// An operator that is looked up once. Arguments beyond those given are None, which every schema here accepts.
class Operator {
 public:
  explicit constexpr Operator(const char* name) : name_(name) {}
  Tensor call(std::initializer_list<ArgandValue> given) {
    const ArgandOperator* op = op_.load(std::memory_order_acquire);
    if (!op) {
      op = find_operator(name_);
      op_.store(op, std::memory_order_release);
    }
    ArgandValue args[kMaxArgs] = {};
    int n = 0;
    for (const ArgandValue& v : given) args[n++] = v;
    if (op->n_args < n || op->n_args > kMaxArgs || op->n_rets != 1)
      fail(ARGAND_INTERNAL_ERROR, "%s: got the schema %s, expected one with %d leading arguments and one result", name_, op->schema, n);
    ArgandValue ret{};
    check(api->call(op, args, &ret));
    return take_tensor(ret);
  }

 private:
  const char* name_;
  std::atomic<const ArgandOperator*> op_{nullptr};
};

Operator g_add{"add"}, g_add_in_place{"add_"}, g_clone{"clone"}, g_contiguous{"contiguous"}, g_copy{"copy_"}, g_fill{"fill_"},
    g_sum_to_size{"sum_to_size"}, g_to_copy{"_to_copy"}, g_real{"real"}, g_view_as_real{"view_as_real"}, g_view_as_complex{"view_as_complex"},
    g_as_strided{"as_strided"}, g_new_empty_strided{"new_empty_strided"}, g_as_strided_backward{"as_strided_backward"};

Tensor filled(IntList sizes, int dtype, ArgandDevice device, int64_t number) {
  Tensor t = empty(sizes, dtype, device);
  g_fill.call({value(t), value(number)});
  return t;
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return g_add.call({value(a), value(b), value(1)}); }
void add_(const Tensor& self, const Tensor& other) { g_add_in_place.call({value(self), value(other), value(1)}); }
Tensor clone(const Tensor& self) { return g_clone.call({value(self)}); }
Tensor contiguous(const Tensor& self) { return g_contiguous.call({value(self)}); }
void copy_(const Tensor& self, const Tensor& source) { g_copy.call({value(self), value(source), value(false)}); }
void fill_(const Tensor& self, int64_t number) { g_fill.call({value(self), value(number)}); }
Tensor zeros(IntList sizes, int dtype, ArgandDevice device) { return filled(sizes, dtype, device, 0); }
Tensor ones(IntList sizes, int dtype, ArgandDevice device) { return filled(sizes, dtype, device, 1); }
Tensor sum_to_size(const Tensor& self, IntList sizes) { return g_sum_to_size.call({value(self), value(sizes)}); }
Tensor to_dtype(const Tensor& self, int dtype) { return g_to_copy.call({value(self), dtype_value(dtype)}); }
Tensor real(const Tensor& self) { return g_real.call({value(self)}); }
Tensor view_as_real(const Tensor& self) { return g_view_as_real.call({value(self)}); }
Tensor view_as_complex(const Tensor& self) { return g_view_as_complex.call({value(self)}); }
Tensor as_strided(const Tensor& self, IntList sizes, IntList strides, int64_t offset) {
  return g_as_strided.call({value(self), value(sizes), value(strides), value(offset)});
}
Tensor new_empty_strided(const Tensor& like, IntList sizes, IntList strides) {
  return g_new_empty_strided.call({value(like), value(sizes), value(strides)});
}
Tensor as_strided_backward(const Tensor& grad, IntList sizes, IntList strides, int64_t offset, IntList view_sizes, IntList view_strides,
                           int64_t view_offset) {
  return g_as_strided_backward.call(
      {value(grad), value(sizes), value(strides), value(offset), value(view_sizes), value(view_strides), value(view_offset)});
}

}  // namespace argand::autograd::tensor_ops
