/* Recording of what a thread calls. Apart from argand.h, whose change compiles everything again. */
#pragma once

#include "packages/c10/csrc/abi/argand.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ArgandEventKind {
  ARGAND_EVENT_OPERATOR = 0,
  ARGAND_EVENT_BACKWARD, /* a node's part of a backward */
  ARGAND_EVENT_RANGE     /* what a program named */
} ArgandEventKind;

typedef struct ArgandEvent {
  const char* name;
  ArgandEventKind kind;
  int32_t parent;     /* index of the event around it, -1: none */
  int64_t begin, end; /* nanoseconds of the monotonic clock */
  int64_t nbytes;     /* by which the CPU's storages grew from begin to end */
  /* The arguments of an operator, one after the other: a tensor's dtype, number of dimensions and sizes; ARGAND_EVENT_LIST, a number and as many
   * tensors; ARGAND_EVENT_NUMBER; ARGAND_EVENT_OTHER. */
  const int64_t* arguments;
  size_t n_arguments; /* length of that array; 0 unless shapes are recorded */
} ArgandEvent;
#define ARGAND_EVENT_OTHER (-1)
#define ARGAND_EVENT_NUMBER (-2)
#define ARGAND_EVENT_LIST (-3)

typedef struct ArgandProfiler {
  /* Records the calls of operators of this thread from now on. */
  int (*start)(int shapes, int memory);
  /* Ends that and hands over the events in order of their beginnings; those still open end now. `visit` may be NULL. */
  void (*stop)(void (*visit)(const ArgandEvent* event, void* context), void* context);
  /* An event of this thread until leave() is called with what enter() returned: -1 unless the thread is recorded. */
  int64_t (*enter)(const char* name, ArgandEventKind kind);
  void (*leave)(int64_t event);
  /* How many threads are being recorded: whoever wants to pay nothing otherwise looks here before it calls enter(). */
  const int* recording;
} ArgandProfiler;

const ArgandProfiler* argand_profiler(void);

#ifdef __cplusplus
}
#endif
