// What histories add to Tensor: requires_grad, grad, grad_fn, hooks, backward().
#include "packages/autograd/csrc/history.h"
#include "packages/autograd/csrc/python/binding.h"
#include "packages/autograd/csrc/tape.h"

namespace argand::autograd::binding {

namespace {

template <class F>
PyObject* with_tensor(PyObject* self, F&& f) {
  return guard<PyObject*>(nullptr, [&] { return f(self_of(self)); });
}
PyObject* boolean(bool value) { return Py_NewRef(value ? Py_True : Py_False); }

PyObject* get_requires_grad(PyObject* self, void*) {
  return with_tensor(self, [](ArgandTensor* t) { return boolean(requires_grad(t)); });
}
int set_requires_grad_attribute(PyObject* self, PyObject* value, void*) {
  return guard(-1, [&] {
    if (!value) fail(ARGAND_TYPE_ERROR, "Tensor.requires_grad: cannot be deleted");
    if (!PyBool_Check(value)) fail(ARGAND_RUNTIME_ERROR, "requires_grad must be a bool, got %s", Py_TYPE(value)->tp_name);
    set_requires_grad(self_of(self), value == Py_True);
    return 0;
  });
}

PyObject* get_grad(PyObject* self, void*) {
  return with_tensor(self, [](ArgandTensor* t) -> PyObject* {
    Tensor grad = grad_of(t);
    if (!grad && t->meta && grad_fn(t) && !meta_of(t)->retained &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during "
                     "backward(). Call .retain_grad() on the non-leaf Tensor if you want its gradient.",
                     1) < 0)
      return nullptr;
    return wrap(std::move(grad)).take();
  });
}
void check_grad(ArgandTensor* t, PyObject* value) {
  if (!is_tensor(value)) fail(ARGAND_TYPE_ERROR, "assigned grad expected to be a Tensor or None but got grad of type %s", Py_TYPE(value)->tp_name);
  ArgandTensor* grad = self_of(value);
  if (grad == t) fail(ARGAND_RUNTIME_ERROR, "can't assign Variable as its own grad");
  const int wanted = is_leaf(t) ? grad_dtype(t) : t->dtype;
  if (wanted != kAnyDType && grad->dtype != wanted)
    fail(ARGAND_RUNTIME_ERROR,
         "assigned grad has data of a different type: got %s, expected %s, the tensor's grad_dtype (by default its dtype; None allows any)",
         kDTypeName[grad->dtype], kDTypeName[wanted]);
  if (grad->storage->device != t->storage->device && !(grad->keys & ARGAND_KEYBIT(ARGAND_KEY_SPARSE)))
    fail(ARGAND_RUNTIME_ERROR, "assigned grad has data located on a different device");
  if (IntList{grad->sizes, grad->ndim} != IntList{t->sizes, t->ndim})
    fail(ARGAND_RUNTIME_ERROR, "assigned grad has data of a different size: got %s, expected %s", to_string({grad->sizes, grad->ndim}).c_str(),
         to_string({t->sizes, t->ndim}).c_str());
}
int set_grad_attribute(PyObject* self, PyObject* value, void*) {
  return guard(-1, [&] {
    ArgandTensor* t = self_of(self);
    if (!value || value == Py_None) {
      set_grad(t, {});
    } else {
      check_grad(t, value);
      set_grad(t, unwrap(value));
    }
    return 0;
  });
}

PyObject* dtype_object(int dtype) {
  ArgandValue value = int_value(dtype, ARGAND_TAG_DTYPE);
  return python->from_value(&value);
}
PyObject* get_grad_dtype(PyObject* self, void*) {
  return with_tensor(self, [](ArgandTensor* t) {
    const int dtype = grad_dtype(t);
    return dtype == kAnyDType ? Py_NewRef(Py_None) : dtype_object(dtype);
  });
}
int set_grad_dtype_attribute(PyObject* self, PyObject* value, void*) {
  return guard(-1, [&] {
    if (!value) fail(ARGAND_TYPE_ERROR, "Tensor.grad_dtype: cannot be deleted");
    if (value == Py_None) {
      set_grad_dtype(self_of(self), kAnyDType);
      return 0;
    }
    for (int dtype = 0; dtype < ARGAND_NUM_DTYPES; dtype++) {
      if (Object::steal(dtype_object(dtype)).get() != value) continue;
      set_grad_dtype(self_of(self), dtype);
      return 0;
    }
    fail(ARGAND_RUNTIME_ERROR, "grad_dtype must be a dtype or None, but got %s", Py_TYPE(value)->tp_name);
  });
}

PyObject* get_grad_fn(PyObject* self, void*) {
  return with_tensor(self, [](ArgandTensor* t) { return node_object(grad_fn(t)).take(); });
}
PyObject* get_is_leaf(PyObject* self, void*) {
  return with_tensor(self, [](ArgandTensor* t) { return boolean(is_leaf(t)); });
}
PyObject* get_output_nr(PyObject* self, void*) {
  return with_tensor(self, [](ArgandTensor* t) { return PyLong_FromUnsignedLong(grad_fn(t) ? output_nr(t) : 0); });
}
PyObject* get_retains_grad(PyObject* self, void*) {
  return with_tensor(self, [](ArgandTensor* t) { return boolean(t->meta && meta_of(t)->retained); });
}

PyObject* method_requires_grad_(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"requires_grad", nullptr};
  PyObject* value = Py_True;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O!:requires_grad_", const_cast<char**>(keywords), &PyBool_Type, &value)) return nullptr;
  return with_tensor(self, [&](ArgandTensor* t) {
    set_requires_grad(t, value == Py_True);
    return Py_NewRef(self);
  });
}
PyObject* method_retain_grad(PyObject* self, PyObject*) {
  return with_tensor(self, [](ArgandTensor* t) {
    retain_grad(t);
    return Py_NewRef(Py_None);
  });
}
PyObject* method_detach(PyObject* self, PyObject*) {
  return with_tensor(self, [](ArgandTensor* t) { return wrap(detach(t)).take(); });
}
PyObject* method_detach_(PyObject* self, PyObject*) {
  return with_tensor(self, [&](ArgandTensor* t) {
    detach_in_place(t);
    return Py_NewRef(self);
  });
}
PyObject* with_hook(PyObject* self, PyObject* function, Object (*add)(ArgandTensor*, PyObject*)) {
  return with_tensor(self, [&](ArgandTensor* t) {
    Object handle = add(t, function);
    track(self);
    return handle.take();
  });
}
PyObject* method_register_hook(PyObject* self, PyObject* function) { return with_hook(self, function, add_tensor_hook); }
PyObject* method_register_leaf_hook(PyObject* self, PyObject* function) { return with_hook(self, function, add_leaf_hook); }

