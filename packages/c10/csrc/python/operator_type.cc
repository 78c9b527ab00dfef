// Operator: the callable of a binding. It matches arguments to signatures, dispatches and wraps results.
#include "packages/c10/csrc/python/operator_type.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace argand::py {

PyTypeObject* operator_type = nullptr;
static PyTypeObject* method_type = nullptr;
static PyObject* by_name = nullptr;  // dict: binding name -> the first Operator of that name, for pickling

static OperatorObject* operator_of(PyObject* o) { return reinterpret_cast<OperatorObject*>(o); }
const ArgandBinding* operator_binding(PyObject* op) { return operator_of(op)->binding; }

// ---- results -----------------------------------------------------------------------------------------------------------------
// Worth letting other Python threads run meanwhile: about ten microseconds of work.
static bool is_large(const ArgandOperator* op, const ArgandValue* args) {
  constexpr int64_t kElements = 32768;
  int64_t total = 0;
  for (int i = 0; i < op->n_args && i < 8; i++) {
    const ArgandValue& v = args[i];
    if (v.tag == ARGAND_TAG_TENSOR) {
      if (v.t) total += v.t->numel;
    } else if (v.tag == ARGAND_TAG_TENSOR_LIST) {
      for (uint32_t k = 0; k < v.len; k++) total += v.tensors[k] ? v.tensors[k]->numel : 0;
    } else if (v.tag == ARGAND_TAG_INT_LIST && i < 2 && v.len) {  // a factory's sizes
      int64_t product = 1;
      for (uint32_t k = 0; k < v.len && product < kElements; k++) product *= v.ints[k];
      if (product >= kElements) return true;
    }
  }
  return total >= kElements;
}

constexpr int kMaxResults = 16;

// A result; lists of tensors are tuples, but lists of operators that programs define.
static PyObject* wrap_result(const ArgandOperator* op, ArgandValue* ret) {
  Ref entry(from_value(ret));
  return entry && (op->flags & ARGAND_OP_CUSTOM) && PyTuple_CheckExact(entry.get()) ? PySequence_List(entry.get()) : entry.take();
}

static PyObject* wrap_results(const ArgandOperator* op, ArgandValue* rets, PyTypeObject* result_type) {
  const int n = op->n_rets;
  if (n == 1) return wrap_result(op, &rets[0]);
  if (n == 0) Py_RETURN_NONE;
  Ref tuple(result_type ? PyStructSequence_New(result_type) : PyTuple_New(n));
  bool failed = !tuple;
  for (int i = 0; i < n; i++) {
    PyObject* entry = wrap_result(op, &rets[i]);  // takes each result, also after a failure
    failed = failed || !entry;
    if (tuple) PyTuple_SET_ITEM(tuple.get(), i, entry);
  }
  return failed ? nullptr : tuple.take();
}

// The thread's error; what an operator's memory is refused with names the operator.
static PyObject* raise_of(const ArgandOperator* op, int status) {
  int kind = status;
  std::string_view message = api->last_error(&kind);
  const std::string_view name = std::string_view(op->name).substr(0, std::string_view(op->name).find('.'));
  const bool of_result = message.starts_with("empty: ") && name != "empty", unnamed = message.starts_with("out of ");
  if (of_result) message.remove_prefix(strlen("empty: "));
  if (of_result || (unnamed && kind == ARGAND_OUT_OF_MEMORY_ERROR)) {
    char text[2048];  // there may be no memory for a string
    snprintf(text, sizeof text, "%.*s: %.*s", static_cast<int>(name.size()), name.data(), static_cast<int>(message.size()), message.data());
    api->set_error(kind, text);
  }
  return raise(status);
}

PyObject* dispatch(const ArgandOperator* op, const ArgandValue* args, PyTypeObject* result_type) {
  ArgandValue rets[kMaxResults];
  int n = op->n_rets;
  if (n > kMaxResults) return PyErr_Format(PyExc_RuntimeError, "%s: got %d results, expected at most %d", op->name, n, kMaxResults);
  for (int i = 0; i < n; i++) rets[i].tag = ARGAND_TAG_NONE;
  int status;
  if (is_large(op, args)) {
    PyThreadState* thread = PyEval_SaveThread();
    status = api->call(op, args, rets);
    PyEval_RestoreThread(thread);
  } else {
    status = api->call(op, args, rets);
  }
  return status ? raise_of(op, status) : wrap_results(op, rets, result_type);
}

