// `grad_fn` objects: name, next_functions, metadata and hooks of a node.
#include <optional>
#include <string_view>

#include "packages/autograd/csrc/accumulate_grad.h"
#include "packages/autograd/csrc/op_node.h"
#include "packages/autograd/csrc/python/binding.h"

namespace argand::autograd::binding {

namespace {

struct NodeObject {
  PyObject_HEAD Node* node;  // owned
};

PyTypeObject* node_type = nullptr;

// What the binding keeps with a node, not with its object: the metadata dict.
class NodeData final : public Keeper {
 public:
  ~NodeData() override {
    if (!metadata_ || finalizing()) return;
    Gil gil;
    Py_CLEAR(metadata_);
  }
  PyObject* metadata() {
    if (!metadata_) metadata_ = PyDict_New();
    return metadata_;
  }

 private:
  PyObject* metadata_ = nullptr;
};

Node* node_in(PyObject* o) { return reinterpret_cast<NodeObject*>(o)->node; }

void node_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  Node* node = node_in(o);
  node->binding_object = nullptr;
  node->release();
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* node_repr(PyObject* o) { return PyUnicode_FromFormat("<%s object at %p>", node_in(o)->name(), static_cast<void*>(o)); }
PyObject* node_name(PyObject* o, PyObject*) { return PyUnicode_FromString(node_in(o)->name()); }

PyObject* node_next_functions(PyObject* o, void*) {
  return guard<PyObject*>(nullptr, [&] {
    Node* node = node_in(o);
    Object tuple = checked(PyTuple_New(node->num_edges()));
    for (uint32_t i = 0; i < node->num_edges(); i++) {
      const Edge& edge = node->edges()[i];
      Object next = node_object(edge.fn.get());
      PyTuple_SET_ITEM(tuple.get(), i, checked(Py_BuildValue("(OI)", next.get(), edge.input_nr)).take());
    }
    return tuple.take();
  });
}

PyObject* node_metadata(PyObject* o, void*) {
  Node* node = node_in(o);
  if (!node->binding_data) node->binding_data = new (std::nothrow) NodeData;
  if (!node->binding_data) return PyErr_NoMemory();
  return Py_XNewRef(static_cast<NodeData*>(node->binding_data)->metadata());
}

PyObject* node_sequence(PyObject* o, PyObject*) { return PyLong_FromUnsignedLongLong(node_in(o)->sequence()); }
PyObject* node_register_hook(PyObject* o, PyObject* function) {
  return guard<PyObject*>(nullptr, [&] { return add_node_hook(node_in(o), function, false).take(); });
}
PyObject* node_register_prehook(PyObject* o, PyObject* function) {
  return guard<PyObject*>(nullptr, [&] { return add_node_hook(node_in(o), function, true).take(); });
}

constexpr std::string_view kSavedPrefix = "_saved_";

// What the node of an operator keeps: "_saved_self", "_saved_dim"..., and the leaf of an AccumulateGrad, its "variable". NULL without exception where
// it keeps nothing of that name.
PyObject* saved_attribute(Node* node, PyObject* name) {
  if (node->is_accumulate_grad() && PyUnicode_CompareWithASCIIString(name, "variable") == 0)
    return guard<PyObject*>(nullptr, [&] { return wrap(Tensor(static_cast<AccumulateGrad*>(node)->variable())).take(); });
  const auto* op_node = dynamic_cast<const OpNode*>(node);
  const char* text = op_node ? PyUnicode_AsUTF8(name) : nullptr;
  if (!text || !std::string_view(text).starts_with(kSavedPrefix)) return nullptr;
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    std::optional<OpNode::Kept> kept = op_node->kept(text + kSavedPrefix.size());
    if (!kept) return nullptr;
    const auto tuple = [](size_t n, auto&& entry) {
      Object all = checked(PyTuple_New(static_cast<Py_ssize_t>(n)));
      for (size_t i = 0; i < n; i++) PyTuple_SET_ITEM(all.get(), i, checked(entry(i)).take());
      return all.take();
    };
    if (kept->tensors && !kept->is_list) return wrap(std::move(kept->tensors->front())).take();
    if (kept->tensors) return tuple(kept->tensors->size(), [&](size_t i) { return wrap(std::move((*kept->tensors)[i])).take(); });
    const ArgandValue& v = kept->value;
    switch (v.tag) {
      case ARGAND_TAG_INT_LIST:
        return tuple(v.len, [&](size_t i) { return PyLong_FromLongLong(v.ints[i]); });
      case ARGAND_TAG_BOOL_LIST:
        return tuple(v.len, [&](size_t i) { return PyBool_FromLong(v.ints[i] != 0); });
      case ARGAND_TAG_FLOAT_LIST:
        return tuple(v.len, [&](size_t i) { return PyFloat_FromDouble(v.floats[i]); });
      default:
        return python->from_value(&kept->value);
    }
  });
}

