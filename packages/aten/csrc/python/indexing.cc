// Indexing in PyTorch's terms: integers, slices, None, Ellipsis and bools are views; tensors and sequences gather (operator `index`).
#include "packages/aten/csrc/python/indexing.h"

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/generated/ops/comparison.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/indexing.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::python {

const ArgandPythonApi* python_api = nullptr;

namespace {

// A Python error is set; unwinds to the boundary.
[[noreturn]] void python_error() { throw Error{ARGAND_PYTHON_ERROR, ""}; }

int64_t as_index(PyObject* o) {
  const Py_ssize_t v = PyNumber_AsSsize_t(o, PyExc_ValueError);
  if (v == -1 && PyErr_Occurred()) python_error();
  return v;
}

bool is_tensor(PyObject* o) { return PyObject_TypeCheck(o, python_api->tensor_type); }

std::optional<int64_t> slice_bound(PyObject* o) {
  if (o == Py_None) return std::nullopt;
  if (is_tensor(o) || PyIndex_Check(o)) {
    PyObject* number = PyNumber_Index(o);
    if (!number) python_error();
    const int64_t v = PyNumber_AsSsize_t(number, nullptr);  // clips
    Py_DECREF(number);
    if (v == -1 && PyErr_Occurred()) python_error();
    return v;
  }
  fail(ARGAND_TYPE_ERROR, "index: got a %s as slice bound, expected an integer or None", Py_TYPE(o)->tp_name);
}

// A sequence of numbers (or nested) as an index tensor, through the front door `tensor(...)`.
Tensor tensor_of_sequence(PyObject* o) {
  static PyObject* make = nullptr;
  if (!make) {
    PyObject* module = PyImport_ImportModule("argand_aten");
    if (!module) python_error();
    make = PyObject_GetAttrString(module, "tensor");
    Py_DECREF(module);
    if (!make) python_error();
  }
  PyObject* made = PyObject_CallOneArg(make, o);
  if (!made) python_error();
  Tensor t = Tensor::borrow(python_api->unwrap(made));
  Py_DECREF(made);
  if (t.numel() == 0 && is_floating(t.dtype())) return ops::_to_copy(t, ARGAND_INT64);
  return t;
}

// x[[0, 2]] gathers; x[(0, 2)] is x[0, 2]; x[[slice, ...]] counts as a tuple no more.
bool is_sequence(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o) || (PySequence_Check(o) && !is_tensor(o) && !PyUnicode_Check(o)); }

struct Indexed {
  Tensor view;         // after all views
  TensorList indices;  // advanced indices by dimension of `view`, undefined where there is none
  bool advanced = false;
  int masks = 0, gathers = 0;  // advanced indices by kind

  bool fills() const { return masks == 1 && gathers == 0; }  // as masked_fill does
};

int64_t consumed_dims(PyObject* item) {
  if (item == Py_None || item == Py_Ellipsis || PyBool_Check(item)) return 0;
  if (is_tensor(item)) {
    const ArgandTensor* t = python_api->unwrap(item);
    return t->dtype == ARGAND_BOOL || t->dtype == ARGAND_UINT8 ? t->ndim : 1;
  }
  return 1;
}

// Bytes as indices are masks, as they were before there was bool.
Tensor byte_mask(const Tensor& t) {
  if (PyErr_WarnEx(PyExc_UserWarning, "index: got a mask of dtype uint8, expected bool; convert it with .bool()", 1) < 0) python_error();
  return ops::_to_copy(t, ARGAND_BOOL);
}

class Reader {
 public:
  explicit Reader(const Tensor& self) { r_.view = self; }

  Indexed read(PyObject* const* items, Py_ssize_t n) {
    const int64_t specified = remaining(items, 0, n);
    if (specified > r_.view.dim()) fail(ARGAND_INDEX_ERROR, "too many indices for tensor of dimension %lld", static_cast<long long>(r_.view.dim()));
    for (Py_ssize_t i = 0; i < n; i++) {
      if (items[i] == Py_Ellipsis)
        dim_ += r_.view.dim() - dim_ - remaining(items, i + 1, n);
      else
        apply(items[i]);
    }
    return std::move(r_);
  }

 private:
  static int64_t remaining(PyObject* const* items, Py_ssize_t from, Py_ssize_t n) {
    int64_t count = 0;
    for (Py_ssize_t i = from; i < n; i++) count += consumed_dims(items[i]);
    return count;
  }

  void apply(PyObject* item) {
    if (PyLong_Check(item) && !PyBool_Check(item)) {
      select(as_index(item));
    } else if (PySlice_Check(item)) {
      slice(reinterpret_cast<PySliceObject*>(item));
    } else if (item == Py_None) {
      r_.view = ops::unsqueeze(r_.view, dim_++);
      selected_--;
    } else if (PyBool_Check(item)) {
      r_.view = ops::unsqueeze(r_.view, dim_);
      put(ops::nonzero(ops::reshape(ops::full({}, Scalar(item == Py_True), ARGAND_BOOL), {1})), 1);
    } else if (is_tensor(item)) {
      tensor(Tensor::borrow(python_api->unwrap(item)));
    } else if (is_sequence(item)) {  // before __index__, which NumPy arrays have too
      tensor(tensor_of_sequence(item));
    } else if (PyIndex_Check(item)) {
      select(as_index(item));
    } else {
      fail(PyUnicode_Check(item) ? ARGAND_TYPE_ERROR : ARGAND_INDEX_ERROR,
           "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got %s)", Py_TYPE(item)->tp_name);
    }
  }

  // That the view has `n` more dimensions: a sequence counts as one until it is read.
  void require_dims(int64_t n) const {
    if (dim_ + n > r_.view.dim())
      fail(ARGAND_INDEX_ERROR, "too many indices for tensor of dimension %lld", static_cast<long long>(r_.view.dim() + selected_));
  }

  void select(int64_t i) {
    require_dims(1);
    const int64_t size = r_.view.size(dim_);
    if (i < -size || i >= size)  // dimensions are counted in the indexed tensor
      fail(ARGAND_INDEX_ERROR, "index %lld is out of bounds for dimension %lld with size %lld", static_cast<long long>(i),
           static_cast<long long>(dim_ + selected_), static_cast<long long>(size));
    r_.view = ops::select(r_.view, dim_, i);
    selected_++;
  }

  void slice(PySliceObject* s) {
    const int64_t step = slice_bound(s->step).value_or(1);
    if (step <= 0) fail(ARGAND_VALUE_ERROR, "step must be greater than zero");
    if (s->start != Py_None || s->stop != Py_None || step != 1)
      r_.view = ops::slice(r_.view, dim_, slice_bound(s->start), slice_bound(s->stop), step);
    dim_++;
  }

  void tensor(const Tensor& t) {
    if (t.dtype() == ARGAND_UINT8) return tensor(byte_mask(t));
    if (t.dim() == 0 && is_integral(t.dtype(), false)) return select(builtins::item_int(t));
    if (t.dtype() == ARGAND_BOOL) {
      require_dims(t.dim());
      for (int64_t i = 0; i < t.dim(); i++)
        if (t.size(i) != r_.view.size(dim_ + i))
          fail(ARGAND_INDEX_ERROR, "The shape of the mask %s at index %lld does not match the shape of the indexed tensor %s at index %lld",
               to_string(t.sizes()).c_str(), static_cast<long long>(i), to_string(r_.view.sizes()).c_str(), static_cast<long long>(dim_ + i));
      if (t.dim() == 0) {  // a bool scalar: a new dimension of size 1 or 0
        r_.view = ops::unsqueeze(r_.view, dim_);
        put(ops::nonzero(ops::reshape(t, {1})), 1);
      } else {
        put(ops::nonzero(t), t.dim());
      }
      return;
    }
    if (t.dtype() != ARGAND_INT64 && t.dtype() != ARGAND_INT32)
      fail(ARGAND_INDEX_ERROR, "tensors used as indices must be long, int, byte or bool tensors, but got %s", kDTypeName[t.dtype()]);
    r_.gathers++;
    set(t);
  }

  void put(const Tensor& rows, int64_t dims) {  // columns of nonzero()
    r_.masks++;
    for (int64_t i = 0; i < dims; i++) set(ops::select(rows, 1, i));
  }

  void set(const Tensor& index) {
    r_.indices.resize(dim_ + 1);
    r_.indices[dim_++] = index;
    r_.advanced = true;
  }

  Indexed r_;
  int64_t dim_ = 0;       // of r_.view
  int64_t selected_ = 0;  // dimensions that integers took away
};

// A short list that holds more than numbers stands for a tuple, as in PyTorch.
bool is_tuple_like(PyObject* index) {
  if (!PyList_Check(index) || PyList_GET_SIZE(index) >= 32) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(index); i++) {
    PyObject* item = PyList_GET_ITEM(index, i);
    if (is_tensor(item) || is_sequence(item) || PySlice_Check(item) || item == Py_None || item == Py_Ellipsis) return true;
  }
  return false;
}