// "argand.return_types.max(\nvalues=tensor(...),\nindices=tensor(...))"
static PyObject* result_repr(PyObject* self) {
  Ref parts(PyList_New(0)), separator(PyUnicode_FromString(",\n"));
  PyMemberDef* members = Py_TYPE(self)->tp_members;
  for (Py_ssize_t i = 0; parts && separator && i < PyTuple_GET_SIZE(self); i++) {
    Ref part(PyUnicode_FromFormat("%s=%R", members[i].name, PyTuple_GET_ITEM(self, i)));
    if (!part || PyList_Append(parts.get(), part.get()) < 0) return nullptr;
  }
  Ref text(parts && separator ? PyUnicode_Join(separator.get(), parts.get()) : nullptr);
  return text ? PyUnicode_FromFormat("%s(\n%U)", Py_TYPE(self)->tp_name, text.get()) : nullptr;
}

// The named tuple of a signature with several named results; one for all overloads of a name that have the same fields.
static PyTypeObject* result_type_of(const char* function, const ArgandSignature& signature) {
  static std::unordered_map<std::string, PyTypeObject*> made;
  std::string name = std::string("argand.return_types.") + function, key = name;
  for (int i = 0; i < signature.n_rets; i++) key.append(1, ' ').append(signature.ret_names[i]);
  PyTypeObject*& known = made[key];
  if (known) return known;
  auto* fields = static_cast<PyStructSequence_Field*>(PyMem_Calloc(signature.n_rets + 1u, sizeof(PyStructSequence_Field)));
  auto* kept_name = static_cast<char*>(PyMem_Malloc(name.size() + 1));
  if (!fields || !kept_name) return reinterpret_cast<PyTypeObject*>(PyErr_NoMemory());
  std::memcpy(kept_name, name.c_str(), name.size() + 1);
  for (int i = 0; i < signature.n_rets; i++) fields[i].name = signature.ret_names[i];
  PyStructSequence_Desc desc = {kept_name, "Results of an operator.", fields, signature.n_rets};
  PyTypeObject* type = PyStructSequence_NewType(&desc);
  if (type) type->tp_repr = result_repr;
  return known = type;
}

// ---- signatures --------------------------------------------------------------------------------------------------------------
static bool of_operator(Signature& s, const char* function, ArgandOperator* op) {
  const ArgandSignature& d = *s.desc;
  s.op = op;
  if (s.op && (s.op->n_args != d.n_args || s.op->n_rets != d.n_rets)) {
    PyErr_Format(PyExc_RuntimeError, "%s(): got a binding of %d arguments and %d results for '%s', which has %d and %d; install matching versions",
                 function, d.n_args, d.n_rets, d.operator_name, s.op->n_args, s.op->n_rets);
    s.op = nullptr;
    return false;
  }
  if (!s.op) {
    PyErr_Format(PyExc_RuntimeError, "%s(): operator '%s' is not registered; import the package that provides it", function, d.operator_name);
    return false;
  }
  s.out_op = d.out_name ? api->op_find(d.out_name) : nullptr;
  if (d.n_rets > 1 && d.ret_names && !s.result_type) s.result_type = result_type_of(function, d);
  return !PyErr_Occurred();
}

static bool resolve(Signature& s, const char* function) { return of_operator(s, function, api->op_find(s.desc->operator_name)); }

