// Attributes of Tensor that need no operator. What belongs to gradient histories has plain answers here, which the package
// that keeps histories replaces.
#include "packages/c10/csrc/abi/python_entries.h"
#include "packages/c10/csrc/python/constants.h"

namespace argand::py {

static ArgandTensor* self_of(PyObject* o) {
  ArgandTensor* t = tensor_of(o);
  return t ? t : unwrap(o);
}

static PyObject* get_shape(PyObject* o, void*) {
  ArgandTensor* t = self_of(o);
  return t ? size_object(t->sizes, t->ndim) : nullptr;
}
static PyObject* get_dtype(PyObject* o, void*) {
  ArgandTensor* t = self_of(o);
  return t ? dtype_object(t->dtype) : nullptr;
}
static PyObject* get_device(PyObject* o, void*) {
  ArgandTensor* t = self_of(o);
  if (!t) return nullptr;
  ArgandDevice device = t->storage->device;
  ArgandDeviceType type = ARGAND_DEVICE_TYPE(device);
  return device_object(type == ARGAND_CPU || type == ARGAND_META ? ARGAND_DEVICE(type, 0xff) : device);  // there is only one of these
}
static PyObject* get_ndim(PyObject* o, void*) {
  ArgandTensor* t = self_of(o);
  return t ? PyLong_FromLong(t->ndim) : nullptr;
}
static PyObject* get_itemsize(PyObject* o, void*) {
  ArgandTensor* t = self_of(o);
  return t ? PyLong_FromLong(item_size(t->dtype)) : nullptr;
}
static PyObject* get_nbytes(PyObject* o, void*) {
  ArgandTensor* t = self_of(o);
  return t ? PyLong_FromLongLong(t->numel * item_size(t->dtype)) : nullptr;
}
static PyObject* get_layout(PyObject*, void*) { return Py_NewRef(strided_layout); }
static PyObject* get_version(PyObject* o, void*) {
  ArgandTensor* t = self_of(o);
  if (t && t->flags & ARGAND_TENSOR_INFERENCE) {
    PyErr_SetString(PyExc_RuntimeError, "Inference tensors do not track version counter.");
    return nullptr;
  }
  return t ? PyLong_FromUnsignedLong(__atomic_load_n(&t->storage->version, __ATOMIC_RELAXED)) : nullptr;
}
static PyObject* get_base(PyObject* o, void*) {
  ArgandTensor* t = self_of(o);
  if (!t) return nullptr;
  if (t->base) retain(t->base);
  return wrap(t->base);
}
static PyObject* is_on(PyObject* o, ArgandDeviceType type) {
  ArgandTensor* t = self_of(o);
  return t ? PyBool_FromLong(ARGAND_DEVICE_TYPE(t->storage->device) == type) : nullptr;
}
static PyObject* get_is_cpu(PyObject* o, void*) { return is_on(o, ARGAND_CPU); }
static PyObject* get_is_meta(PyObject* o, void*) { return is_on(o, ARGAND_META); }
static PyObject* get_is_cuda(PyObject* o, void*) { return is_on(o, ARGAND_CUDA); }
static PyObject* get_false(PyObject*, void*) { Py_RETURN_FALSE; }

// ---- x.data: the same memory without history or version tracking -----------------------------------------------------------
static PyObject* get_data(PyObject* o, void*) {
  ArgandTensor* t = self_of(o);
  ArgandTensor* alias = nullptr;
  if (!t) return nullptr;
  if (int status = api->tensor_alias(t, &alias)) return raise(status);
  alias->flags |= ARGAND_TENSOR_NO_VERSION;
  return wrap(alias);
}
static int set_data(PyObject* o, PyObject* value, void*) {
  ArgandTensor* t = self_of(o);
  if (!t) return -1;
  if (!value || !is_tensor(value)) {
    PyErr_Format(PyExc_TypeError, "Tensor.data: got %s, expected a Tensor", value ? Py_TYPE(value)->tp_name : "a deletion");
    return -1;
  }
  ArgandTensor* source = unwrap(value);
  if (!source) return -1;
  if (argand::stands_for_entries(t)) {
    PyErr_SetString(PyExc_RuntimeError,
                    "Tensor.data: got a tensor that stands for the entries of a vmap as the target, expected one of its own; use copy_()");
    return -1;
  }
  if (!may_lend(source)) return -1;
  if (t->base) {
    PyErr_SetString(PyExc_RuntimeError, "Tensor.data: got a view as the target, expected a tensor with a storage of its own; assign to the base");
    return -1;
  }
  const auto is_meta = [](const ArgandTensor* x) { return ARGAND_DEVICE_TYPE(x->storage->device) == ARGAND_META; };
  if (is_meta(source) != is_meta(t)) {
    PyErr_Format(device_error, "Tensor.data: got data on %s for a tensor on %s, expected both or none on the meta device",
                 device_type_name(source->storage->device), device_type_name(t->storage->device));
    return -1;
  }
  if ((t->keys & ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD)) && !is_differentiable(source->dtype)) {
    PyErr_Format(dtype_error, "Tensor.data: got %s data for a tensor that requires grad, expected a floating or complex dtype",
                 kDTypeName[source->dtype]);
    return -1;
  }
  ArgandTensor* trial = nullptr;  // that is refused, where a storage has shrunk under its tensor, before anything is changed
  int status = api->tensor_from_storage(source->storage, source->ndim, source->sizes, source->strides, source->offset, source->dtype, &trial);
  if (!status) {
    release(trial);
    status = api->tensor_set_storage(t, source->storage, source->dtype);
  }
  if (!status) status = api->tensor_set_geometry(t, source->ndim, source->sizes, source->strides, source->offset);
  if (status) raise(status);
  return status ? -1 : 0;
}

