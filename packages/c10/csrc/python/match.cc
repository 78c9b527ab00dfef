// Matching the arguments of a call to one signature.
#include <cstring>

#include "packages/c10/csrc/python/constants.h"
#include "packages/c10/csrc/python/operator_type.h"

namespace argand::py {

static Conversion mismatch(const Call& call, const std::string& why) {
  if (call.why) *call.why = why;
  return Conversion::kMismatch;
}
static std::string function_name(const Call& call) { return std::string(call.op->binding->name) + "()"; }
static std::string text_of(PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) PyErr_Clear();
  return text ? text : "?";
}
static const char* shown_name(const char* name, const Call& call) { return !call.is_method && std::strcmp(name, "self") == 0 ? "input" : name; }

// ---- keywords -------------------------------------------------------------------------------------------------------------------
// Further spellings of arguments: of functions, NumPy's, and a word that no schema may contain.
struct Spelling {
  const char *keyword, *argument;
};
constexpr Spelling kSpellings[] = {{"input", "self"}, {"tensor", "self"}, {"x", "self"},           {"a", "self"},
                                   {"x1", "self"},    {"x", "input"},     {"a", "input"},          {"x1", "input"},
                                   {"x2", "other"},   {"axis", "dim"},    {"keepdims", "keepdim"}, {"from", "from_"}};

// The schema argument that a keyword names. -1: none.
static int find_argument(const Signature& s, PyObject* name) {
  for (int i = 0; i < s.desc->n_args; i++)
    if (s.names[i] == name) return i;
  for (int i = 0; i < s.desc->n_args; i++)
    if (PyUnicode_Compare(s.names[i], name) == 0) return i;
  for (const Spelling& spelling : kSpellings) {
    if (PyUnicode_CompareWithASCIIString(name, spelling.keyword) != 0) continue;
    for (int i = 0; i < s.desc->n_args; i++)
      if (std::strcmp(s.desc->args[i].name, spelling.argument) == 0) return i;
  }
  return -1;
}

// A memory_format as the operators take it: PyTorch's number, None for preserve_format. Borrowed.
static PyObject* memory_format_number(PyObject* value) {
  static PyObject* const numbers[] = {PyLong_FromLong(0), PyLong_FromLong(2), PyLong_FromLong(3)};
  return value == preserve_format ? Py_None : numbers[value == channels_last ? 1 : value == channels_last_3d ? 2 : 0];
}

// A flag outside the schema; None is False.
static Conversion take_flag(const Call& call, PyObject* name, PyObject* value, bool& flag) {
  if (!PyBool_Check(value) && value != Py_None)
    return mismatch(call, function_name(call) + ": argument '" + text_of(name) + "' must be bool, not " + Py_TYPE(value)->tp_name);
  flag = value == Py_True;
  return Conversion::kOk;
}

// A keyword outside the schema. kMismatch: unknown or not acceptable.
static Conversion take_extra(const Signature& s, const Call& call, PyObject* name, PyObject* value, Extras& extras) {
  if (s.out_op && !call.is_method && PyUnicode_Compare(name, names.out) == 0) {
    if (value != Py_None) extras.out = value;
    return Conversion::kOk;
  }
  if (s.is_factory && PyUnicode_Compare(name, names.requires_grad) == 0) return take_flag(call, name, value, extras.requires_grad);
  if (s.is_factory && PyUnicode_Compare(name, names.layout) == 0 && (value == Py_None || value == strided_layout)) return Conversion::kOk;
  if (s.is_factory && PyUnicode_Compare(name, names.pin_memory) == 0) return take_flag(call, name, value, extras.pin_memory);
  return mismatch(call, function_name(call) + " got an unexpected keyword argument '" + text_of(name) + "'");
}