static Signature* make_signatures(const ArgandBinding* binding) {
  auto* signatures = static_cast<Signature*>(PyMem_Calloc(binding->n_signatures, sizeof(Signature)));
  if (!signatures) return reinterpret_cast<Signature*>(PyErr_NoMemory());
  for (int k = 0; k < binding->n_signatures; k++) {
    Signature& s = signatures[k];
    s.desc = &binding->signatures[k];
    s.names = static_cast<PyObject**>(PyMem_Calloc(s.desc->n_args + 1u, sizeof(PyObject*)));
    if (!s.names) return reinterpret_cast<Signature*>(PyErr_NoMemory());
    bool has_dtype = false, has_device = false, has_tensor = false;
    for (int i = 0; i < s.desc->n_args; i++) {
      const ArgandArgDesc& arg = s.desc->args[i];
      s.names[i] = PyUnicode_InternFromString(arg.name);
      if (!s.names[i]) return nullptr;
      if (!(arg.flags & ARGAND_ARG_KWONLY)) s.n_positional = static_cast<uint16_t>(i + 1);
      has_dtype = has_dtype || arg.type == ARGAND_ARG_DTYPE;
      has_device = has_device || arg.type == ARGAND_ARG_DEVICE;
      has_tensor = has_tensor || arg.type == ARGAND_ARG_TENSOR || arg.type == ARGAND_ARG_TENSOR_LIST;
    }
    s.is_factory = has_dtype && has_device && std::strcmp(binding->name, "to") != 0;
    s.uses_default_device = s.is_factory && !has_tensor;
  }
  return signatures;
}

// ---- the call ------------------------------------------------------------------------------------------------------------------
// The call with given results. One with elements that takes another shape may be a mistake, of which the user is told; a factory's is no mistake.
static PyObject* dispatch_into(const Signature& s, const ArgandValue* values) {
  if (s.uses_default_device) return dispatch(s.out_op, values, s.result_type);
  const auto sizes_of = [](const ArgandValue& target) { return Dims({target.t->sizes, target.t->ndim}); };
  const ArgandValue* targets = values + s.desc->n_args;
  std::vector<Dims> before;
  for (int i = 0; i < s.desc->n_rets; i++) before.push_back(sizes_of(targets[i]));
  Ref result(dispatch(s.out_op, values, s.result_type));
  for (int i = 0; result && i < s.desc->n_rets; i++) {
    const Dims after = sizes_of(targets[i]);
    if (std::equal(before[i].d, before[i].d + before[i].n, after.d, after.d + after.n) || std::count(before[i].d, before[i].d + before[i].n, 0))
      continue;
    if (PyErr_WarnFormat(PyExc_UserWarning, 1,
                         "An output with one or more elements was resized since it had shape %s, which does not match the required output shape %s. "
                         "Give one of that shape, or one without elements (out.resize_(0)).",
                         to_string(before[i]).c_str(), to_string(after).c_str()) < 0)
      return nullptr;
  }
  return result.take();
}

static PyObject* call_signatures(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  OperatorObject* op = operator_of(self);
  Py_ssize_t n_all = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  if (op->signatures[0].uses_default_device) {
    PyObject* made;
    if (call_factory(self, args, nargs, kwnames, &made)) return made;
  }
  for (Py_ssize_t i = 0; i < n_all || threads_with_modes; i++) {
    if (!threads_with_modes && (is_tensor_exact(args[i]) || PyLong_CheckExact(args[i]) || PyFloat_CheckExact(args[i]))) continue;
    PyObject* result;
    if (call_override(op->function ? op->function : self, args, nargs, kwnames, &result)) return result;
    break;
  }
  Call call{op, args, nargs, kwnames, op->function != nullptr, nullptr};
  for (int k = 0; k < op->binding->n_signatures; k++) {
    Signature& s = op->signatures[k];
    if (__builtin_expect(!s.op, 0) && !resolve(s, op->binding->name)) return nullptr;
    Arena arena;
    Extras extras;
    ArgandValue values[kMaxArguments];
    Conversion c = match(s, call, values, arena, extras);
    if (c == Conversion::kMismatch) continue;
    if (c == Conversion::kError) return nullptr;
    Ref result(extras.out ? dispatch_into(s, values) : dispatch(s.op, values, s.result_type));
    if (extras.pin_memory && result) result = Ref(pin_memory_of(result.get()));
    if (extras.requires_grad && result && PyObject_SetAttr(result.get(), names.requires_grad, Py_True) < 0) return nullptr;
    return result.take();
  }
  return raise_no_match(call);
}