Indexed read_index(PyObject* self, PyObject* index) {
  Reader reader(Tensor::borrow(python_api->unwrap(self)));
  if (is_tuple_like(index)) {
    PyObject* tuple = PyList_AsTuple(index);
    if (!tuple) python_error();
    struct Hold {
      PyObject* o;
      ~Hold() { Py_DECREF(o); }
    } hold{tuple};
    return reader.read(&PyTuple_GET_ITEM(tuple, 0), PyTuple_GET_SIZE(tuple));
  }
  if (PyTuple_Check(index)) return reader.read(&PyTuple_GET_ITEM(index, 0), PyTuple_GET_SIZE(index));
  return reader.read(&index, 1);
}

// The mask in x[mask], where it fits x's leading dimensions; undefined for other indices and for shapes that the reader complains about.
Tensor sole_mask(const Tensor& self, PyObject* index) {
  if (!is_tensor(index)) return Tensor();
  Tensor mask = Tensor::borrow(python_api->unwrap(index));
  if (mask.dtype() != ARGAND_BOOL || mask.dim() == 0 || mask.dim() > self.dim() || mask.device() != self.device()) return Tensor();
  for (int64_t i = 0; i < mask.dim(); i++)
    if (mask.size(i) != self.size(i)) return Tensor();
  return mask;
}

