// Python modes: objects on a thread's stack that see every operator call of the thread.
#include <vector>

#include "packages/c10/csrc/abi/python_entries.h"
#include "packages/c10/csrc/python/binding.h"

namespace argand::py {

static thread_local std::vector<PyObject*> modes;  // owned; the last is the innermost

static thread_local ArgandDevice makes_on = ARGAND_DEVICE(ARGAND_CPU, 0);

// A default device counts as a mode, so that programs that were traced without it are not used.
static void update_key() {
  uint64_t bit = ARGAND_KEYBIT(ARGAND_KEY_PYTHON_MODE);
  ArgandThreadState* state = api->thread_state();
  const bool active = !modes.empty() || ARGAND_DEVICE_TYPE(makes_on) != ARGAND_CPU;
  state->include_keys = active ? state->include_keys | bit : state->include_keys & ~bit;
}

ArgandDevice default_device() { return makes_on; }
void set_default_device(ArgandDevice device) {
  makes_on = device;
  update_key();
}

static PyObject* set_default_device_of(PyObject*, PyObject* o) {
  ArgandDevice device = ARGAND_DEVICE(ARGAND_CPU, 0);
  const int status = o == Py_None ? 1 : device_from(o, &device);
  if (status == 0) PyErr_Format(PyExc_TypeError, "set_default_device(): got %s, expected a device, str or None", Py_TYPE(o)->tp_name);
  if (status <= 0) return nullptr;
  set_default_device(device);
  Py_RETURN_NONE;
}
static PyObject* get_default_device(PyObject*, PyObject*) {
  ArgandDevice device = makes_on;
  const ArgandDeviceType type = ARGAND_DEVICE_TYPE(device);
  if (type == ARGAND_CPU || type == ARGAND_META) return device_object(ARGAND_DEVICE(type, 0xff));
  if (int failed = api->resolve_device("get_default_device", device, &device)) return raise(failed);
  return device_object(device);
}

static PyObject* push_mode(PyObject*, PyObject* mode) {
  modes.push_back(Py_NewRef(mode));
  update_key();
  Py_RETURN_NONE;
}
static PyObject* pop_mode(PyObject*, PyObject* mode) {
  if (modes.empty() || modes.back() != mode) {
    PyErr_SetString(PyExc_RuntimeError, "ArgandDispatchMode: left in another order than entered; leave the innermost mode first");
    return nullptr;
  }
  modes.pop_back();
  Py_DECREF(mode);
  update_key();
  Py_RETURN_NONE;
}
static PyObject* mode_stack(PyObject*, PyObject*) {
  Ref list(PyList_New(static_cast<Py_ssize_t>(modes.size())));
  for (size_t i = 0; list && i < modes.size(); i++) PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Py_NewRef(modes[i]));
  return list.take();
}

// Takes the innermost mode off while it works: its own calls go to the modes around it.
class InnermostMode {
 public:
  InnermostMode() : mode_(modes.back()) {
    modes.pop_back();
    update_key();
  }
  ~InnermostMode() {
    modes.push_back(mode_);
    update_key();
  }
  PyObject* get() const { return mode_; }

 private:
  PyObject* mode_;
};

static PyObject* tensor_types(const ArgandOperator* op, const ArgandValue* args) {
  Ref found(PyDict_New());  // an ordered set
  auto add = [&](ArgandTensor* t) {
    if (!t || !found) return;
    retain(t);
    Ref o(wrap(t));
    if (!o || PyDict_SetItem(found.get(), reinterpret_cast<PyObject*>(Py_TYPE(o.get())), Py_None) < 0) found = Ref();
  };
  for (int i = 0; i < op->n_args; i++) {
    if (args[i].tag == ARGAND_TAG_TENSOR) add(args[i].t);
    for (uint32_t k = 0; args[i].tag == ARGAND_TAG_TENSOR_LIST && k < args[i].len; k++) add(args[i].tensors[k]);
  }
  return found ? PySequence_Tuple(found.get()) : nullptr;
}