static PyObject* operator_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return guard<PyObject*>(nullptr, [&] { return call_signatures(self, args, PyVectorcall_NARGS(nargsf), kwnames); });
}

PyObject* call_operator(PyObject* op, PyObject* const* args, size_t nargs, PyObject* kwnames) {
  if (Py_TYPE(op) == operator_type || Py_TYPE(op) == method_type) return operator_vectorcall(op, args, nargs, kwnames);
  return PyObject_Vectorcall(op, args, nargs, kwnames);
}

// ---- making operators ------------------------------------------------------------------------------------------------------------
static PyObject* new_object(PyTypeObject* type, const ArgandBinding* binding, Signature* signatures, PyObject* function) {
  auto* self = PyObject_New(OperatorObject, type);
  if (!self) return nullptr;
  self->vectorcall = operator_vectorcall;
  self->binding = binding;
  self->signatures = signatures;
  self->function = Py_XNewRef(function);
  self->shown = self->name = nullptr;
  return reinterpret_cast<PyObject*>(self);
}

PyObject* operator_new(const ArgandBinding* binding) {
  for (int k = 0; k < binding->n_signatures; k++) {
    const ArgandSignature& s = binding->signatures[k];
    if (s.n_args + s.n_rets > kMaxArguments)
      return PyErr_Format(PyExc_ValueError, "%s: got %d arguments, expected at most %d", s.operator_name, s.n_args, kMaxArguments - s.n_rets);
  }
  Signature* signatures = make_signatures(binding);
  if (!signatures) return nullptr;
  Ref self(new_object(operator_type, binding, signatures, nullptr));
  if (self && !PyDict_GetItemString(by_name, binding->name) && PyDict_SetItemString(by_name, binding->name, self.get()) < 0) return nullptr;
  return self.take();
}

PyObject* operator_method(PyObject* op) {
  OperatorObject* function = operator_of(op);
  return new_object(method_type, function->binding, function->signatures, op);
}

PyObject* overload_object(const ArgandOperator* op) {
  if (!op->binding) {
    PyObject* made = guard<PyObject*>(nullptr, [&]() -> PyObject* {
      const ArgandBinding* binding = parse_schema(op->schema).binding;
      Signature* signatures = make_signatures(binding);
      if (!signatures || !of_operator(*signatures, binding->name, const_cast<ArgandOperator*>(op))) return nullptr;
      return new_object(operator_type, binding, signatures, nullptr);
    });
    const_cast<ArgandOperator*>(op)->binding = made;  // lives as long as the operator
  }
  return static_cast<PyObject*>(const_cast<void*>(op->binding));
}

// ---- attributes --------------------------------------------------------------------------------------------------------------------
// rules.function(self, name)
static PyObject* ask_rules(const char* function, PyObject* self, PyObject* name) {
  Ref rules(PyImport_ImportModule("argand_c10.rules"));
  Ref found(rules ? PyObject_GetAttrString(rules.get(), function) : nullptr);
  return found ? PyObject_CallFunctionObjArgs(found.get(), self, name, nullptr) : nullptr;
}