// ---- answers without histories ---------------------------------------------------------------------------------------------
static PyObject* get_requires_grad(PyObject* o, void*) {
  ArgandTensor* t = self_of(o);
  return t ? PyBool_FromLong((t->keys & ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD)) != 0) : nullptr;
}
static int set_requires_grad(PyObject* o, PyObject* value, void*) {
  ArgandTensor* t = self_of(o);
  int wanted = value ? PyObject_IsTrue(value) : -1;
  if (!t || wanted < 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "Tensor.requires_grad: cannot be deleted");
    return -1;
  }
  if (wanted && !is_differentiable(t->dtype)) {
    PyErr_Format(PyExc_RuntimeError, "only Tensors of floating point and complex dtype can require gradients, got %s", kDTypeName[t->dtype]);
    return -1;
  }
  t->flags = wanted ? t->flags | ARGAND_TENSOR_REQUIRES_GRAD : t->flags & ~ARGAND_TENSOR_REQUIRES_GRAD;
  uint64_t bit = ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD);
  t->keys = wanted ? t->keys | bit : t->keys & ~bit;
  return 0;
}
static PyObject* get_none(PyObject*, void*) { Py_RETURN_NONE; }
static PyObject* get_true(PyObject*, void*) { Py_RETURN_TRUE; }

PyGetSetDef tensor_getset[] = {
    {"shape", get_shape, nullptr, "The size of each dimension.", nullptr},
    {"dtype", get_dtype, nullptr, "The type of the elements.", nullptr},
    {"device", get_device, nullptr, "Where the data is.", nullptr},
    {"ndim", get_ndim, nullptr, "The number of dimensions.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes per element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements: numel() * itemsize.", nullptr},
    {"layout", get_layout, nullptr, "How elements are laid out; always strided.", nullptr},
    {"data", get_data, set_data, "The same memory without gradient history; assign to it to swap the memory.", nullptr},
    {"is_cpu", get_is_cpu, nullptr, "Is the data on the CPU.", nullptr},
    {"is_meta", get_is_meta, nullptr, "Has the tensor a shape but no data.", nullptr},
    {"is_cuda", get_is_cuda, nullptr, "Is the data on a CUDA device.", nullptr},
    {"__cuda_array_interface__", cuda_array_interface, nullptr, "The memory of a CUDA tensor, for other libraries.", nullptr},
    {"is_sparse", get_false, nullptr, "Is the layout sparse.", nullptr},
    {"is_quantized", get_false, nullptr, "Are the elements quantized.", nullptr},
    {"_version", get_version, nullptr, "Grows with every in-place change of the storage.", nullptr},
    {"_base", get_base, nullptr, "The tensor this one is a view of, or None.", nullptr},
    {"requires_grad", get_requires_grad, set_requires_grad, "Are gradients wanted for this tensor.", nullptr},
    {"grad", get_none, nullptr, "The accumulated gradient, or None.", nullptr},
    {"grad_fn", get_none, nullptr, "The operation that made this tensor, or None.", nullptr},
    {"is_leaf", get_true, nullptr, "Was the tensor made by the user rather than by a recorded operation.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace argand::py
