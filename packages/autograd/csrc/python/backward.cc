// backward() and grad() as Python calls them.
#include <cstring>

#include "packages/autograd/csrc/engine.h"
#include "packages/autograd/csrc/history.h"
#include "packages/autograd/csrc/python/binding.h"
#include "packages/autograd/csrc/tensor_ops.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::autograd::binding {

namespace {

const char* name_of(const BackwardCall& call) { return call.accumulate ? "backward" : "grad"; }

// A tensor, or a (node, number) that stands for one: where gradients enter or are caught, and what they look like.
struct Place {
  ArgandTensor* tensor = nullptr;
  Edge edge;
  TensorFacts facts;
};

Place place_of(PyObject* o, const BackwardCall& call) {
  Place place;
  if (!PyTuple_Check(o)) {
    ArgandTensor* t = place.tensor = self_of(o);
    place.edge = gradient_edge(t);
    place.facts.sizes = t->sizes;
    place.facts.ndim = t->ndim;
    place.facts.device = t->storage->device;
    place.facts.dtype = static_cast<uint8_t>(t->dtype);
    return place;
  }
  PyObject *node, *token = nullptr;
  unsigned int number;
  if (!PyArg_ParseTuple(o, "OI|O", &node, &number, &token)) throw_python();
  Node* fn = node_of(node);
  if (number >= fn->num_inputs() || !fn->input_facts(number).defined())
    fail(ARGAND_RUNTIME_ERROR, "%s: got an edge to gradient %u of %s, which takes %u", name_of(call), number, fn->name(), fn->num_inputs());
  place.edge = Edge{NodeRef::borrow(fn), number};
  place.facts = fn->input_facts(number);
  return place;
}

// The gradient that enters at output number i: the given one, or one for a scalar.
Tensor root_gradient(const BackwardCall& call, const TensorFacts& root, PyObject* given, Py_ssize_t i) {
  const IntList sizes = root.size_list();
  if (given == Py_None) {
    if (numel_of(sizes) != 1)
      fail(ARGAND_RUNTIME_ERROR,
           "%s: grad can be implicitly created only for scalar outputs; got an output of shape %s, pass a gradient of that shape", name_of(call),
           to_string(sizes).c_str());
    if (!is_floating(root.dtype))
      fail(ARGAND_RUNTIME_ERROR, "%s: grad can be implicitly created only for real scalar outputs but got %s", name_of(call), kDTypeName[root.dtype]);
    return tensor_ops::ones(sizes, root.dtype, root.device);
  }
  if (!is_tensor(given))
    fail(ARGAND_TYPE_ERROR, "%s: gradients can be either Tensors or None, but got %s for output %zd", name_of(call), Py_TYPE(given)->tp_name, i);
  Tensor grad = unwrap(given);
  if (grad.sizes() != sizes)
    fail(ARGAND_RUNTIME_ERROR, "%s: Mismatch in shape: grad_output[%zd] has a shape of %s and output[%zd] has a shape of %s.", name_of(call), i,
         to_string(grad.sizes()).c_str(), i, to_string(sizes).c_str());
  if (is_complex(grad.dtype()) != is_complex(root.dtype))
    fail(ARGAND_RUNTIME_ERROR,
         "%s: For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: grad_output[%zd] has a "
         "dtype of %s and output[%zd] has a dtype of %s.",
         name_of(call), i, kDTypeName[grad.dtype()], i, kDTypeName[root.dtype]);
  if (requires_grad(grad.get()) && !call.create_graph) grad = detach(grad.get());
  return grad;
}

// Fills in the edges of outputs; -1 with a Python exception is never returned: errors are thrown.
void add_root(BackwardCall& call, PyObject* output, PyObject* given, Py_ssize_t i) {
  auto [root, edge, facts] = place_of(output, call);
  if (!edge.fn)
    fail(ARGAND_RUNTIME_ERROR,
         "%s: element %zd of tensors does not require grad and does not have a grad_fn; compute it from a tensor with requires_grad=True, outside of "
         "no_grad() and without detach()",
         name_of(call), i);
  Tensor grad = root_gradient(call, facts, given, i);
  validate_gradient(edge.fn->input_facts(edge.input_nr), grad, name_of(call), static_cast<uint32_t>(i));
  call.roots.push_back(std::move(edge));
  call.grads.push_back(std::move(grad));
}

void add_input(BackwardCall& call, PyObject* input, Py_ssize_t i) {
  auto [t, edge, facts] = place_of(input, call);
  if (!edge.fn)
    fail(ARGAND_RUNTIME_ERROR,
         "%s: One of the differentiated Tensors does not require grad; call requires_grad_() on input %zd before the outputs are computed",
         name_of(call), i);
  if (call.accumulate && t) retain_grad(t);
  call.inputs.push_back(std::move(edge));
}

// Runs without the GIL; references that the call holds are dropped with it.
std::vector<Tensor> run(BackwardCall call) {
  std::vector<Tensor> results;
  {
    WithoutGil released;
    results = run_backward(std::move(call));
  }
  return results;
}

Object sequence_of_tensors(PyObject* o) {
  const bool edge = PyTuple_Check(o) && !PyTuple_CheckExact(o);  // GradientEdge, a named tuple
  return checked(edge || is_tensor(o) ? PyTuple_Pack(1, o) : PySequence_Tuple(o));
}

int truth(PyObject* o) {
  const int value = PyObject_IsTrue(o);
  if (value < 0) throw_python();
  return value;
}

void warn_of_cycle(const BackwardCall& call) {
  if (call.create_graph && call.accumulate &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can cause a "
                   "memory leak. Use autograd.grad when creating the graph, or set .grad to None after use.",
                   1) < 0)
    throw_python();
}

}  // namespace