// given[i] becomes the keyword value of argument i, or NULL.
static Conversion sort_keywords(const Signature& s, const Call& call, PyObject** given, Extras& extras) {
  for (int i = 0; i < s.desc->n_args; i++) given[i] = nullptr;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(call.kwnames); k++) {
    PyObject* name = PyTuple_GET_ITEM(call.kwnames, k);
    PyObject* value = call.args[call.nargs + k];
    int i = s.out_op && name == names.out ? -1 : find_argument(s, name);
    if (i < 0) {
      Conversion c = take_extra(s, call, name, value, extras);
      if (c != Conversion::kOk) return c;
    } else if (given[i] || i < (call.nargs < s.n_positional ? call.nargs : s.n_positional)) {
      return mismatch(call, function_name(call) + " got multiple values for argument '" + shown_name(s.desc->args[i].name, call) + "'");
    } else {
      if (Py_TYPE(value) == memory_format_type) value = memory_format_number(value);
      given[i] = value;
    }
  }
  return Conversion::kOk;
}

// ---- out= -----------------------------------------------------------------------------------------------------------------------
static Conversion take_out(const Signature& s, const Call& call, PyObject* out, ArgandValue* values) {
  int n = s.desc->n_rets;
  PyObject* const* items = &out;
  Py_ssize_t size = 1;
  if (n > 1 && !is_tensor(out) && (PyTuple_Check(out) || PyList_Check(out))) {
    size = PySequence_Fast_GET_SIZE(out);
    items = PySequence_Fast_ITEMS(out);
  }
  bool fits = size == n;
  for (Py_ssize_t i = 0; fits && i < size; i++) fits = is_tensor(items[i]) && tensor_of(items[i]);
  if (!fits) {
    std::string wanted = n == 1 ? "Tensor" : "tuple of " + std::to_string(n) + " Tensors";
    return mismatch(call, function_name(call) + ": argument 'out' must be " + wanted + ", not " + Py_TYPE(out)->tp_name);
  }
  for (int i = 0; s.is_factory && i < s.desc->n_args; i++) {  // made as the target is
    const ArgandArgType type = s.desc->args[i].type;
    const ArgandTensor* target = tensor_of(items[0]);
    if (values[i].tag != ARGAND_TAG_NONE) continue;
    if (type == ARGAND_ARG_DTYPE) values[i].tag = ARGAND_TAG_DTYPE, values[i].i = target->dtype;
    if (type == ARGAND_ARG_DEVICE) values[i].tag = ARGAND_TAG_DEVICE, values[i].i = target->storage->device;
  }
  for (int i = 0; i < n; i++) {
    values[s.desc->n_args + i].tag = ARGAND_TAG_TENSOR;
    values[s.desc->n_args + i].len = 0;
    values[s.desc->n_args + i].t = tensor_of(items[i]);
  }
  return Conversion::kOk;
}

// ---- the match --------------------------------------------------------------------------------------------------------------------
static Conversion missing_arguments(const Signature& s, const Call& call, PyObject** given) {
  if (!call.why) return Conversion::kMismatch;
  std::string list;
  int n = 0;
  for (int i = 0; i < s.desc->n_args; i++) {
    const ArgandArgDesc& desc = s.desc->args[i];
    bool positional = i < s.n_positional && i < call.nargs;
    if (positional || (call.kwnames && given[i]) || (desc.flags & ARGAND_ARG_HAS_DEFAULT)) continue;
    list += std::string(n++ ? ", " : "") + "\"" + shown_name(desc.name, call) + "\"";
  }
  return mismatch(call, function_name(call) + " missing " + std::to_string(n) + " required positional argument" + (n == 1 ? "" : "s") + ": " + list);
}

static Conversion too_many(const Signature& s, const Call& call) {
  int skip = call.is_method ? 1 : 0;
  int wanted = s.n_positional - skip;
  Py_ssize_t got = call.nargs - skip;
  return mismatch(call, function_name(call) + " takes " + std::to_string(wanted) + " positional argument" + (wanted == 1 ? "" : "s") + " but " +
                            std::to_string(got) + (got == 1 ? " was given" : " were given"));
}

