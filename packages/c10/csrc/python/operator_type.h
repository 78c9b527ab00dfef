// The parts of an Operator's call: one signature's match, and the error when none matches.
#pragma once

#include <Python.h>
#include <structmember.h>

#include "packages/c10/csrc/python/parser.h"
#include "packages/c10/csrc/python/schema.h"

namespace argand::py {

constexpr int kMaxArguments = 64;

// A signature of the binding's table with what a call needs looked up once.
struct Signature {
  const ArgandSignature* desc;
  const ArgandOperator* op;  // NULL until the first call
  const ArgandOperator* out_op;
  PyObject** names;           // interned
  PyTypeObject* result_type;  // named tuple, or NULL
  uint16_t n_positional;
  bool is_factory;           // takes requires_grad=, layout=, pin_memory= besides its schema
  bool uses_default_device;  // a factory without tensors, on whose device its result would be
};

struct OperatorObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  const ArgandBinding* binding;
  Signature* signatures;  // never freed: bindings live forever
  PyObject* function;     // of a method: the Operator it was made from (owned)
  PyObject* shown;        // of an overload that was asked for by its name: that name, as "aten.add.Scalar" (owned)
  PyObject* name;         // made when it is asked for (owned)
};

struct Call {
  OperatorObject* op;
  PyObject* const* args;
  Py_ssize_t nargs;
  PyObject* kwnames;
  bool is_method;
  std::string* why;             // receives the reason of a mismatch; NULL: not wanted
  bool* wrong_count = nullptr;  // set besides where it is that a list has too many or too few numbers
};

// Keyword arguments that no schema lists.
struct Extras {
  PyObject* out = nullptr;
  bool requires_grad = false;
  bool pin_memory = false;
};

// Fills values[0..n_args) (and the out tensors after them) or says that the signature does not fit.
Conversion match(const Signature& s, const Call& call, ArgandValue* values, Arena& arena, Extras& extras);
PyObject* raise_no_match(Call call);
PyObject* operator_by_name(PyObject*, PyObject* args);
PyObject* named_overload(PyObject*, PyObject* args);

}  // namespace argand::py