static PyObject* operator_repr(PyObject* self) { return PyUnicode_FromFormat("<operator '%s'>", operator_of(self)->binding->name); }
static PyObject* operator_str(PyObject* self) {
  PyObject* shown = operator_of(self)->shown;
  return shown ? Py_NewRef(shown) : operator_repr(self);
}
// An operator is equal to itself alone; methods made of one operator are one.
static PyObject* operator_compare(PyObject* self, PyObject* other, int comparison) {
  if (Py_TYPE(self) != Py_TYPE(other) || (comparison != Py_EQ && comparison != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  const OperatorObject &a = *operator_of(self), &b = *operator_of(other);
  const bool one = a.function && a.function == b.function;
  return PyBool_FromLong((self == other || one) == (comparison == Py_EQ));
}
static Py_hash_t operator_hash(PyObject* self) {
  const PyObject* function = operator_of(self)->function;
  const Py_hash_t hash = static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(function ? function : self) >> 4);
  return hash == -1 ? -2 : hash;
}
static PyObject* get_name(PyObject* self, void*) {
  OperatorObject* op = operator_of(self);
  if (!op->name) {
    Ref name(PyUnicode_FromString(op->binding->name));
    op->name = name && op->shown ? ask_rules("shown_name", name.get(), op->shown) : name.take();
  }
  return Py_XNewRef(op->name);
}
static PyObject* get_shown(PyObject* self, void*) {
  OperatorObject* op = operator_of(self);
  return op->shown ? ask_rules("short_name", self, op->shown) : PyUnicode_FromString(op->binding->name);
}
// named_overload(operator, name, own): the operator as an overload of that name; it takes the name itself if `own`, else it has a twin.
PyObject* named_overload(PyObject*, PyObject* args) {
  PyObject *op, *name;
  int own = 0;
  if (!PyArg_ParseTuple(args, "O!Up:_named_overload", operator_type, &op, &name, &own)) return nullptr;
  OperatorObject* source = operator_of(op);
  Ref named(own ? Py_NewRef(op) : new_object(operator_type, source->binding, source->signatures, nullptr));
  if (named) {
    Py_XSETREF(operator_of(named.get())->shown, Py_NewRef(name));
    Py_CLEAR(operator_of(named.get())->name);
  }
  return named.take();
}
static PyObject* get_module(PyObject*, void*) { return PyUnicode_FromString("argand"); }
static PyObject* get_doc(PyObject* self, void*) {
  const char* doc = operator_of(self)->binding->doc;
  return PyUnicode_FromString(doc ? doc : "");
}
// A tuple of f(registered operator) over the overloads.
template <class F>
static PyObject* over_overloads(PyObject* self, F f) {
  OperatorObject* op = operator_of(self);
  Ref tuple(PyTuple_New(op->binding->n_signatures));
  for (int k = 0; tuple && k < op->binding->n_signatures; k++) {
    Signature& s = op->signatures[k];
    if (!s.op && !resolve(s, op->binding->name)) return nullptr;
    PyObject* entry = f(s.op);
    if (!entry) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), k, entry);
  }
  return tuple.take();
}
static PyObject* get_overloads(PyObject* self, void*) {
  return over_overloads(self, [](const ArgandOperator* op) { return Py_XNewRef(overload_object(op)); });
}
static PyObject* get_schemas(PyObject* self, void*) {
  return over_overloads(self, [](const ArgandOperator* op) { return PyUnicode_FromString(op->schema); });
}
static PyObject* get_schema(PyObject* self, void*) {
  Ref schemas(get_schemas(self, nullptr));
  if (!schemas) return nullptr;
  Ref separator(PyUnicode_FromString("\n"));
  return separator ? PyUnicode_Join(separator.get(), schemas.get()) : nullptr;
}
// As the definition of a program's own operator has them; others have none.
static PyObject* get_tags(PyObject* self, void*) {
  Ref rules(PyImport_ImportModule("argand_c10.rules"));
  Ref definitions(rules ? PyObject_GetAttrString(rules.get(), "definitions") : nullptr);
  if (!definitions) return nullptr;
  PyObject* definition = PyDict_GetItemString(definitions.get(), operator_of(self)->binding->name);  // borrowed
  if (!definition) return PyList_New(0);
  Ref tags(PyObject_GetAttrString(definition, "tags"));
  return tags ? PySequence_List(tags.get()) : nullptr;
}
static PyObject* get_default(PyObject* self, void*) {
  Ref name(PyUnicode_FromString("default"));
  Ref overload(name ? ask_rules("named_overload", self, name.get()) : nullptr);
  if (overload && overload.get() == Py_None)
    return PyErr_Format(PyExc_AttributeError, "%s: has no overload without a name of its own", operator_of(self)->binding->name);
  return overload.take();
}
static PyObject* get_overload(PyObject* self, void*) {
  PyObject* shown = operator_of(self)->shown;
  return Py_NewRef(shown ? shown : Py_None);
}
static PyObject* flag_of_first(PyObject* self, uint16_t flag) {
  OperatorObject* op = operator_of(self);
  Signature& s = op->signatures[0];
  if (!s.op && !resolve(s, op->binding->name)) return nullptr;
  return PyBool_FromLong((s.op->flags & flag) != 0);
}
static PyObject* get_is_view(PyObject* self, void*) { return flag_of_first(self, ARGAND_OP_VIEW); }
static PyObject* get_is_inplace(PyObject* self, void*) { return flag_of_first(self, ARGAND_OP_INPLACE); }
static PyObject* get_is_random(PyObject* self, void*) { return flag_of_first(self, ARGAND_OP_RANDOM); }

