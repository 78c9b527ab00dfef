/* Memory that processes share: files without a name, which live as long as a descriptor or a mapping of theirs. Apart from argand.h, whose change
 * compiles everything again. */
#pragma once

#include "packages/c10/csrc/abi/argand.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ArgandSharedMemory {
  int (*storage_new)(size_t nbytes, ArgandStorage** out); /* zeros */
  /* The first bytes of what another process shares. Owns `descriptor` from now on, also when it fails. With `keep` 0 it is closed, so that as many
   * may be open as there is memory, but the storage is not one that can be shared on. */
  int (*storage_open)(int descriptor, size_t nbytes, int keep, ArgandStorage** out);
  /* Makes the CPU's memory of a storage shared, with what it holds. Whole pages (blocks of 1 MiB and more) keep their address. Else the memory moves
   * and all tensors of the storage turn to it, unless others than those and `handles` references that keep no address hold the storage. No other
   * thread may use the memory meanwhile. */
  int (*storage_share)(ArgandStorage* storage, int32_t handles);
  /* How many others those are; 0: the memory is shared already, or keeps its address. */
  int32_t (*storage_keepers)(ArgandStorage* storage, int32_t handles);
  int (*storage_descriptor)(const ArgandStorage* storage); /* the file's, borrowed; -1: not shared */
} ArgandSharedMemory;

const ArgandSharedMemory* argand_shared_memory(void);

#ifdef __cplusplus
}
#endif
