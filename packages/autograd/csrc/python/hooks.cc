// Hooks over Python callables, and the handles that remove them.
#include <algorithm>

#include "packages/autograd/csrc/history.h"
#include "packages/autograd/csrc/python/binding.h"
#include "packages/autograd/csrc/saved_tensor.h"

namespace argand::autograd::binding {

namespace {

// A Python callable that can be taken away.
class Callable {
 public:
  explicit Callable(PyObject* function) : function_(Py_NewRef(function)) {}
  ~Callable() {
    if (!function_ || finalizing()) return;
    Gil gil;
    Py_CLEAR(function_);
  }
  Callable(const Callable&) = delete;
  Callable& operator=(const Callable&) = delete;
  void remove() { Py_CLEAR(function_); }
  int traverse(visitproc visit, void* arg) {
    Py_VISIT(function_);
    return 0;
  }
  bool removed() const { return !function_; }
  Object get() const { return Object::borrow(function_); }  // NULL when removed

 private:
  PyObject* function_;
};
using Shared = std::shared_ptr<Callable>;

// A hook over a callable.
class CallsPython {
 public:
  explicit CallsPython(Shared f) : f_(std::move(f)) {}
  const Shared& callable() const { return f_; }

 protected:
  ~CallsPython() = default;
  const Shared f_;
};

Object tuple_of(const Tensor* tensors, uint32_t n) {
  Object tuple = checked(PyTuple_New(n));
  for (uint32_t i = 0; i < n; i++) PyTuple_SET_ITEM(tuple.get(), i, wrap(tensors[i]).take());
  return tuple;
}

// Replaces gradients by what a hook returned for them.
void take_results(PyObject* result, Tensor* grads, uint32_t n, const char* what) {
  if (result == Py_None) return;
  if (n == 1 && is_tensor(result)) {
    grads[0] = unwrap(result);
    return;
  }
  if (!PyTuple_Check(result) || PyTuple_GET_SIZE(result) != static_cast<Py_ssize_t>(n))
    fail(ARGAND_TYPE_ERROR, "%s: got %s from the hook, expected None or a tuple of %u gradients", what, Py_TYPE(result)->tp_name, n);
  for (uint32_t i = 0; i < n; i++) {
    PyObject* item = PyTuple_GET_ITEM(result, i);
    grads[i] = item == Py_None ? Tensor() : unwrap(item);
  }
}

class PythonTensorHook final : public TensorHook, public CallsPython {
 public:
  using CallsPython::CallsPython;
  bool live() const override { return !f_->removed(); }
  void call(Tensor& grad) override {
    Gil gil;
    Object function = f_->get();
    if (!function) return;
    Object result = checked(PyObject_CallOneArg(function.get(), wrap(grad).get()));
    if (result.get() == Py_None) return;
    if (!is_tensor(result.get()))
      fail(ARGAND_TYPE_ERROR, "register_hook: got %s from the hook, expected None or a Tensor", Py_TYPE(result.get())->tp_name);
    Tensor replacement = unwrap(result.get());
    if (replacement.sizes() != grad.sizes() || replacement.dtype() != grad.dtype())
      fail(ARGAND_RUNTIME_ERROR, "register_hook: got a gradient of shape %s and dtype %s from the hook, expected shape %s and dtype %s",
           to_string(replacement.sizes()).c_str(), kDTypeName[replacement.dtype()], to_string(grad.sizes()).c_str(), kDTypeName[grad.dtype()]);
    grad = std::move(replacement);
  }
};

class PythonLeafHook final : public LeafHook, public CallsPython {
 public:
  using CallsPython::CallsPython;
  bool live() const override { return !f_->removed(); }
  void call(const Tensor& leaf) override {
    Gil gil;
    if (Object function = f_->get()) checked(PyObject_CallOneArg(function.get(), wrap(leaf).get()));
  }
};

class PythonPreHook final : public NodePreHook, public CallsPython {
 public:
  using CallsPython::CallsPython;
  bool live() const override { return !f_->removed(); }
  void call(Tensor* grads, uint32_t n) override {
    Gil gil;
    Object function = f_->get();
    if (!function) return;
    Object result = checked(PyObject_CallOneArg(function.get(), tuple_of(grads, n).get()));
    take_results(result.get(), grads, n, "register_prehook");
  }
};

class PythonPostHook final : public NodePostHook, public CallsPython {
 public:
  using CallsPython::CallsPython;
  bool live() const override { return !f_->removed(); }
  void call(Tensor* made, uint32_t n_made, const Tensor* given, uint32_t n_given) override {
    Gil gil;
    Object function = f_->get();
    if (!function) return;
    Object result = checked(PyObject_CallFunctionObjArgs(function.get(), tuple_of(made, n_made).get(), tuple_of(given, n_given).get(), nullptr));
    take_results(result.get(), made, n_made, "register_hook");
  }
};

// ---- handles -------------------------------------------------------------------------------------------------------
struct HandleObject {
  PyObject_HEAD Shared* callable;
};
PyTypeObject* handle_type = nullptr;

Object new_handle(const Shared& callable) {
  Object o = checked(handle_type->tp_alloc(handle_type, 0));
  reinterpret_cast<HandleObject*>(o.get())->callable = new Shared(callable);
  return o;
}
void handle_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  delete reinterpret_cast<HandleObject*>(o)->callable;
  type->tp_free(o);
  Py_DECREF(type);
}
PyObject* handle_remove(PyObject* o, PyObject*) {
  (*reinterpret_cast<HandleObject*>(o)->callable)->remove();
  Py_RETURN_NONE;
}
PyObject* handle_enter(PyObject* o, PyObject*) { return Py_NewRef(o); }
PyMethodDef handle_methods[] = {
    {"remove", handle_remove, METH_NOARGS, "remove()\n\nTakes the hook away."},
    {"__enter__", handle_enter, METH_NOARGS, nullptr},
    {"__exit__", handle_remove, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void check_callable(PyObject* function, const char* what) {
  if (!PyCallable_Check(function)) fail(ARGAND_TYPE_ERROR, "%s: got %s, expected a callable", what, Py_TYPE(function)->tp_name);
}

// Appends a hook and drops those that were removed.
template <class List, class Entry, class IsLive>
void append(List& list, Entry entry, IsLive is_live) {
  list.erase(std::remove_if(list.begin(), list.end(), [&](const auto& e) { return !is_live(e); }), list.end());
  list.push_back(std::move(entry));
}

// ---- saved tensors ---------------------------------------------------------------------------------------------------
class PythonPacked final : public PackedTensor {
 public:
  PythonPacked(PyObject* packed, PyObject* unpack) : packed_(packed), unpack_(Py_NewRef(unpack)) {}
  ~PythonPacked() override {
    if (finalizing()) return;
    Gil gil;
    Py_CLEAR(packed_);
    Py_CLEAR(unpack_);
  }
  Tensor unpack() override {
    Gil gil;
    Object result = checked(PyObject_CallOneArg(unpack_, packed_));
    if (!is_tensor(result.get()))
      fail(ARGAND_TYPE_ERROR, "saved_tensors_hooks: got %s from unpack_hook, expected a Tensor", Py_TYPE(result.get())->tp_name);
    return argand::autograd::binding::unwrap(result.get());
  }

 private:
  PyObject *packed_, *unpack_;
};

class PythonSavedTensorHooks final : public SavedTensorHooks {
 public:
  PythonSavedTensorHooks(PyObject* pack, PyObject* unpack) : pack_(Object::borrow(pack)), unpack_(Object::borrow(unpack)) {}
  PackedTensor* pack(const Tensor& t) override {
    Gil gil;
    Object object = wrap(t);
    return new PythonPacked(checked(PyObject_CallOneArg(pack_.get(), object.get())).take(), unpack_.get());
  }
  SavedTensorHooks* outer = nullptr;

 private:
  Object pack_, unpack_;
};
thread_local std::vector<std::unique_ptr<PythonSavedTensorHooks>> t_saved_hooks;

}  // namespace

int init_handle_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(handle_dealloc)},
                         {Py_tp_methods, handle_methods},
                         {Py_tp_doc, const_cast<char*>("Removes a hook: call remove(), or use it as a context manager.")},
                         {0, nullptr}};
  PyType_Spec spec = {"argand_autograd.RemovableHandle", sizeof(HandleObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  handle_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return handle_type ? PyModule_AddObjectRef(module, "RemovableHandle", reinterpret_cast<PyObject*>(handle_type)) : -1;
}

namespace {

// Calls f(callable) for the tensor hooks that go away with `t`, and gives the node that does, or NULL.
template <class F>
Node* for_each_callable(ArgandTensor* t, F&& f) {
  if (!t->meta) return nullptr;
  const auto call = [&](const Keeper* hook) {
    if (const auto* python_hook = dynamic_cast<const CallsPython*>(hook)) f(python_hook->callable());
  };
  const AutogradMeta& meta = *meta_of(t);
  if (meta.hooks) {
    for (const auto& hook : meta.hooks->on_grad) call(hook.get());
    for (const auto& hook : meta.hooks->post_accumulate) call(hook.get());
  }
  Node* node = meta.grad_fn && meta.grad_fn->has_one_owner() ? meta.grad_fn.get() : nullptr;
  if (node && node->hooks()) {
    for (const auto& entry : node->hooks()->on_tensor) call(entry.hook.get());
  }
  return node;
}

}  // namespace

int traverse_tensor(ArgandTensor* t, visitproc visit, void* arg) {
  int status = 0;
  Node* node = for_each_callable(t, [&](const Shared& c) { status = status ? status : c->traverse(visit, arg); });
  if (PyObject* context = node && !status ? function_context(node) : nullptr) Py_VISIT(context);
  return status;
}

void clear_tensor(ArgandTensor* t) {
  std::vector<Shared> all;  // a callable's end may run code that changes the hooks
  for_each_callable(t, [&](const Shared& c) { all.push_back(c); });
  for (const Shared& c : all) c->remove();
}

Object add_tensor_hook(ArgandTensor* t, PyObject* function) {
  check_callable(function, "register_hook");
  if (!requires_grad(t)) fail(ARGAND_RUNTIME_ERROR, "cannot register a hook on a tensor that doesn't require gradient");
  auto callable = std::make_shared<Callable>(function);
  auto hook = std::make_shared<PythonTensorHook>(callable);
  if (Node* fn = grad_fn(t)) {
    append(fn->ensure_hooks().on_tensor, NodeHooks::OnTensor{output_nr(t), std::move(hook)}, [](const auto& e) { return e.hook->live(); });
  } else {
    append(ensure_meta(t).ensure_hooks().on_grad, std::shared_ptr<TensorHook>(std::move(hook)), [](const auto& e) { return e->live(); });
  }
  return new_handle(callable);
}

Object add_leaf_hook(ArgandTensor* t, PyObject* function) {
  check_callable(function, "register_post_accumulate_grad_hook");
  if (!requires_grad(t)) fail(ARGAND_RUNTIME_ERROR, "cannot register a hook on a tensor that doesn't require gradient");
  if (grad_fn(t)) fail(ARGAND_RUNTIME_ERROR, "post accumulate grad hooks cannot be registered on non-leaf tensors");
  auto callable = std::make_shared<Callable>(function);
  append(ensure_meta(t).ensure_hooks().post_accumulate, std::shared_ptr<LeafHook>(std::make_shared<PythonLeafHook>(callable)),
         [](const auto& e) { return e->live(); });
  return new_handle(callable);
}

Object add_node_hook(Node* node, PyObject* function, bool before) {
  check_callable(function, before ? "register_prehook" : "register_hook");
  auto callable = std::make_shared<Callable>(function);
  if (before) {
    append(node->ensure_hooks().pre, std::shared_ptr<NodePreHook>(std::make_shared<PythonPreHook>(callable)),
           [](const auto& e) { return e->live(); });
  } else {
    append(node->ensure_hooks().post, std::shared_ptr<NodePostHook>(std::make_shared<PythonPostHook>(callable)),
           [](const auto& e) { return e->live(); });
  }
  return new_handle(callable);
}

PyObject* push_saved_tensor_hooks(PyObject*, PyObject* args) {
  PyObject *pack, *unpack;
  if (!PyArg_ParseTuple(args, "OO:_push_saved_tensor_hooks", &pack, &unpack)) return nullptr;
  return guard<PyObject*>(nullptr, [&] {
    check_callable(pack, "saved_tensors_hooks");
    check_callable(unpack, "saved_tensors_hooks");
    t_saved_hooks.push_back(std::make_unique<PythonSavedTensorHooks>(pack, unpack));
    t_saved_hooks.back()->outer = set_saved_tensor_hooks(t_saved_hooks.back().get());
    return Py_NewRef(Py_None);
  });
}

PyObject* pop_saved_tensor_hooks(PyObject*, PyObject*) {
  if (t_saved_hooks.empty()) {
    PyErr_SetString(PyExc_RuntimeError, "saved_tensors_hooks: got an exit without an enter in this thread");
    return nullptr;
  }
  set_saved_tensor_hooks(t_saved_hooks.back()->outer);
  t_saved_hooks.pop_back();
  Py_RETURN_NONE;
}

PyObject* has_saved_tensor_hooks(PyObject*, PyObject*) { return PyBool_FromLong(!t_saved_hooks.empty()); }

}  // namespace argand::autograd::binding