static PyObject* get_is_composite(PyObject* self, void*) { return flag_of_first(self, ARGAND_OP_COMPOSITE); }

static PyObject* get_result_types(PyObject* self, void*) {
  OperatorObject* op = operator_of(self);
  Ref types(PyTuple_New(op->binding->n_signatures));
  for (int k = 0; types && k < op->binding->n_signatures; k++) {
    Signature& s = op->signatures[k];
    if (!s.op && !resolve(s, op->binding->name)) return nullptr;
    PyObject* type = s.result_type ? reinterpret_cast<PyObject*>(s.result_type) : Py_None;
    PyTuple_SET_ITEM(types.get(), k, Py_NewRef(type));
  }
  return types.take();
}

static PyObject* operator_same(PyObject* self, PyObject*) { return Py_NewRef(self); }
static PyObject* operator_reduce(PyObject* self, PyObject*) {
  if (PyObject* shown = operator_of(self)->shown) {  // that attribute of the operator with all overloads
    const char *text = PyUnicode_AsUTF8(shown), *name = operator_of(self)->binding->name;
    Ref packet(text ? PyUnicode_FromStringAndSize(name, static_cast<Py_ssize_t>(std::strcspn(name, "."))) : nullptr);
    PyObject* const op = packet ? PyDict_GetItemWithError(by_name, packet.get()) : nullptr;
    PyObject* const get = PyDict_GetItemString(PyEval_GetBuiltins(), "getattr");
    if (op && get) return Py_BuildValue("O(Os)", get, op, std::strrchr(text, '.') + 1);
    if (PyErr_Occurred()) return nullptr;
  }
  Ref module(PyImport_ImportModule("argand_c10._C"));
  if (!module) return nullptr;
  Ref find(PyObject_GetAttrString(module.get(), "_operator_by_name"));
  return find ? Py_BuildValue("O(sO)", find.get(), operator_of(self)->binding->name, operator_of(self)->function ? Py_True : Py_False) : nullptr;
}
PyObject* operator_by_name(PyObject*, PyObject* args) {
  const char* name;
  int is_method = 0;
  if (!PyArg_ParseTuple(args, "s|p:_operator_by_name", &name, &is_method)) return nullptr;
  if (PyObject* op = PyDict_GetItemString(by_name, name)) return is_method ? operator_method(op) : Py_NewRef(op);
  if (ArgandOperator* op = api->op_find(name)) return Py_XNewRef(overload_object(op));
  return PyErr_Format(PyExc_LookupError, "operator '%s' is not registered; import the package that provides it", name);
}

static PyObject* method_get(PyObject* self, PyObject* object, PyObject*) {
  return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

static PyObject* operator_overloads(PyObject* self, PyObject*) { return ask_rules("overload_names", self, nullptr); }
// Besides its attributes an operator has its overloads by name, and what packages add.
static PyObject* operator_getattro(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  if (PyUnicode_GET_LENGTH(name) > 1 && PyUnicode_READ_CHAR(name, 0) == '_' && PyUnicode_READ_CHAR(name, 1) == '_') return found;
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  Ref overload(ask_rules("attribute_of", self, name));
  if (overload && overload.get() == Py_None) {
    PyErr_Restore(type, error, traceback);
    return nullptr;
  }
  Py_XDECREF(type), Py_XDECREF(error), Py_XDECREF(traceback);
  return overload.take();
}

static PyMemberDef operator_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(OperatorObject, vectorcall), READONLY, nullptr},
                                         {nullptr, 0, 0, 0, nullptr}};
