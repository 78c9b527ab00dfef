#include "packages/dynamo/csrc/source.h"

#include <cstring>

#include "packages/dynamo/csrc/constant.h"
#include "packages/dynamo/csrc/instance_dict.h"
#include "packages/dynamo/csrc/lru_cache.h"

namespace argand::dynamo {

namespace {

enum class Payload : uint8_t { None, Name, Index, Key, Call };
struct StepSpec {
  const char* name;
  Payload payload;
};
// In the order of StepKind.
constexpr StepSpec kSteps[] = {{"arg", Payload::Index},          {"cell", Payload::Name},      {"global", Payload::Name}, {"builtin", Payload::Name},
                               {"module", Payload::Name},        {"attr", Payload::Name},      {"item", Payload::Key},    {"dict_item", Payload::Key},
                               {"instance_dict", Payload::Name}, {"type", Payload::None},      {"grad", Payload::None},   {"closure", Payload::Name},
                               {"default", Payload::Index},      {"kwdefault", Payload::Name}, {"func", Payload::None},   {"self", Payload::None},
                               {"key", Payload::Index},          {"value", Payload::Index},    {"len", Payload::None},    {"call", Payload::Call},
                               {"held", Payload::Call}};
constexpr size_t kNumSteps = sizeof kSteps / sizeof *kSteps;

PyObject *name_grad, *builtins_dict;

// The exception of a failed look-up means: there is no such value.
PyObject* or_missing(PyObject* value) {
  if (!value) PyErr_Clear();
  return value;
}

PyObject* dict_item(PyObject* dict, PyObject* key) {
  if (!dict || !PyDict_Check(dict)) return nullptr;
  return Py_XNewRef(or_missing(PyDict_GetItemWithError(dict, key)));
}

PyObject* cell_content(const Call& call, PyObject* name) {
  if (!call.closure || !call.names) return nullptr;
  const Py_ssize_t n = PyTuple_GET_SIZE(call.closure), n_names = PyTuple_GET_SIZE(call.names) - call.first_name;
  for (Py_ssize_t i = 0; i < n && i < n_names; i++) {
    PyObject* candidate = PyTuple_GET_ITEM(call.names, call.first_name + i);
    if (candidate != name && PyUnicode_Compare(candidate, name) != 0) continue;
    PyObject* cell = PyTuple_GET_ITEM(call.closure, i);
    return PyCell_Check(cell) ? Py_XNewRef(PyCell_GET(cell)) : nullptr;
  }
  return nullptr;
}

PyObject* item(const Step& step, PyObject* parent) {
  if (step.has_index && (PyTuple_Check(parent) || PyList_Check(parent))) {
    const Py_ssize_t n = PyTuple_Check(parent) ? PyTuple_GET_SIZE(parent) : PyList_GET_SIZE(parent);
    const Py_ssize_t i = step.index < 0 ? step.index + n : step.index;
    if (i < 0 || i >= n) return nullptr;
    return Py_NewRef(PyTuple_Check(parent) ? PyTuple_GET_ITEM(parent, i) : PyList_GET_ITEM(parent, i));
  }
  if (PyDict_Check(parent)) return dict_item(parent, step.name.get());
  return or_missing(PyObject_GetItem(parent, step.name.get()));
}

// Entries of a module's dict are read there: a lazy module's __getattr__ runs only when there is none.
PyObject* attribute(PyObject* parent, PyObject* name) {
  if (PyModule_Check(parent)) {
    if (PyObject* value = dict_item(PyModule_GetDict(parent), name)) return value;
  }
  return or_missing(PyObject_GetAttr(parent, name));
}

PyObject* default_value(PyObject* function, Py_ssize_t i) {
  PyObject* defaults = PyFunction_Check(function) ? PyFunction_GET_DEFAULTS(function) : nullptr;
  if (!defaults || !PyTuple_Check(defaults) || i >= PyTuple_GET_SIZE(defaults)) return nullptr;
  return Py_NewRef(PyTuple_GET_ITEM(defaults, i));
}

PyObject* key_at(PyObject* dict, Py_ssize_t index) {
  if (!PyDict_Check(dict)) return nullptr;
  if (!PyDict_CheckExact(dict)) {  // an ordered dict has an order of its own
    Ref keys(or_missing(PySequence_List(dict)));
    return keys && index < PyList_GET_SIZE(keys.get()) ? Py_NewRef(PyList_GET_ITEM(keys.get(), index)) : nullptr;
  }
  PyObject *key, *value;
  for (Py_ssize_t i = 0, position = 0; PyDict_Next(dict, &position, &key, &value); i++)
    if (i == index) return Py_NewRef(key);
  return nullptr;
}

PyObject* length(PyObject* o) {
  const Py_ssize_t n = PyObject_Size(o);
  if (n >= 0) return PyLong_FromSsize_t(n);
  PyErr_Clear();
  return nullptr;
}

// ((("const", value, text) or ("source", path), ...), names of the last of them)
void parse_call(Step& step, PyObject* value) {
  const auto refuse = [&] {
    PyErr_Format(PyExc_TypeError, "GuardTree: source step '%s' got %R, expected (arguments, names)", kSteps[static_cast<size_t>(step.kind)].name,
                 value);
    throw PythonError{};
  };
  PyObject *arguments, *names;
  if (!is_constant(value) || !PyTuple_Check(value) || !PyArg_ParseTuple(value, "O!O!", &PyTuple_Type, &arguments, &PyTuple_Type, &names)) refuse();
  if (PyTuple_GET_SIZE(names) > PyTuple_GET_SIZE(arguments)) refuse();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++)
    if (!PyUnicode_Check(PyTuple_GET_ITEM(names, i))) refuse();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); i++) {
    PyObject *item = PyTuple_GET_ITEM(arguments, i), *given = nullptr, *text = nullptr;
    const char* kind;
    if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "sO|O", &kind, &given, &text)) refuse();
    CallArgument& argument = step.arguments.emplace_back();
    if (std::strcmp(kind, "const") == 0) {
      argument.constant = Ref::borrow(given);
      continue;
    }
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) == 0) refuse();
    for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(given); j++) argument.path.push_back(parse_step(PyTuple_GET_ITEM(given, j), j == 0));
  }
  step.keywords = Ref::borrow(names);
}