static void fill_device(const Signature& s, ArgandValue* values) {
  for (int i = 0; i < s.desc->n_args; i++) {
    if (s.desc->args[i].type != ARGAND_ARG_DEVICE || values[i].tag != ARGAND_TAG_NONE) continue;
    values[i].tag = ARGAND_TAG_DEVICE;
    values[i].i = with_index(default_device());
  }
}

static bool any_tensor(const ArgandValue* values, int n) {
  for (int i = 0; i < n; i++)
    if (values[i].tag == ARGAND_TAG_TENSOR) return true;
  return false;
}

// None stands for a list that is empty by default, as a window's stride, and for requires_grad's.
static bool none_is_default(PyObject* o, const Signature& s, int i) {
  const ArgandArgDesc& desc = s.desc->args[i];
  if (o != Py_None || !(desc.flags & ARGAND_ARG_HAS_DEFAULT)) return false;
  return (desc.default_value.tag == ARGAND_TAG_INT_LIST && desc.default_value.len == 0) || s.names[i] == names.requires_grad;
}

Conversion match(const Signature& s, const Call& call, ArgandValue* values, Arena& arena, Extras& extras) {
  const ArgandSignature& d = *s.desc;
  PyObject* given[kMaxArguments];
  if (call.kwnames) {
    Conversion c = sort_keywords(s, call, given, extras);
    if (c != Conversion::kOk) return c;
  }
  Py_ssize_t taken = call.nargs < s.n_positional ? call.nargs : s.n_positional;  // positional arguments used up
  bool varargs = false;                                                          // the last positional argument took all that were left
  for (int i = 0; i < d.n_args; i++) {
    const ArgandArgDesc& desc = d.args[i];
    PyObject* o;
    if (i < taken) {
      o = call.args[i];
      if ((desc.flags & ARGAND_ARG_VARARGS) && i == s.n_positional - 1 && i == call.is_method && starts_varargs(o, desc)) {
        varargs = true;
        Conversion c = convert_varargs(call.args + i, call.nargs - i, desc, &values[i], arena);
        if (c == Conversion::kOk) continue;
        if (c == Conversion::kError) return c;
        Ref rest(call.why ? PyTuple_New(call.nargs - i) : nullptr);
        if (!rest) return Conversion::kMismatch;
        for (Py_ssize_t k = i; k < call.nargs; k++) PyTuple_SET_ITEM(rest.get(), k - i, Py_NewRef(call.args[k]));
        return mismatch(
            call, mismatch_text(call.op->binding->name, desc, shown_name(desc.name, call), i + 1 - call.is_method, rest.get(), call.wrong_count));
      }
    } else if (call.kwnames && given[i]) {
      o = given[i];
    } else if (desc.flags & ARGAND_ARG_HAS_DEFAULT) {
      values[i] = desc.default_value;
      continue;
    } else {
      return missing_arguments(s, call, given);
    }
    Conversion c = convert(o, desc, &values[i], arena);
    if ((desc.flags & ARGAND_ARG_NEEDS_TENSOR) && c == Conversion::kOk && !any_tensor(values, i + 1)) c = Conversion::kMismatch;
    if (__builtin_expect(c == Conversion::kOk, 1)) continue;
    if (none_is_default(o, s, i)) {
      values[i] = desc.default_value;
      continue;
    }
    if (c == Conversion::kError || !call.why) return c;
    Py_ssize_t position = i < taken ? i + 1 - call.is_method : 0;
    return mismatch(call, mismatch_text(call.op->binding->name, desc, shown_name(desc.name, call), position, o, call.wrong_count));
  }
  if (taken < call.nargs && !varargs) return too_many(s, call);
  if (s.uses_default_device && !extras.out && ARGAND_DEVICE_TYPE(default_device()) != ARGAND_CPU) fill_device(s, values);
  return extras.out ? take_out(s, call, extras.out, values) : Conversion::kOk;
}