PyObject* wrap(Tensor t) { return python_api->wrap(t.take()); }

Scalar scalar_of_int(PyObject* o, int dtype) {
  int overflow = 0;
  if (dtype == ARGAND_UINT64 && PyLong_AsLongLongAndOverflow(o, &overflow) == -1 && overflow > 0) {
    const unsigned long long bits = PyLong_AsUnsignedLongLong(o);
    if (PyErr_Occurred()) python_error();
    return Scalar::of_unsigned(bits);
  }
  return Scalar(static_cast<int64_t>(as_index(o)));
}

// The value of an assignment as a tensor of self's dtype, and of its device where that spares waiting for it; numbers stay out of the way of `fill_`.
Tensor value_tensor(PyObject* v, const Tensor& self) {
  if (is_tensor(v)) return Tensor::borrow(python_api->unwrap(v));
  if (v == Py_None) fail(ARGAND_TYPE_ERROR, "index: got None to assign, expected a number, a tensor or a sequence");
  if (PyBool_Check(v)) return ops::full({}, Scalar(v == Py_True), self.dtype(), self.device());
  if (PyLong_Check(v)) return ops::full({}, scalar_of_int(v, self.dtype()), self.dtype(), self.device());
  if (PyFloat_Check(v)) return ops::full({}, Scalar(PyFloat_AS_DOUBLE(v)), self.dtype(), self.device());
  if (PyComplex_Check(v)) {
    const Py_complex c = PyComplex_AsCComplex(v);
    return ops::full({}, Scalar(c.real, c.imag), self.dtype(), self.device());
  }
  return tensor_of_sequence(v);
}

// x[i] = v drops leading dimensions of size 1 of v, as PyTorch does.
Tensor drop_leading(Tensor v, int64_t ndim) {
  while (v.dim() > ndim && v.dim() > 0 && v.size(0) == 1) v = ops::squeeze_dims(v, {int64_t{0}});
  return v;
}

template <class F>
bool ran(F&& f) {
  int status = guarded(f);
  if (status && status != ARGAND_PYTHON_ERROR) python_api->raise(status);
  return status == 0;
}

}  // namespace

PyObject* tensor_getitem(PyObject* self, PyObject* index) {
  PyObject* result = nullptr;
  ran([&] {
    Indexed found = read_index(self, index);
    if (found.advanced) {
      result = wrap(ops::index(found.view, found.indices));
    } else {
      Tensor t = std::move(found.view);
      result = wrap(t.get() == python_api->unwrap(self) ? ops::alias(t) : std::move(t));
    }
  });
  return result;
}

int tensor_setitem(PyObject* self, PyObject* index, PyObject* v) {
  if (!v) {
    PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
    return -1;
  }
  return ran([&] {
    const Tensor x = Tensor::borrow(python_api->unwrap(self));
    const bool is_number = PyBool_Check(v) || PyLong_Check(v) || PyFloat_Check(v);
    if (Tensor mask = is_number && ARGAND_DEVICE_TYPE(x.device()) != ARGAND_CPU ? sole_mask(x, index) : Tensor()) {
      while (mask.dim() < x.dim()) mask = ops::unsqueeze(mask, -1);  // needs no positions, so no waiting for the device
      ops::masked_fill_(x, mask, value_tensor(v, x));
      return;
    }
    Indexed found = read_index(self, index);
    Tensor value = value_tensor(v, found.view);
    if (index == Py_False) return;  // whatever the shape of the value
    if (!found.advanced) {
      ops::copy_(found.view, drop_leading(value, found.view.dim()));
      return;
    }
    const bool converts = !is_tensor(v) || (value.numel() == 1 && found.fills());
    if (converts && value.dtype() != found.view.dtype()) value = ops::_to_copy(value, found.view.dtype());
    ops::index_put_(found.view, found.indices, drop_leading(value, 0), false);
  })
             ? 0
             : -1;
}

}  // namespace argand::python