PyObject* follow_path(const std::vector<Step>& path, const Call& call) {
  Ref value;
  for (const Step& step : path) {
    value = Ref(follow(step, value.get(), call));
    if (!value) return nullptr;
  }
  return value.take();
}

PyObject* call_result(const Step& step, PyObject* function, const Call& call) {
  std::vector<Ref> held;
  std::vector<PyObject*> given{nullptr};  // the first is the callee's
  for (const CallArgument& argument : step.arguments) {
    if (argument.path.empty()) {
      given.push_back(argument.constant.get());
      continue;
    }
    held.emplace_back(follow_path(argument.path, call));
    if (!held.back()) return nullptr;
    given.push_back(held.back().get());
  }
  const Py_ssize_t by_name = PyTuple_GET_SIZE(step.keywords.get());
  if (step.kind == StepKind::Held && !cache_holds(function, given.data() + 1, static_cast<Py_ssize_t>(step.arguments.size()), step.keywords.get()))
    return nullptr;
  const size_t by_place = step.arguments.size() - static_cast<size_t>(by_name);
  PyObject* result =
      PyObject_Vectorcall(function, given.data() + 1, by_place | PY_VECTORCALL_ARGUMENTS_OFFSET, by_name ? step.keywords.get() : nullptr);
  if (!result && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();  // not lost with the guard
  return or_missing(result);
}

void parse_payload(Step& step, Payload payload, PyObject* value) {
  step.name = Ref::borrow(value);
  if (payload == Payload::Call) return parse_call(step, value);
  if (payload == Payload::Name && PyUnicode_CheckExact(value)) {
    PyObject* interned = step.name.take();
    PyUnicode_InternInPlace(&interned);
    step.name = Ref(interned);
    return;
  }
  if (PyLong_CheckExact(value) && payload != Payload::Name) {
    step.index = PyLong_AsSsize_t(value);
    if (step.index == -1 && PyErr_Occurred()) {
      if (payload == Payload::Index) throw PythonError{};
      PyErr_Clear();  // a large int can still be a dict key
    } else {
      step.has_index = true;
    }
    if (payload == Payload::Key || step.index >= 0) return;
  }
  if (payload == Payload::Key && is_constant(value)) return;
  PyErr_Format(PyExc_TypeError, "GuardTree: source step '%s' got %R, expected %s", kSteps[static_cast<size_t>(step.kind)].name, value,
               payload == Payload::Name    ? "a str"
               : payload == Payload::Index ? "an index >= 0"
                                           : "a constant");
  throw PythonError{};
}

}  // namespace

Call call_of(PyFunctionObject* function) {
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  Call call;
  call.globals = function->func_globals;
  call.closure = function->func_closure;
  call.names = code->co_localsplusnames;  // free variables come last
  call.first_name = code->co_nlocalsplus - code->co_nfreevars;
  return call;
}

