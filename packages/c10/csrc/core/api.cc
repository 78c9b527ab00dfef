// The function table.
#include "packages/c10/csrc/abi/argand.h"

#include <cstdlib>

#include "packages/c10/csrc/core/config.h"
#include "packages/c10/csrc/core/errors.h"
#include "packages/c10/csrc/core/function_table.h"
#include "packages/c10/csrc/core/promotion.h"
#include "packages/c10/csrc/core/storage.h"
#include "packages/c10/csrc/core/tensor_impl.h"
#include "packages/c10/csrc/device/device.h"
#include "packages/c10/csrc/dispatch/dispatcher.h"
#include "packages/c10/csrc/dispatch/operator_table.h"
#include "packages/c10/csrc/dispatch/thread_state.h"
#include "packages/c10/csrc/random/generator.h"
#include "packages/c10/csrc/threads/thread_pool.h"

namespace argand::core {
namespace {

void* alloc_array(size_t nbytes) {
  void* p = malloc(nbytes ? nbytes : 1);
  if (!p) error(ARGAND_OUT_OF_MEMORY_ERROR, "could not allocate %zu bytes for a list of results; free some tensors and call empty_cache()", nbytes);
  return p;
}

constinit ArgandApi g_api = {
    .abi_version = ARGAND_ABI_VERSION,
    .struct_size = sizeof(ArgandApi),
    .set_error = set_error,
    .last_error = last_error,
    .alloc_array = alloc_array,
    .free_array = free,
    .storage_new = storage_new,
    .storage_from_blob = storage_from_blob,
    .storage_release = storage_release,
    .storage_resize = storage_resize,
    .tensor_empty = tensor_empty,
    .tensor_empty_strided = tensor_empty_strided,
    .tensor_from_storage = tensor_from_storage,
    .tensor_view = tensor_view,
    .tensor_alias = tensor_alias,
    .tensor_set_geometry = tensor_set_geometry,
    .tensor_set_storage = tensor_set_storage,
    .tensor_resize = tensor_resize,
    .tensor_release = tensor_release,
    .set_pyobject_hooks = set_pyobject_hooks,
    .op_register = op_register,
    .op_find = op_find,
    .op_set_kernel = op_set_kernel,
    .set_fallback = set_fallback,
    .call = call,
    .redispatch = redispatch,
    .op_list = op_list,
    .thread_state = thread_state,
    .promote_types = promote_types,
    .result_type = result_type,
    .default_dtype = default_dtype,
    .set_default_dtype = set_default_dtype,
    .parallel_for = parallel_for,
    .num_threads = num_threads,
    .set_num_threads = set_num_threads,
    .generator_new = generator_new,
    .default_generator = default_generator,
    .generator_reserve = generator_reserve,
    .generator_release = generator_release,
    .register_device = register_device,
    .device_interface = device_interface,
    .resolve_device = resolve_device,
    .device_type_name = device_type_name,
    .rename_device = rename_device,
    .set_device_loader = set_device_loader,
    .memory_stats = memory_stats,
    .empty_cache = empty_cache,
    .set_cache_limit = set_cache_limit,
    .cpu_tier = [] { return config().cpu_tier; },
    .op_set_epilogue = op_set_epilogue,
    .call_epilogue = call_epilogue,
};

}  // namespace

ArgandApi& function_table() { return g_api; }

}  // namespace argand::core

extern "C" __attribute__((visibility("default"))) const ArgandApi* argand_api(void) { return &argand::core::g_api; }
