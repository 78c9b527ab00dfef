// Tensors: making, viewing, changing and releasing them. Contracts are at ArgandApi in abi/argand.h.
#pragma once

#include "packages/c10/csrc/abi/argand.h"

namespace argand::core {

int tensor_empty(int32_t ndim, const int64_t* sizes, int dtype, ArgandDevice device, ArgandTensor** out);
int tensor_empty_strided(int32_t ndim, const int64_t* sizes, const int64_t* strides, int dtype, ArgandDevice device, ArgandTensor** out);
int tensor_from_storage(ArgandStorage* storage, int32_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset, int dtype,
                        ArgandTensor** out);
int tensor_view(ArgandTensor* self, int32_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset, int dtype, ArgandTensor** out);
int tensor_alias(ArgandTensor* self, ArgandTensor** out);
int tensor_set_geometry(ArgandTensor* self, int32_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset);
int tensor_set_storage(ArgandTensor* self, ArgandStorage* storage, int dtype);
int tensor_resize(ArgandTensor* self, int32_t ndim, const int64_t* sizes);
void tensor_release(ArgandTensor* self);
void tensor_set_data(ArgandTensor* self);  // from where its storage lies
void set_pyobject_hooks(void (*release)(ArgandTensor*), void (*last_cpp_owner_gone)(ArgandTensor*));

}  // namespace argand::core
