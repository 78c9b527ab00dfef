// What the Python binding of c10 offers to the extensions of other packages: capsule "argand_c10._C.python_api".
// All functions need the GIL. Only binding files include this header.
#pragma once

#include <Python.h>

#include "packages/c10/csrc/abi/argand.h"

extern "C" {

// Types of schema arguments, as the generated bindings describe them.
enum ArgandArgType : uint8_t {
  ARGAND_ARG_TENSOR = 0,  // Tensor
  ARGAND_ARG_OPERAND,     // Tensor|Scalar: a Python number stays a scalar value
  ARGAND_ARG_SCALAR,      // Scalar (bool, int, float, complex; also a 0-d tensor without history)
  ARGAND_ARG_BOOL,
  ARGAND_ARG_INT,
  ARGAND_ARG_FLOAT,
  ARGAND_ARG_STRING,
  ARGAND_ARG_DTYPE,
  ARGAND_ARG_DEVICE,
  ARGAND_ARG_INT_LIST,  // int[] or int[N]; with list_size N > 0 one int stands for N copies
  ARGAND_ARG_FLOAT_LIST,
  ARGAND_ARG_BOOL_LIST,
  ARGAND_ARG_TENSOR_LIST,      // Tensor[]
  ARGAND_ARG_OPT_TENSOR_LIST,  // Tensor?[]
  ARGAND_ARG_GENERATOR,
};

enum ArgandArgFlags : uint8_t {
  ARGAND_ARG_OPTIONAL = 1,  // T?: None is accepted
  ARGAND_ARG_HAS_DEFAULT = 2,
  ARGAND_ARG_KWONLY = 4,
  ARGAND_ARG_VARARGS = 8,        // int[]: may be given as x.view(2, 3) when it is the last positional argument
  ARGAND_ARG_NEEDS_TENSOR = 16,  // the last of the operands, of which one at least must be a tensor
};

struct ArgandArgDesc {
  const char* name;
  ArgandArgType type;
  uint8_t flags;
  int16_t list_size;
  ArgandValue default_value;
};

// One overload: the operator is called with its schema's arguments; with out= given, `out_name`'s operator is called with
// the same arguments followed by the out tensors.
struct ArgandSignature {
  const char* operator_name;
  const char* out_name;  // NULL: no out= form
  uint16_t n_args;       // schema arguments (out= excluded)
  uint16_t n_rets;
  const ArgandArgDesc* args;
  const char* const* ret_names;  // names for a named tuple, or NULL
};

// One Python callable: its overloads are tried in order.
struct ArgandBinding {
  const char* name;  // "add"
  const char* doc;
  uint16_t n_signatures;
  const ArgandSignature* signatures;
};

// Slots of Tensor's number, comparison and mapping protocols, filled by the package that owns the operators.
enum ArgandTensorSlot {
  ARGAND_SLOT_ADD = 0,
  ARGAND_SLOT_SUB,
  ARGAND_SLOT_MUL,
  ARGAND_SLOT_TRUEDIV,
  ARGAND_SLOT_FLOORDIV,
  ARGAND_SLOT_MOD,
  ARGAND_SLOT_POW,
  ARGAND_SLOT_MATMUL,
  ARGAND_SLOT_AND,
  ARGAND_SLOT_OR,
  ARGAND_SLOT_XOR,
  ARGAND_SLOT_LSHIFT,
  ARGAND_SLOT_RSHIFT,
  ARGAND_SLOT_IADD,
  ARGAND_SLOT_ISUB,
  ARGAND_SLOT_IMUL,
  ARGAND_SLOT_ITRUEDIV,
  ARGAND_SLOT_IFLOORDIV,
  ARGAND_SLOT_IMOD,
  ARGAND_SLOT_IPOW,
  ARGAND_SLOT_IAND,
  ARGAND_SLOT_IOR,
  ARGAND_SLOT_IXOR,
  ARGAND_SLOT_ILSHIFT,
  ARGAND_SLOT_IRSHIFT,
  ARGAND_SLOT_NEG,
  ARGAND_SLOT_POS,
  ARGAND_SLOT_ABS,
  ARGAND_SLOT_INVERT,
  ARGAND_SLOT_EQ,
  ARGAND_SLOT_NE,
  ARGAND_SLOT_LT,
  ARGAND_SLOT_LE,
  ARGAND_SLOT_GT,
  ARGAND_SLOT_GE,
  ARGAND_NUM_SLOTS
};

typedef struct ArgandPythonApi {
  uint32_t abi_version;
  uint32_t struct_size;
  PyTypeObject* tensor_type;

  PyObject* (*wrap)(ArgandTensor* t);    // steals the reference; the same object for the same tensor while it lives; NULL -> None
  ArgandTensor* (*unwrap)(PyObject* o);  // borrowed; NULL + TypeError when it is no Tensor
  PyObject* (*raise)(int status);        // turns the thread's error into a Python exception; returns NULL
  int (*to_value)(PyObject* o, const ArgandArgDesc* desc, ArgandValue* out, void** keep_alive);  // one argument, see parse
  PyObject* (*from_value)(ArgandValue* v);                                                       // consumes v

  // Makes the callable of a binding (type `argand_c10._C.Operator`: vectorcall, a method descriptor, attributes name, schema(s), overloads).
  // It parses, looks for __argand_function__ on non-exact tensors, dispatches, wraps. The binding must live forever.
  PyObject* (*operator_new)(const ArgandBinding* binding);
  int (*tensor_set_attr)(const char* name, PyObject* value);    // adds a method, property or constant to Tensor's dict
  int (*tensor_set_slot)(ArgandTensorSlot slot, PyObject* op);  // the Operator that a slot calls; reflected operands are swapped
  // Installs the getter and setter of x[...]; plain C functions for speed.
  void (*tensor_set_indexing)(PyObject* (*get)(PyObject* self, PyObject* index), int (*set)(PyObject* self, PyObject* index, PyObject* v));
  // Calls a binding from C with ready arguments (used by slots and indexing).
  PyObject* (*call_operator)(PyObject* op, PyObject* const* args, size_t nargs, PyObject* kwnames);
  // A tensor's history for the attributes grad_fn, grad, is_leaf, requires_grad, backward, register_hook: getset definitions added by the
  // package that owns histories; both arrays end with a NULL name and live forever.
  int (*tensor_add_getset)(PyGetSetDef* defs);
  int (*tensor_add_methods)(PyMethodDef* defs);
  // For Python's collector: the Python objects that the owner of histories keeps in a tensor's meta, for tensors that C++ does not hold.
  void (*tensor_set_collector)(int (*traverse)(ArgandTensor* t, visitproc visit, void* arg), void (*clear)(ArgandTensor* t));
} ArgandPythonApi;

}  // extern "C"