bool Step::same(const Step& other) const {
  if (kind != other.kind || !name != !other.name) return false;
  return !name || equals_constant(name.get(), other.name.get());
}

Step parse_step(PyObject* step, bool first) {
  PyObject* kind = PyTuple_Check(step) && PyTuple_GET_SIZE(step) ? PyTuple_GET_ITEM(step, 0) : nullptr;
  const char* text = kind && PyUnicode_Check(kind) ? PyUnicode_AsUTF8(kind) : nullptr;
  if (!text) {
    PyErr_Format(PyExc_TypeError, "GuardTree: got source step %R, expected a tuple such as ('attr', 'weight')", step);
    throw PythonError{};
  }
  for (size_t i = 0; i < kNumSteps; i++) {
    const StepSpec& spec = kSteps[i];
    if (std::strcmp(spec.name, text) != 0) continue;
    Step result;
    result.kind = static_cast<StepKind>(i);
    if (first != (result.kind <= StepKind::Module)) {
      PyErr_Format(PyExc_ValueError, "GuardTree: got step '%s' %s; paths begin, and only begin, with arg, cell, global, builtin or module", text,
                   first ? "at the beginning of a source" : "inside a source");
      throw PythonError{};
    }
    if (PyTuple_GET_SIZE(step) != (spec.payload == Payload::None ? 1 : 2)) {
      PyErr_Format(PyExc_ValueError, "GuardTree: source step %R has %zd parts, expected %d", step, PyTuple_GET_SIZE(step),
                   spec.payload == Payload::None ? 1 : 2);
      throw PythonError{};
    }
    if (spec.payload != Payload::None) parse_payload(result, spec.payload, PyTuple_GET_ITEM(step, 1));
    return result;
  }
  PyErr_Format(PyExc_ValueError,
               "GuardTree: got source step '%s', expected arg, cell, global, builtin, module, attr, item, dict_item, instance_dict, type, "
               "grad, closure, default, kwdefault, func, self, key, value, len, call or held",
               text);
  throw PythonError{};
}

PyObject* follow(const Step& step, PyObject* parent, const Call& call) {
  switch (step.kind) {
    case StepKind::Arg:
      return step.index < call.n_locals ? Py_XNewRef(call.locals[step.index]) : nullptr;
    case StepKind::Cell:
      return cell_content(call, step.name.get());
    case StepKind::Global:
      return dict_item(call.globals, step.name.get());
    case StepKind::Builtin: {  // a global of the same name hides it
      if (Ref hiding{dict_item(call.globals, step.name.get())}) return nullptr;
      return dict_item(builtins_dict, step.name.get());
    }
    case StepKind::Module:
      return dict_item(PyImport_GetModuleDict(), step.name.get());
    case StepKind::Attr:
      return attribute(parent, step.name.get());
    case StepKind::Item:
      return item(step, parent);
    case StepKind::DictItem:
      return dict_item(parent, step.name.get());
    case StepKind::InstanceDict:
      return instance_attribute(parent, step.name.get());
    case StepKind::Type:
      return Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(parent)));
    case StepKind::Grad:
      return or_missing(PyObject_GetAttr(parent, name_grad));
    case StepKind::Closure:
      return PyFunction_Check(parent) ? cell_content(call_of(reinterpret_cast<PyFunctionObject*>(parent)), step.name.get()) : nullptr;
    case StepKind::Default:
      return default_value(parent, step.index);
    case StepKind::KwDefault:
      return PyFunction_Check(parent) ? dict_item(PyFunction_GET_KW_DEFAULTS(parent), step.name.get()) : nullptr;
    case StepKind::Func:
      return PyMethod_Check(parent) ? Py_NewRef(PyMethod_GET_FUNCTION(parent)) : nullptr;
    case StepKind::Self:
      return PyMethod_Check(parent) ? Py_NewRef(PyMethod_GET_SELF(parent)) : nullptr;
    case StepKind::Key:
      return key_at(parent, step.index);
    case StepKind::Value: {
      Ref key(key_at(parent, step.index));
      return key ? dict_item(parent, key.get()) : nullptr;
    }
    case StepKind::Len:
      return length(parent);
    case StepKind::Call:
    case StepKind::Held:
      return call_result(step, parent, call);
  }
  return nullptr;
}

int init_sources() {
  name_grad = PyUnicode_InternFromString("grad");
  builtins_dict = PyEval_GetBuiltins();  // the interpreter's own: it lives as long as we do
  Py_XINCREF(builtins_dict);
  return name_grad && builtins_dict ? 0 : -1;
}

}  // namespace argand::dynamo