PyObject* node_dir(PyObject* o, PyObject*) {
  Object names = Object::steal(PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__", "O", o));
  const auto* op_node = dynamic_cast<const OpNode*>(node_in(o));
  if (!names || !op_node) return names.take();
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    for (const std::string& name : op_node->kept_names())
      if (!name.empty() && PyList_Append(names.get(), checked(PyUnicode_FromFormat("_saved_%s", name.c_str())).get()) < 0) return nullptr;
    return names.take();
  });
}

// The node of an operator also has what it saved; the node of a custom Function also has its context's attributes (saved_tensors and what forward
// stored).
PyObject* node_getattro(PyObject* o, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(o, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  if (PyObject* saved = saved_attribute(node_in(o), name); saved || PyErr_Occurred()) {
    Py_DECREF(type), Py_XDECREF(error), Py_XDECREF(traceback);
    return saved;
  }
  PyErr_Restore(type, error, traceback);
  PyObject* context = function_context(node_in(o));
  if (!context) return nullptr;
  PyErr_Clear();
  return PyObject_GetAttr(context, name);
}

PyMethodDef methods[] = {
    {"name", node_name, METH_NOARGS, "name()\n\nThe node's name, as \"MulBackward0\"."},
    {"register_hook", node_register_hook, METH_O,
     "register_hook(fn)\n\nCalls fn(grad_inputs, grad_outputs) after the node ran; a tuple it returns replaces grad_inputs. Returns a handle with "
     "remove()."},
    {"register_prehook", node_register_prehook, METH_O,
     "register_prehook(fn)\n\nCalls fn(grad_outputs) before the node runs; a tuple it returns replaces grad_outputs. Returns a handle with "
     "remove()."},
    {"__dir__", node_dir, METH_NOARGS, "__dir__()\n\nThe attributes' names, those of what the node saved included."},
    {"_sequence_nr", node_sequence, METH_NOARGS, "_sequence_nr()\n\nThe order in which the node was made; the engine runs later nodes first."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef getset[] = {
    {"next_functions", node_next_functions, nullptr, "Pairs (node, input number) that gradients go to.", nullptr},
    {"metadata", node_metadata, nullptr, "A dict that lives as long as the node.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace

int init_node_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                         {Py_tp_repr, reinterpret_cast<void*>(node_repr)},
                         {Py_tp_getattro, reinterpret_cast<void*>(node_getattro)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, getset},
                         {Py_tp_doc, const_cast<char*>("A node of the backward graph: `tensor.grad_fn`.")},
                         {0, nullptr}};
  PyType_Spec spec = {"argand_autograd.Node", sizeof(NodeObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  node_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return node_type ? PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(node_type)) : -1;
}

Object node_object(Node* node) {
  if (!node) return Object::borrow(Py_None);
  if (node->binding_object) return Object::borrow(static_cast<PyObject*>(node->binding_object));
  Object o = checked(node_type->tp_alloc(node_type, 0));
  node->retain();
  reinterpret_cast<NodeObject*>(o.get())->node = node;
  node->binding_object = o.get();
  return o;
}

Node* node_of(PyObject* o) {
  if (PyObject_TypeCheck(o, node_type)) return node_in(o);
  fail(ARGAND_TYPE_ERROR, "expected a Node (as tensor.grad_fn), got %s", Py_TYPE(o)->tp_name);
}

}  // namespace argand::autograd::binding