static PyMethodDef operator_methods[] = {
    {"__copy__", operator_same, METH_NOARGS, nullptr},
    {"__deepcopy__", operator_same, METH_O, nullptr},
    {"overloads", operator_overloads, METH_NOARGS, "overloads()\n\nThe names of the overloads, each of which is an attribute."},
    {"__reduce__", operator_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
static PyGetSetDef operator_getset[] = {
    {"name", get_name, nullptr, "The operator's name.", nullptr},
    {"__name__", get_shown, nullptr, nullptr, nullptr},
    {"__qualname__", get_shown, nullptr, nullptr, nullptr},
    {"shown", get_overload, nullptr, "The full name of an overload that was asked for by its name, as aten.add.Scalar; None of others.", nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"variants", get_overloads, nullptr, "One Operator per overload.", nullptr},
    {"default", get_default, nullptr, "The overload that has no name of its own.", nullptr},
    {"tags", get_tags, nullptr, "What a program says of its own operator.", nullptr},
    {"schemas", get_schemas, nullptr, "The schema of each overload.", nullptr},
    {"schema", get_schema, nullptr, "The schemas, one a line.", nullptr},
    {"is_view", get_is_view, nullptr, "Do results share the first argument's memory.", nullptr},
    {"is_inplace", get_is_inplace, nullptr, "Is the first argument changed and returned.", nullptr},
    {"is_composite", get_is_composite, nullptr, "Is it made of other operators, through which its gradients go.", nullptr},
    {"is_random", get_is_random, nullptr, "Does it draw from a generator.", nullptr},
    {"result_types", get_result_types, nullptr, "The named tuple that each overload returns, None where it returns none.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
static void operator_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(operator_of(self)->function);
  Py_XDECREF(operator_of(self)->shown);
  Py_XDECREF(operator_of(self)->name);
  PyObject_Free(self);
  Py_DECREF(type);
}
static PyType_Slot operator_slots[] = {{Py_tp_repr, reinterpret_cast<void*>(operator_repr)},
                                       {Py_tp_str, reinterpret_cast<void*>(operator_str)},
                                       {Py_tp_richcompare, reinterpret_cast<void*>(operator_compare)},
                                       {Py_tp_hash, reinterpret_cast<void*>(operator_hash)},
                                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                       {Py_tp_getattro, reinterpret_cast<void*>(operator_getattro)},
                                       {Py_tp_dealloc, reinterpret_cast<void*>(operator_dealloc)},
                                       {Py_tp_members, operator_members},
                                       {Py_tp_methods, operator_methods},
                                       {Py_tp_getset, operator_getset},
                                       {0, nullptr}};
static PyType_Slot method_slots[] = {{Py_tp_repr, reinterpret_cast<void*>(operator_repr)},
                                     {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                     {Py_tp_getattro, reinterpret_cast<void*>(operator_getattro)},
                                     {Py_tp_dealloc, reinterpret_cast<void*>(operator_dealloc)},
                                     {Py_tp_descr_get, reinterpret_cast<void*>(method_get)},
                                     {Py_tp_members, operator_members},
                                     {Py_tp_methods, operator_methods},
                                     {Py_tp_getset, operator_getset},
                                     {0, nullptr}};
constexpr unsigned kFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE;
static PyType_Spec operator_spec = {"argand_c10.Operator", sizeof(OperatorObject), 0, kFlags, operator_slots};
// As an attribute of Tensor an operator is a method; as a function it must not turn into one inside a user's class.
static PyType_Spec method_spec = {"argand_c10.OperatorMethod", sizeof(OperatorObject), 0, kFlags | Py_TPFLAGS_METHOD_DESCRIPTOR, method_slots};

int init_operator(PyObject* module) {
  by_name = PyDict_New();
  operator_type = new_type(module, &operator_spec);
  method_type = new_type(module, &method_spec);
  if (!by_name || !operator_type || !method_type) return -1;
  if (PyModule_AddObjectRef(module, "OperatorMethod", reinterpret_cast<PyObject*>(method_type)) < 0) return -1;
  return PyModule_AddObjectRef(module, "Operator", reinterpret_cast<PyObject*>(operator_type));
}

}  // namespace argand::py