// ---- when nothing fits ---------------------------------------------------------------------------------------------------------------
static std::string type_text(PyObject* o) {
  if (PyTuple_Check(o) || PyList_Check(o)) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    std::string text = PyTuple_Check(o) ? "tuple of (" : "list of [";
    for (Py_ssize_t i = 0; i < n && i < 4; i++) text += std::string(i ? ", " : "") + Py_TYPE(PySequence_Fast_GET_ITEM(o, i))->tp_name;
    return text + (n > 4 ? ", ..." : "") + (PyTuple_Check(o) ? ")" : "]");
  }
  return Py_TYPE(o)->tp_name;
}

static std::string default_text(const ArgandArgDesc& desc) {
  if (desc.default_value.tag == ARGAND_TAG_STRING) return " = \"" + as_string(desc.default_value) + "\"";
  Ref value(borrow_value(&desc.default_value));
  Ref text(value ? PyObject_Str(value.get()) : nullptr);
  if (!text) PyErr_Clear();
  return text ? " = " + text_of(text.get()) : "";
}

static std::string signature_text(const Signature& s, const Call& call) {
  std::string text = "(";
  bool in_keywords = false, first = true;
  for (int i = call.is_method ? 1 : 0; i < s.desc->n_args; i++) {
    const ArgandArgDesc& desc = s.desc->args[i];
    if (!first) text += ", ";
    first = false;
    if ((desc.flags & ARGAND_ARG_KWONLY) && !in_keywords) {
      text += "*, ";
      in_keywords = true;
    }
    text += expected_type(desc) + " " + shown_name(desc.name, call);
    if (desc.flags & ARGAND_ARG_HAS_DEFAULT) text += default_text(desc);
  }
  if (s.out_op && !call.is_method)
    text += std::string(first ? "" : ", ") + (in_keywords ? "" : "*, ") + (s.desc->n_rets == 1 ? "Tensor out = None" : "tuple of Tensors out = None");
  return text + ")";
}

PyObject* raise_no_match(Call call) {
  std::string why;
  bool wrong_count = false;  // then the types fit, and PyTorch's operators would refuse the values
  call.why = &why;
  call.wrong_count = &wrong_count;
  int n = call.op->binding->n_signatures;
  if (n == 1) {
    Arena arena;
    Extras extras;
    ArgandValue values[kMaxArguments];
    if (match(call.op->signatures[0], call, values, arena, extras) == Conversion::kError) return nullptr;
    PyErr_SetString(wrong_count ? PyExc_RuntimeError : PyExc_TypeError, why.c_str());
    return nullptr;
  }
  std::string text = function_name(call) + " received an invalid combination of arguments - got (";
  Py_ssize_t n_all = call.nargs + (call.kwnames ? PyTuple_GET_SIZE(call.kwnames) : 0);
  for (Py_ssize_t i = call.is_method ? 1 : 0; i < n_all; i++) {
    if (i > (call.is_method ? 1 : 0)) text += ", ";
    if (i >= call.nargs) text += text_of(PyTuple_GET_ITEM(call.kwnames, i - call.nargs)) + "=";
    text += type_text(call.args[i]);
  }
  text += "), but expected one of:";
  for (int k = 0; k < n; k++) {
    Arena arena;
    Extras extras;
    ArgandValue values[kMaxArguments];
    why.clear();
    if (match(call.op->signatures[k], call, values, arena, extras) == Conversion::kError) PyErr_Clear();
    text += "\n * " + signature_text(call.op->signatures[k], call);
    if (!why.empty()) text += "\n      " + why;
  }
  PyErr_SetString(wrong_count ? PyExc_RuntimeError : PyExc_TypeError, text.c_str());
  return nullptr;
}

}  // namespace argand::py