static int mode_kernel(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets) {
  if (modes.empty()) return api->redispatch(op, keys & ~ARGAND_KEYBIT(ARGAND_KEY_PYTHON_MODE), args, rets);
  PyGILState_STATE gil = PyGILState_Ensure();
  int status = 0;
  {
    InnermostMode mode;
    Ref positional, keywords, types(tensor_types(op, args)), result;
    PyObject* overload = types ? overload_object(op) : nullptr;  // borrowed
    if (overload && python_arguments(op, args, &positional, &keywords) == 0) {
      PyObject* call_args[5] = {mode.get(), overload, types.get(), positional.get(), keywords.get()};
      result = Ref(PyObject_VectorcallMethod(names.argand_dispatch, call_args, 5, nullptr));
    }
    if (!result || python_results(op, result.get(), rets) < 0) status = api->set_error(ARGAND_PYTHON_ERROR, "a Python exception is set");
  }
  PyGILState_Release(gil);
  return status;
}

static thread_local PyObject* reader = nullptr;  // owned

static PyObject* entry_reader = nullptr;  // owned

static bool may_read_entry(PyObject* tensor, const char* what, bool lends) {
  if (!entry_reader) return true;
  Ref answer(PyObject_CallFunction(entry_reader, "OsO", tensor, what, lends ? Py_True : Py_False));
  return static_cast<bool>(answer);
}

bool may_read(ArgandTensor* t) {
  const bool entry = argand::stands_for_entries(t);
  if (!reader && !entry) return true;
  retain(t);
  Ref tensor(wrap(t));
  if (!tensor || (entry && !may_read_entry(tensor.get(), "the elements", false))) return false;
  if (!reader) return true;
  Ref answer(PyObject_CallOneArg(reader, tensor.get()));
  return static_cast<bool>(answer);
}

bool may_lend(ArgandTensor* t) {
  if (!argand::stands_for_entries(t)) return true;
  retain(t);
  Ref tensor(wrap(t));
  return tensor && may_read_entry(tensor.get(), "the memory", true);
}

static PyObject* set_entry_reader(PyObject*, PyObject* asked) {
  Py_XSETREF(entry_reader, Py_NewRef(asked));
  Py_RETURN_NONE;
}

static PyObject* read_entry(PyObject*, PyObject* args) {
  PyObject* tensor;
  const char* what;
  if (!PyArg_ParseTuple(args, "Os:_read_entry", &tensor, &what) || !may_read_entry(tensor, what, true)) return nullptr;
  Py_RETURN_NONE;
}

static PyObject* stands_for_entries_function(PyObject*, PyObject* tensor) {
  const ArgandTensor* t = unwrap(tensor);
  return t ? PyBool_FromLong(argand::stands_for_entries(t)) : nullptr;
}

static PyObject* exchange_reader(PyObject*, PyObject* asked) {
  PyObject* before = reader ? reader : Py_NewRef(Py_None);
  reader = asked == Py_None ? nullptr : Py_NewRef(asked);
  return before;
}

static PyMethodDef mode_functions[] = {
    {"_exchange_reader", exchange_reader, METH_O,
     "Sets what this thread calls with a tensor before its elements become numbers, or None; what it was."},
    {"_set_entry_reader", set_entry_reader, METH_O,
     "Sets what is called with (tensor, what of it, whether its memory is lent) before a tensor that stands for entries is read; it raises, or the "
     "memory is right."},
    {"_read_entry", read_entry, METH_VARARGS, "Calls what `_set_entry_reader` has set, for a reader of memory."},
    {"_stands_for_entries", stands_for_entries_function, METH_O, "Whether a tensor stands for all entries of a dimension."},
    {"_push_mode", push_mode, METH_O, nullptr},
    {"_pop_mode", pop_mode, METH_O, nullptr},
    {"_mode_stack", mode_stack, METH_NOARGS, "The modes of this thread, innermost last."},
    {"set_default_device", set_default_device_of, METH_O, "Sets where this thread makes tensors when no device is given; None: on the CPU."},
    {"get_default_device", get_default_device, METH_NOARGS, "Where this thread makes tensors when no device is given."},
    {nullptr, nullptr, 0, nullptr}};

int init_modes(PyObject* module) {
  if (api->set_fallback(ARGAND_KEY_PYTHON_MODE, mode_kernel)) return -1;
  return PyModule_AddFunctions(module, mode_functions);
}

}  // namespace argand::py
