// Rows of kernels that generated registration files consist of, and what their wrappers share. Header-only: each backend's library
// compiles its own copy.
#pragma once

#include "packages/aten/csrc/core/builtins.h"

namespace argand::registration {

struct KernelRow {
  const char* op;
  ArgandDispatchKey key;
  ArgandKernel kernel;
  const void* data;  // key_data
};

struct KernelRows {
  const KernelRow* rows;
  size_t n;
};

inline int register_kernels(const KernelRows& kernels) {
  for (size_t i = 0; i < kernels.n; i++) {
    const KernelRow& row = kernels.rows[i];
    if (int status = api->op_set_kernel(api->op_find(row.op), row.key, row.kernel, const_cast<void*>(row.data))) return status;
  }
  return 0;
}

inline void bump_versions(const ArgandValue& v) {  // of a tensor or a list of tensors
  if (v.tag == ARGAND_TAG_TENSOR && v.t) Tensor::borrow(v.t).bump_version();
  if (v.tag == ARGAND_TAG_TENSOR_LIST)
    for (uint32_t i = 0; i < v.len; i++)
      if (v.tensors[i]) Tensor::borrow(v.tensors[i]).bump_version();
}

// Returns the changed first argument of an in-place kernel, after its version is counted.
inline void give_changed(ArgandValue& ret, const ArgandValue& self) {
  bump_versions(self);
  give(ret, as_tensor(self));
}

inline void check_writable(const char* op, const ArgandValue& v) {
  if (v.tag == ARGAND_TAG_TENSOR && v.t && v.t->storage->flags & ARGAND_STORAGE_READONLY)
    fail(ARGAND_RUNTIME_ERROR, "%s: got a tensor on read-only memory (a read-only NumPy array), expected a writable one; use .clone() first", op);
  if (v.tag == ARGAND_TAG_TENSOR && v.t && v.t->flags & ARGAND_TENSOR_INFERENCE && !api->thread_state()->inference_mode)
    fail(ARGAND_RUNTIME_ERROR, "%s: inplace update to inference tensor outside inference_mode is not allowed; clone it first to get a normal tensor",
         op);
}

// `apart`: the output may not be the input, either.
inline void check_overlap(const char* op, const Tensor& out, ArgandTensor* in, bool apart) {
  if (!in) return;
  const Tensor t = Tensor::borrow(in);
  if (!apart) return check_no_partial_overlap(op, out, t);
  if (out->storage != in->storage || out.is_meta()) return;
  const ByteRange a = byte_range(out), b = byte_range(t);
  if (a.first < b.last && b.first < a.last)
    fail(ARGAND_RUNTIME_ERROR,
         "%s: unsupported operation: the written-to tensor and an input tensor refer to a single memory location; clone() one of them first", op);
}

// `apart`: a bit for each argument that shares no memory with `out`; the others are it, or share none.
inline void check_overlaps(const char* op, const Tensor& out, const ArgandValue* args, int first, int n_args, uint64_t apart) {
  for (int k = first; k < n_args; k++) {
    if (args[k].tag == ARGAND_TAG_TENSOR) check_overlap(op, out, args[k].t, apart >> k & 1);
    if (args[k].tag == ARGAND_TAG_TENSOR_LIST)
      for (uint32_t j = 0; j < args[k].len; j++) check_overlap(op, out, args[k].tensors[j], apart >> k & 1);
  }
}

// For kernels that change their first argument: bit k of `apart` says that argument k shares no memory with it; bit 0, that its elements share none.
inline void check_apart(const ArgandOperator* op, const ArgandValue* args, uint64_t apart) {
  const Tensor self = as_tensor(args[0]);
  if (apart & 1) check_no_internal_overlap(op->name, self);
  check_overlaps(op->name, self, args, 1, op->n_args, apart);
}

// The device of a backend's operator call: that of its first tensor there, else its device argument, else the current one.
inline ArgandDevice device_of_call(const ArgandOperator* op, const ArgandValue* args, ArgandDeviceType type) {
  const auto there = [&](const ArgandTensor* t) { return t && ARGAND_DEVICE_TYPE(t->storage->device) == type; };
  ArgandDevice given = ARGAND_DEVICE(type, 0xff);
  for (int i = 0; i < op->n_args; i++) {
    const ArgandValue& v = args[i];
    if (v.tag == ARGAND_TAG_TENSOR && there(v.t)) return v.t->storage->device;
    if (v.tag == ARGAND_TAG_TENSOR_LIST)
      for (uint32_t k = 0; k < v.len; k++)
        if (there(v.tensors[k])) return v.tensors[k]->storage->device;
    if (v.tag == ARGAND_TAG_DEVICE && ARGAND_DEVICE_TYPE(v.i) == type) given = static_cast<ArgandDevice>(v.i);
  }
  ArgandDevice device = given;
  check(api->resolve_device(op->name, given, &device));
  return device;
}

// `requires_grad=True` of factories: the result is a leaf that requires grad.
inline void mark_requires_grad(ArgandValue& ret) {
  if (!is_differentiable(ret.t->dtype)) {
    take_tensor(ret);
    builtins::raise(ARGAND_RUNTIME_ERROR, "Only Tensors of floating point and complex dtype can require gradients");
  }
  ret.t->flags |= ARGAND_TENSOR_REQUIRES_GRAD;
  ret.t->keys |= ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD);
}

}  // namespace argand::registration
