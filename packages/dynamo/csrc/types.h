// The Python types of this extension.
#pragma once

#include <vector>

#include "packages/dynamo/csrc/guard_tree.h"

namespace argand::dynamo {

struct GuardTreeObject {
  PyObject_HEAD GuardTree* tree;
  PyObject* guards;    // tuple
  PyObject* globals;   // dict for check() without a function, or NULL
  PyObject* closure;   // tuple or NULL
  PyObject* freevars;  // tuple or NULL
};

// One way to run a function, with the guards under which it is right.
struct CacheEntryObject {
  PyObject_HEAD PyObject* guard_tree;
  PyObject* replacement;  // takes the arguments of the function
  PyObject* info;         // whatever the owner of the entry keeps with it
  Py_ssize_t hits;
  bool hooked;  // the replacement runs with the frame hook on
};

struct CompiledFunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyFunctionObject* function;
  PyObject* code;                           // the code that the entries are for: function.__code__ may be assigned
  PyObject* miss;                           // callable(compiled, args, kwargs) -> replacement or None
  std::vector<CacheEntryObject*>* entries;  // owned, most recently used first
  PyObject* dict;
  PyObject* weakrefs;
  bool disabled;  // a miss runs the function itself
};

extern PyTypeObject* guard_tree_type;
extern PyTypeObject* cache_entry_type;
extern PyTypeObject* compiled_function_type;

int init_guard_tree_type(PyObject* module);
int init_compiled_function_type(PyObject* module);
// Whether all compiled functions run as they are; returns what it was.
bool exchange_all_plain(bool value);

// Why `tree` does not hold for this call: (index of the guard, text), or None; NULL + exception.
PyObject* explain(GuardTreeObject* tree, const Call& call, PyObject* code);

// True while this thread is inside the `miss` of a compiled function.
bool is_compiling();

}  // namespace argand::dynamo