// _run_backward(outputs, gradients, retain_graph, create_graph, inputs or None, accumulate) -> tuple of gradients, or None
PyObject* run_backward_function(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    if (nargs != 6 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[1]) || PyTuple_GET_SIZE(args[0]) != PyTuple_GET_SIZE(args[1]))
      fail(ARGAND_TYPE_ERROR, "_run_backward: expected a tuple of outputs and one of as many gradients");
    BackwardCall call;
    call.retain_graph = truth(args[2]);
    call.create_graph = truth(args[3]);
    call.accumulate = truth(args[5]);
    warn_of_cycle(call);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); i++) add_root(call, PyTuple_GET_ITEM(args[0], i), PyTuple_GET_ITEM(args[1], i), i);
    if (args[4] != Py_None) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[4]); i++) add_input(call, PyTuple_GET_ITEM(args[4], i), i);
    }
    const bool accumulate = call.accumulate;
    std::vector<Tensor> grads = run(std::move(call));
    if (accumulate) Py_RETURN_NONE;
    Object tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(grads.size())));
    for (size_t i = 0; i < grads.size(); i++) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), wrap(std::move(grads[i])).take());
    return tuple.take();
  });
}

// Tensor.backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)
PyObject* tensor_backward(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static constexpr const char* names[] = {"gradient", "retain_graph", "create_graph", "inputs"};
  PyObject* values[4] = {Py_None, Py_None, Py_False, Py_None};
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    if (nargs > 4) fail(ARGAND_TYPE_ERROR, "backward(): got %zd arguments, expected at most 4", nargs);
    for (Py_ssize_t i = 0; i < nargs; i++) values[i] = args[i];
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
      const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, k));
      Py_ssize_t at = 0;
      while (at < 4 && std::strcmp(names[at], name)) at++;
      if (at == 4)
        fail(ARGAND_TYPE_ERROR, "backward(): got an unexpected keyword argument '%s', expected gradient, retain_graph, create_graph or inputs", name);
      if (at < nargs) fail(ARGAND_TYPE_ERROR, "backward(): got multiple values for argument '%s'", name);
      values[at] = args[nargs + k];
    }
    BackwardCall call;
    call.create_graph = truth(values[2]);
    call.retain_graph = values[1] == Py_None ? call.create_graph : truth(values[1]);
    warn_of_cycle(call);
    Object gradient = Object::borrow(values[0]);
    if (PyList_Check(values[0]) || PyTuple_Check(values[0])) {  // one for each of one output
      gradient = checked(PySequence_Tuple(values[0]));
      if (PyTuple_GET_SIZE(gradient.get()) != 1)
        fail(ARGAND_RUNTIME_ERROR, "backward: got 1 tensors and %zd gradients", PyTuple_GET_SIZE(gradient.get()));
      gradient = Object::borrow(PyTuple_GET_ITEM(gradient.get(), 0));
    }
    add_root(call, self, gradient.get(), 0);
    if (values[3] != Py_None) {
      Object inputs = sequence_of_tensors(values[3]);
      if (PyTuple_GET_SIZE(inputs.get()) == 0) fail(ARGAND_RUNTIME_ERROR, "inputs argument to backward() cannot be empty");
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs.get()); i++) add_input(call, PyTuple_GET_ITEM(inputs.get(), i), i);
    }
    run(std::move(call));
    Py_RETURN_NONE;
  });
}

}  // namespace argand::autograd::binding