// set_() of a tensor: other memory is an in-place change that the storages' versions do not show.
PyObject* g_set = nullptr;  // what it does without histories
PyObject* method_set_(PyObject* self, PyObject* args, PyObject* kwargs) {
  return with_tensor(self, [&](ArgandTensor* t) {
    const ArgandThreadState* state = api->thread_state();
    std::vector<Edge> edges;
    if (state->grad_mode && !state->inference_mode) {
      PyObject* source = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : kwargs ? PyDict_GetItemString(kwargs, "source") : nullptr;
      for (ArgandTensor* from : {t, source && is_tensor(source) ? self_of(source) : nullptr})
        if (from && requires_grad(from)) edges.push_back(gradient_edge(from));
      check_inplace("set_", t, !edges.empty());
    }
    Object function = checked(Py_TYPE(g_set)->tp_descr_get(g_set, self, nullptr));
    Object result = checked(PyObject_Call(function.get(), args, kwargs));
    ensure_meta(t).replaced++;
    if (!edges.empty() && is_differentiable(t->dtype)) set_history(t, not_implemented("set_", std::move(edges), {Tensor::borrow(t)}), 0);
    return result.take();
  });
}
PyObject* method_is_inference(PyObject* self, PyObject*) {
  return with_tensor(self, [](ArgandTensor* t) { return boolean(t->flags & ARGAND_TENSOR_INFERENCE); });
}

PyGetSetDef getset[] = {
    {"requires_grad", get_requires_grad, set_requires_grad_attribute, "Are gradients wanted for this tensor. Settable on leaves.", nullptr},
    {"grad", get_grad, set_grad_attribute, "The accumulated gradient, or None.", nullptr},
    {"grad_dtype", get_grad_dtype, set_grad_dtype_attribute,
     "The dtype that gradients of this leaf are cast to, by default the tensor's own; None: each keeps its own.", nullptr},
    {"grad_fn", get_grad_fn, nullptr, "The node that made this tensor, or None for leaves.", nullptr},
    {"is_leaf", get_is_leaf, nullptr, "Was the tensor made by the user rather than by a recorded operation.", nullptr},
    {"output_nr", get_output_nr, nullptr, "Which result of grad_fn this tensor is.", nullptr},
    {"retains_grad", get_retains_grad, nullptr, "Does this non-leaf keep its gradient (retain_grad).", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyCFunction with_keywords(PyObject* (*f)(PyObject*, PyObject*, PyObject*)) { return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)); }

PyMethodDef methods[] = {
    {"requires_grad_", with_keywords(method_requires_grad_), METH_VARARGS | METH_KEYWORDS,
     "requires_grad_(requires_grad=True)\n\nSets requires_grad; returns self."},
    {"retain_grad", method_retain_grad, METH_NOARGS, "retain_grad()\n\nMakes backward() fill in .grad of this non-leaf too."},
    {"backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(tensor_backward)), METH_FASTCALL | METH_KEYWORDS,
     "backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)\n\n"
     "Adds the gradients of this tensor to `.grad` of all leaves it was made from, or of `inputs` alone. `gradient` has the tensor's shape; a tensor "
     "of\n"
     "one element needs none."},
    {"register_hook", method_register_hook, METH_O,
     "register_hook(fn)\n\nCalls fn(grad) when the tensor's gradient is there; a tensor it returns replaces it. Returns a handle with remove()."},
    {"register_post_accumulate_grad_hook", method_register_leaf_hook, METH_O,
     "register_post_accumulate_grad_hook(fn)\n\nCalls fn(self) after .grad of this leaf was accumulated. Returns a handle with remove()."},
    {"set_", with_keywords(method_set_), METH_VARARGS | METH_KEYWORDS,
     "set_(source=None, storage_offset=0, size=None, stride=None)\n\nLooks at other memory from now on; not differentiable."},
    {"detach_", method_detach_, METH_NOARGS, "detach_()\n\nMakes this tensor a leaf without history."},
    {"is_inference", method_is_inference, METH_NOARGS, "is_inference()\n\nWas the tensor made in inference mode."},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef detach_method[] = {
    {"detach", method_detach, METH_NOARGS, "detach()\n\nThe same memory without gradient history."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int init_tensor_attributes() {
  g_set = PyObject_GetAttrString(reinterpret_cast<PyObject*>(python->tensor_type), "set_");
  if (!g_set || python->tensor_add_getset(getset) || python->tensor_add_methods(methods)) return -1;
  python->tensor_set_collector(traverse_tensor, clear_tensor);
  return api->op_find("detach") ? 0 : python->tensor_add_methods(detach_method);
}

}  // namespace argand::autograd::binding
