/* npurt.h: the C interface of libnpurt, a runtime for neural networks. This file is the
 * specification: it is written by hand, the tests derive the symbol list and the struct layouts
 * from it.
 *
 * The shape of it
 *   npurt_model    a network as loaded: graph and weights; immutable, shared by any number of
 *                  sessions
 *   npurt_session  compiled models and their variables; any number of runs at the same time
 *   npurt_run      one prepared run: bound inputs and outputs, executed again and again
 *   npurt_value    what goes in and out: tensor, sequence, optional or map
 *   npurt_options  settings by name        npurt_host  memory, threads, log and operators of the
 *                  host
 *   npurt_graph    a builder               npurt_error, npurt_text, npurt_future, npurt_cancel
 *
 * Rules that hold for every function
 *   Status     A function that can fail returns npurt_status and takes `npurt_error** error` last.
 *              `error` may be NULL. On failure *error is a new object that the caller releases; on
 *              success it is left alone. The library never aborts, exits, prints, or lets an
 *              exception out.
 *   Outputs    Out-parameters are named out_* and written on success only. On failure handles and
 *              metadata are unchanged; bytes of bound output buffers are unspecified.
 *   Ownership  A handle that comes through an out-parameter belongs to the caller, who releases it.
 *              A pointer that is a function's result, or a field of a struct that was filled, is
 *              borrowed: it lives as long as the object it was asked from. Arguments are borrowed
 *              for the call; a function that keeps a handle takes its own reference. release(NULL)
 *              is fine. Releasing never waits for a run: the last user frees.
 *   Callbacks  Function, user_data and destructor travel together. The destructor (may be NULL)
 *              runs exactly once, on every path, also when the call that took the callback fails;
 *              the only exception is a struct_size that does not reach the field. Callbacks may
 *              call this library unless said otherwise, and must return, not unwind (no longjmp, no
 *              exception).
 *   Structs    With a struct_size: fill it with npurt_<type>_init(), which also zeroes the rest.
 *              Fields are added at the end only. A struct longer than the library knows is accepted
 *              if the unknown tail is zero, else INVALID_ARGUMENT: an option that is not understood
 *              is reported. Structs without struct_size are frozen. Flags that are not defined must
 *              be 0.
 *   Numbers    Constants have explicit values that never change; new ones may appear, in results
 *              too.
 *   Strings    UTF-8, NUL-terminated unless a length stands beside them.
 *   Threads    Each function bears a class:
 *                [any]    any thread, any time, also on the same handle at the same time
 *                [one]    any thread, one at a time per handle
 *                [signal] as [any], and from signal handlers
 *              Nothing depends on which thread made an earlier call; no state is thread-local.
 *   Errors     INVALID_ARGUMENT (a NULL that must not be, an unknown flag) and RESOURCE_EXHAUSTED
 *              (no memory) may come from every function; each function lists the others. INTERNAL
 *              always means a bug of the library. UNIMPLEMENTED means not in this version.
 *   Memory     Any alignment of user memory is accepted and no byte past it is ever read.
 *
 * Fork       In a child, sessions and runs of the parent answer FAILED_PRECONDITION. Everything
 *            else works there, new sessions too, if no other thread was inside this library at the
 *            fork; otherwise the child must only exec or _exit. A host's executor is the host's
 *            business.
 * Unload     No thread of the library is alive once the last session is released, there are no
 *            exit-time destructors, and exit() during a run is safe. dlclose() keeps the code
 *            mapped (it is linked with -z nodelete); every handle must have been released before
 *            it.
 * Version    Within ABI major 1 symbols and fields are only added, under the ELF node NPURT_1
 *            (later additions NPURT_1.n). There is no table of functions beside the symbols: with
 *            one stable node dlsym gives the same, and a second door would have to be kept equal.
 */
#ifndef NPURT_NPURT_H_
#define NPURT_NPURT_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NPURT_VERSION_MAJOR 0
#define NPURT_VERSION_MINOR 1
#define NPURT_VERSION_PATCH 0
#define NPURT_ABI_MAJOR 1

#if defined(__GNUC__)
#define NPURT_VISIBLE_ __attribute__((visibility("default")))
#else
#define NPURT_VISIBLE_
#endif
#define NPURT_API NPURT_VISIBLE_

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types ----------------------------------------------------------------------------------- */

typedef struct npurt_error npurt_error;     /* immutable, reference counted */
typedef struct npurt_text npurt_text;       /* an immutable string the library made */
typedef struct npurt_host npurt_host;       /* what the host provides; frozen at its first use */
typedef struct npurt_options npurt_options; /* settings; copied where they are used */
typedef struct npurt_value npurt_value;     /* tensor, sequence, optional, map */
typedef struct npurt_graph npurt_graph;     /* a builder */
typedef struct npurt_model npurt_model;     /* immutable */
typedef struct npurt_session npurt_session;
typedef struct npurt_run npurt_run;
typedef struct npurt_future npurt_future;
typedef struct npurt_cancel npurt_cancel;
typedef struct npurt_op_context npurt_op_context; /* lives during one callback of an operator */
typedef struct npurt_op_pending npurt_op_pending; /* an operator call that finishes later */
struct DLManagedTensorVersioned;                  /* dlpack.h, 1.x */

/* Result of a call: the canonical numbers of Abseil and gRPC. */
typedef int32_t npurt_status;
enum {
  NPURT_OK = 0,
  NPURT_CANCELLED = 1,        /* the cancel token was triggered, or the session closed */
  NPURT_UNKNOWN = 2,          /* a callback returned a number that is no status */
  NPURT_INVALID_ARGUMENT = 3, /* wrong whatever the state: shapes, types, names, files */
  NPURT_DEADLINE_EXCEEDED = 4,
  NPURT_NOT_FOUND = 5,
  NPURT_ALREADY_EXISTS = 6,
  NPURT_PERMISSION_DENIED = 7,
  NPURT_RESOURCE_EXHAUSTED = 8,  /* memory, an arena that is too small, a limit of the options */
  NPURT_FAILED_PRECONDITION = 9, /* right call, wrong state: closed, frozen, not yet bound */
  NPURT_ABORTED = 10,
  NPURT_OUT_OF_RANGE = 11, /* an index read from a tensor, or past the end */
  NPURT_UNIMPLEMENTED = 12,
  NPURT_INTERNAL = 13, /* a bug of the library */
  NPURT_UNAVAILABLE = 14,
  NPURT_DATA_LOSS = 15, /* a file that is cut off or damaged */
  NPURT_UNAUTHENTICATED = 16
};

typedef int32_t npurt_kind;
enum {
  NPURT_KIND_NONE = 0,
  NPURT_KIND_TENSOR = 1,
  NPURT_KIND_SEQUENCE = 2,
  NPURT_KIND_OPTIONAL = 3,
  NPURT_KIND_MAP = 4,
  NPURT_KIND_RESOURCE = 5 /* a variable, in graphs only */
};

/* Element types, numbered as in ONNX TensorProto.DataType. Types below a byte are packed,
 * low bits first. */
typedef int32_t npurt_dtype;
enum {
  NPURT_DTYPE_NONE = 0,
  NPURT_FLOAT32 = 1,
  NPURT_UINT8 = 2,
  NPURT_INT8 = 3,
  NPURT_UINT16 = 4,
  NPURT_INT16 = 5,
  NPURT_INT32 = 6,
  NPURT_INT64 = 7,
  NPURT_STRING = 8,
  NPURT_BOOL = 9, /* one byte, 0 or 1 */
  NPURT_FLOAT16 = 10,
  NPURT_FLOAT64 = 11,
  NPURT_UINT32 = 12,
  NPURT_UINT64 = 13,
  NPURT_COMPLEX64 = 14,
  NPURT_COMPLEX128 = 15,
  NPURT_BFLOAT16 = 16,
  NPURT_FLOAT8E4M3FN = 17,
  NPURT_FLOAT8E4M3FNUZ = 18,
  NPURT_FLOAT8E5M2 = 19,
  NPURT_FLOAT8E5M2FNUZ = 20,
  NPURT_UINT4 = 21,
  NPURT_INT4 = 22,
  NPURT_FLOAT4E2M1 = 23,
  NPURT_FLOAT8E8M0 = 24,
  NPURT_UINT2 = 25,
  NPURT_INT2 = 26
};

/* Frozen: bytes with a length, not NUL-terminated unless said. */
typedef struct npurt_string {
  const char* data;
  size_t size;
} npurt_string;

/* Frozen: dimensions. */
typedef struct npurt_shape {
  const int64_t* dims;
  size_t rank;
} npurt_shape;

/* Frozen: how to give memory back. */
typedef struct npurt_deleter {
  void (*release)(void* user_data, void* data);
  void* user_data;
} npurt_deleter;

#define NPURT_DEFINE_INIT_(type)                \
  static inline struct type type##_init(void) { \
    struct type v;                              \
    memset(&v, 0, sizeof v);                    \
    v.struct_size = (uint32_t)sizeof v;         \
    return v;                                   \
  }

/* ---- Library --------------------------------------------------------------------------------- */

/* [signal] "0.1.0", of the library that was loaded. Static. */
NPURT_API const char* npurt_version(void);
/* [signal] ABI major of the library; the program was built for NPURT_ABI_MAJOR. */
NPURT_API uint32_t npurt_abi(void);
/* [signal] "INVALID_ARGUMENT" for 3; "UNKNOWN" for numbers that are no status. Static. */
NPURT_API const char* npurt_status_name(npurt_status status);
/* [signal] "float32" for 1; NULL for numbers that are no element type. Static. */
NPURT_API const char* npurt_dtype_name(npurt_dtype dtype);
/* [signal] The number for "float32" (ONNX spellings too, "float"); NPURT_DTYPE_NONE if there is
 * none. */
NPURT_API npurt_dtype npurt_dtype_find(const char* name);
/* [signal] Bits of one element; 0 for strings and unknown numbers. */
NPURT_API uint32_t npurt_dtype_bits(npurt_dtype dtype);
/* [signal] The clock of every deadline: CLOCK_MONOTONIC in nanoseconds. */
NPURT_API int64_t npurt_now_ns(void);

/* What a report is about. Reports are JSON documents; members are only added. */
typedef int32_t npurt_report;
enum {
  NPURT_REPORT_BUILD = 1,     /* library: version, compiler, instruction sets built in */
  NPURT_REPORT_CPU = 2,       /* library: what this machine has and what is allowed */
  NPURT_REPORT_OPERATORS = 3, /* library: those known; model, session: those used */
  NPURT_REPORT_OPTIONS = 4,   /* library: every option; session: values in force */
  NPURT_REPORT_GRAPH = 5,     /* model, session: nodes, values, types, as loaded */
  NPURT_REPORT_COMPILE = 6,   /* session: each pass, what it did, milliseconds */
  NPURT_REPORT_PLAN = 7,      /* session: steps after the passes, and what chose their types */
  NPURT_REPORT_MEMORY = 8,    /* model, session: exact bytes by owner */
  NPURT_REPORT_COUNTERS = 9,  /* session: runs, plans made and reused, arenas leased */
  NPURT_REPORT_OPS_INFO = 10  /* library: element types of each operator, and mixed precision's lists */
};
/* [any] BUILD, CPU, OPERATORS, OPTIONS or OPS_INFO; others INVALID_ARGUMENT. */
NPURT_API npurt_status npurt_library_report(npurt_report kind, npurt_text** out_text,
                                            npurt_error** error);

/* [any] The bytes, NUL-terminated, and their number without the NUL. */
NPURT_API const char* npurt_text_data(const npurt_text* text);
NPURT_API size_t npurt_text_size(const npurt_text* text);
NPURT_API void npurt_text_release(npurt_text* text);

/* ---- Errors ---------------------------------------------------------------------------------- */

/* [any] All borrowed from the error, never NULL, "" where there is nothing to tell; NULL is
 * accepted. message: `where: what was found, what was wanted`, in the names of the caller's
 * graph. */
NPURT_API npurt_status npurt_error_code(const npurt_error* error);
NPURT_API const char* npurt_error_message(const npurt_error* error);
NPURT_API const char* npurt_error_node(const npurt_error* error);     /* the node's name */
NPURT_API const char* npurt_error_operator(const npurt_error* error); /* its operator type */
NPURT_API const char* npurt_error_tensor(const npurt_error* error);   /* the value's name */
/* [any] What led to it: the operator's own error under that of its node, or the error of a node in a
 * subgraph. NULL where the message names no node. Borrowed from the first error of the chain. */
NPURT_API const npurt_error* npurt_error_cause(const npurt_error* error);
NPURT_API npurt_error* npurt_error_retain(npurt_error* error);
NPURT_API void npurt_error_release(npurt_error* error);

/* ---- Host: memory, threads, log, operators --------------------------------------------------- */

/* What memory is for. */
typedef int32_t npurt_memory;
enum {
  NPURT_MEMORY_WEIGHTS = 1, /* as loaded */
  NPURT_MEMORY_PACKED = 2,  /* weights in a kernel's order */
  NPURT_MEMORY_ARENA = 3,   /* intermediate values of one run */
  NPURT_MEMORY_SCRATCH = 4, /* working space of kernels */
  NPURT_MEMORY_VALUE = 5    /* values the library makes: outputs, variables */
};

/* Memory of weights, arenas, scratch and values. Called from any thread, several at once; must not
 * call this library. Small bookkeeping objects are not included. */
typedef struct npurt_allocator {
  uint32_t struct_size;
  uint32_t flags; /* 0 */
  void* user_data;
  /* `bytes` > 0, `alignment` a power of two. NULL: no memory, the call fails RESOURCE_EXHAUSTED. */
  void* (*allocate)(void* user_data, size_t bytes, size_t alignment, npurt_memory kind);
  /* With the numbers of the allocation. */
  void (*release)(void* user_data, void* data, size_t bytes, size_t alignment, npurt_memory kind);
  void (*destroy)(void* user_data);
} npurt_allocator;
NPURT_DEFINE_INIT_(npurt_allocator)

/* The host's thread pool. With it the library makes no thread of its own. A run is correct with any
 * number of threads that arrive, even none: the calling thread can finish alone. */
typedef struct npurt_executor {
  uint32_t struct_size;
  uint32_t flags; /* 0 */
  void* user_data;
  /* How many threads may compute at once, the caller of a run included. */
  uint32_t (*concurrency)(void* user_data);
  /* Runs task(argument) once, soon, on another thread. Not OK: it will not run; the library goes on
   * without. Every task that was accepted must be run before `destroy` returns. Must not wait.
   * `destroy` may be called on a thread of the executor: at the end of a submitted run whose
   * session was released before. */
  npurt_status (*submit)(void* user_data, void (*task)(void* argument), void* argument);
  void (*destroy)(void* user_data);
} npurt_executor;
NPURT_DEFINE_INIT_(npurt_executor)

typedef int32_t npurt_log_level;
enum { NPURT_LOG_DEBUG = 0, NPURT_LOG_INFO = 1, NPURT_LOG_WARNING = 2, NPURT_LOG_ERROR = 3 };

/* Where messages go; without one they go nowhere. Called from any thread, several at once. */
typedef struct npurt_log_sink {
  uint32_t struct_size;
  npurt_log_level min_level;
  void* user_data;
  void (*write)(void* user_data, npurt_log_level level, const char* where, const char* message);
  void (*destroy)(void* user_data);
} npurt_log_sink;
NPURT_DEFINE_INIT_(npurt_log_sink)

enum {
  NPURT_OPERATOR_PURE = 1, /* same inputs, same outputs: may be folded, merged, moved */
  NPURT_OPERATOR_READS_STATE = 2,
  NPURT_OPERATOR_WRITES_STATE = 4, /* keeps its place in the order */
  NPURT_OPERATOR_SERIAL = 8        /* `compute` must not run several times at once */
};

/* An operator, or a call back into the host: what a node of type `type` means in models and graphs
 * that are made with this host. A name of its own, or one of the library's: then it replaces it. */
typedef struct npurt_operator {
  uint32_t struct_size;
  uint32_t flags;
  const char* type;
  const char* domain;              /* NULL or "" is ONNX's own */
  uint32_t min_inputs, max_inputs; /* UINT32_MAX: no limit */
  uint32_t min_outputs, max_outputs;
  void* user_data;
  /* Says type and shape of each output (npurt_op_set_output_info). Several times per node, also in
   * runs when shapes were unknown before. NULL: outputs have the element type of input 0, or
   * float32 without inputs, and shapes that only compute tells. */
  npurt_status (*infer)(void* user_data, npurt_op_context* context);
  /* Computes. On any thread. */
  npurt_status (*compute)(void* user_data, npurt_op_context* context);
  void (*destroy)(void* user_data);
} npurt_operator;
NPURT_DEFINE_INIT_(npurt_operator)

/* [any] */
NPURT_API npurt_status npurt_host_create(npurt_host** out_host, npurt_error** error);
/* [one] Each at most once (ALREADY_EXISTS) and before a model or session used the host
 * (FAILED_PRECONDITION). The struct is copied; `destroy` runs when the last user of the host is
 * gone. */
NPURT_API npurt_status npurt_host_set_allocator(npurt_host* host, const npurt_allocator* allocator,
                                                npurt_error** error);
NPURT_API npurt_status npurt_host_set_executor(npurt_host* host, const npurt_executor* executor,
                                               npurt_error** error);
NPURT_API npurt_status npurt_host_set_log(npurt_host* host, const npurt_log_sink* sink,
                                          npurt_error** error);
/* [one] Before first use. ALREADY_EXISTS: (domain, type) was added before. */
NPURT_API npurt_status npurt_host_add_operator(npurt_host* host, const npurt_operator* op,
                                               npurt_error** error);
NPURT_API npurt_host* npurt_host_retain(npurt_host* host);
NPURT_API void npurt_host_release(npurt_host* host);

/* ---- Options --------------------------------------------------------------------------------- */

/* One row of the table of options. Strings are static. */
typedef struct npurt_option_info {
  uint32_t struct_size;
  uint32_t flags; /* 0 */
  const char* name;
  const char* type;          /* "bool", "int", "text", "choice", "path", "json" ... */
  const char* default_value; /* in the profile asked for; NULL: unset */
  const char* allowed;       /* "0..1024", "fast|machine|isa"; "" if free */
  const char* scenario;      /* where it applies: "any", "training", "inference", "load", "run" */
  const char* status;        /* "active", "not active yet", "accepted, no effect" or "not supported
                              * in this version"; may go on ", deprecated" and the like */
  const char* help;          /* one sentence */
} npurt_option_info;
NPURT_DEFINE_INIT_(npurt_option_info)

/* [any] The table. profile: "native", "session" or "run_config"; NULL is "native".
 * OUT_OF_RANGE: no such index. NOT_FOUND: no such profile. */
NPURT_API size_t npurt_options_count(void);
NPURT_API npurt_status npurt_options_describe(size_t index, const char* profile,
                                              npurt_option_info* out_info, npurt_error** error);
/* [any] Options with the defaults of a profile. NOT_FOUND: no such profile. */
NPURT_API npurt_status npurt_options_create(const char* profile, npurt_options** out_options,
                                            npurt_error** error);
/* [any] */
NPURT_API npurt_status npurt_options_clone(const npurt_options* options,
                                           npurt_options** out_options, npurt_error** error);
/* [one] value NULL: unset, which is a state of its own and not 0 or false. Values are checked alone
 * here, pairs in npurt_options_check. NOT_FOUND: unknown name (the text has the nearest one).
 * INVALID_ARGUMENT: not a value the option allows. */
NPURT_API npurt_status npurt_options_set(npurt_options* options, const char* name,
                                         const char* value, npurt_error** error);
/* [one] Lines `name = value`; '#' starts a comment line. All or nothing; the error names every bad
 * line. */
NPURT_API npurt_status npurt_options_set_text(npurt_options* options, const char* text, size_t size,
                                              npurt_error** error);
/* [one] The value in force: set, or the profile's default; NULL when unset. Borrowed until the next
 * change. NOT_FOUND: unknown name. */
NPURT_API npurt_status npurt_options_get(const npurt_options* options, const char* name,
                                         const char** out_value, npurt_error** error);
/* [one] What was set, in the form that npurt_options_set_text reads; `profile` first as a
 * comment. */
NPURT_API npurt_status npurt_options_text(const npurt_options* options, npurt_text** out_text,
                                          npurt_error** error);
/* [one] The values in force, a JSON document: of each option its value, where it comes from
 * ("default", "environment", "set", "unset", "forced", "ignored") and why; notes; and the problems for
 * which npurt_options_check would fail. */
NPURT_API npurt_status npurt_options_report(const npurt_options* options, npurt_text** out_text,
                                            npurt_error** error);
/* [one] Exclusions and requirements, the files that options name, and the environment in the
 * profiles session and run_config; all violations in one error. UNIMPLEMENTED: nothing is wrong but
 * values that need what this version has not. Sessions do it too. */
NPURT_API npurt_status npurt_options_check(const npurt_options* options, npurt_error** error);
NPURT_API void npurt_options_release(npurt_options* options);

/* ---- Values ---------------------------------------------------------------------------------- */
/* A value's type and shape never change; the elements of a tensor may be written through
 * npurt_value_tensor while no run uses it. Types as text: "tensor(float32)",
 * "sequence(tensor(int64))", "optional(sequence(tensor(string)))",
 * "map(string,tensor(float32))". */

enum {
  NPURT_TENSOR_READ_ONLY = 1, /* the elements must not be written */
  NPURT_TENSOR_CONTIGUOUS = 2 /* row-major without gaps (set by the library) */
};

/* A view of a tensor. */
typedef struct npurt_tensor {
  uint32_t struct_size;
  uint32_t flags; /* NPURT_TENSOR_* */
  npurt_dtype dtype;
  int32_t rank;
  const int64_t* dims;
  const int64_t* strides; /* in elements, >= 0; NULL in arguments: row-major */
  void* data;             /* the first element, any alignment; NULL for strings and empty tensors */
  size_t bytes;           /* row-major: elements * bits / 8, rounded up */
  size_t count;           /* number of elements (set by the library) */
} npurt_tensor;
NPURT_DEFINE_INIT_(npurt_tensor)

/* [any] A tensor of zeros (empty strings) in memory of the library; 64-byte aligned. host may be
 * NULL. */
NPURT_API npurt_status npurt_value_create(npurt_dtype dtype, const int64_t* dims, size_t rank,
                                          npurt_host* host, npurt_value** out_value,
                                          npurt_error** error);
/* [any] A tensor with a copy of `bytes` bytes, which must be exactly what the shape needs. */
NPURT_API npurt_status npurt_value_copy(npurt_dtype dtype, const int64_t* dims, size_t rank,
                                        const void* data, size_t bytes, npurt_value** out_value,
                                        npurt_error** error);
/* [any] A tensor over the caller's memory: dtype, rank, dims, strides, data, bytes and READ_ONLY of
 * `tensor` are used; `bytes` is what may be touched from `data` on and must hold the shape.
 * Negative strides UNIMPLEMENTED. `deleter` (NULL: none) runs when the last user is done, and also
 * on failure; until then the memory must stay. Not for strings. */
NPURT_API npurt_status npurt_value_borrow(const npurt_tensor* tensor, const npurt_deleter* deleter,
                                          npurt_value** out_value, npurt_error** error);
/* [any] A tensor of strings, copied; count must be the product of dims. */
NPURT_API npurt_status npurt_value_strings(const int64_t* dims, size_t rank,
                                           const npurt_string* items, size_t count,
                                           npurt_value** out_value, npurt_error** error);
/* [any] A sequence of values, all of type `element_type` (NULL: the type of the first item). */
NPURT_API npurt_status npurt_value_sequence(const char* element_type, npurt_value* const* items,
                                            size_t count, npurt_value** out_value,
                                            npurt_error** error);
/* [any] An optional; item NULL: empty, and then element_type must be given. */
NPURT_API npurt_status npurt_value_optional(const char* element_type, npurt_value* item,
                                            npurt_value** out_value, npurt_error** error);
/* [any] A map. keys: a tensor of rank 1, integers or strings, all different; values: a sequence of
 * the same length, or a tensor of rank 1 (which becomes a sequence of scalars). */
NPURT_API npurt_status npurt_value_map(npurt_value* keys, npurt_value* values,
                                       npurt_value** out_value, npurt_error** error);
/* [any] From a serialised ONNX message: `kind` says whether TensorProto, SequenceProto,
 * OptionalProto or MapProto. The bytes are copied. External data is refused (PERMISSION_DENIED).
 * INVALID_ARGUMENT with the byte offset; DATA_LOSS: cut off. */
NPURT_API npurt_status npurt_value_parse(npurt_kind kind, const void* data, size_t size,
                                         npurt_value** out_value, npurt_error** error);
/* [any] Takes over a DLPack 1.x tensor in CPU memory, without a copy. Its deleter runs exactly
 * once: when the value's last user is done, or before a failure returns. UNIMPLEMENTED: other
 * devices, lanes, another major version. */
NPURT_API npurt_status npurt_value_from_dlpack(struct DLManagedTensorVersioned* tensor,
                                               npurt_value** out_value, npurt_error** error);
/* [any] A DLPack 1.x view that keeps the value alive until its deleter is called; READ_ONLY is
 * handed on. INVALID_ARGUMENT: not a tensor, or strings. */
NPURT_API npurt_status npurt_value_to_dlpack(npurt_value* value,
                                             struct DLManagedTensorVersioned** out_tensor,
                                             npurt_error** error);
/* [any] */
NPURT_API npurt_kind npurt_value_kind(const npurt_value* value);
/* [any] The type as text. */
NPURT_API const char* npurt_value_type(const npurt_value* value);
/* [any] View of a tensor. INVALID_ARGUMENT: another kind. */
NPURT_API npurt_status npurt_value_tensor(npurt_value* value, npurt_tensor* out_tensor,
                                          npurt_error** error);
/* [any] Elements, row-major, whatever the strides, into a buffer of exactly `bytes`. Not for
 * strings. */
NPURT_API npurt_status npurt_value_read(npurt_value* value, void* buffer, size_t bytes,
                                        npurt_error** error);
/* [any] Element `index` (row-major) of a tensor of strings. OUT_OF_RANGE. */
NPURT_API npurt_status npurt_value_string(npurt_value* value, size_t index,
                                          npurt_string* out_string, npurt_error** error);
/* [any] How many elements a tensor has, items a sequence or map; 1 or 0 for an optional. */
NPURT_API size_t npurt_value_count(const npurt_value* value);
/* [any] Item of a sequence, value of a map's entry, content of an optional (index 0).
 * OUT_OF_RANGE. */
NPURT_API npurt_status npurt_value_item(npurt_value* value, size_t index, npurt_value** out_item,
                                        npurt_error** error);
/* [any] The keys of a map: a tensor of rank 1. */
NPURT_API npurt_status npurt_value_keys(npurt_value* value, npurt_value** out_keys,
                                        npurt_error** error);
NPURT_API npurt_value* npurt_value_retain(npurt_value* value);
NPURT_API void npurt_value_release(npurt_value* value);

/* ---- Inside an operator of the host ---------------------------------------------------------- */

/* Type of an input or output, or of a value in a graph. */
typedef struct npurt_value_info {
  uint32_t struct_size;
  npurt_kind kind;
  npurt_dtype dtype; /* of a tensor or resource, else NONE */
  int32_t rank;      /* -1: unknown */
  const char* name;
  const char* type;             /* as text; in arguments NULL: tensor of `dtype` */
  const int64_t* dims;          /* -1: unknown */
  const char* const* dim_names; /* "batch", "" where there is none; in arguments may be NULL */
} npurt_value_info;
NPURT_DEFINE_INIT_(npurt_value_info)

/* Frozen: an attribute. `data` points to `count` (1 unless the kind is a list) of: */
typedef int32_t npurt_attribute_kind;
enum {
  NPURT_ATTRIBUTE_FLOAT = 1,  /* float */
  NPURT_ATTRIBUTE_INT = 2,    /* int64_t */
  NPURT_ATTRIBUTE_STRING = 3, /* npurt_string */
  NPURT_ATTRIBUTE_TENSOR = 4, /* npurt_value* */
  NPURT_ATTRIBUTE_GRAPH = 5,  /* npurt_graph* */
  NPURT_ATTRIBUTE_FLOATS = 6,
  NPURT_ATTRIBUTE_INTS = 7,
  NPURT_ATTRIBUTE_STRINGS = 8
};
typedef struct npurt_attribute {
  const char* name;
  npurt_attribute_kind kind;
  uint32_t reserved; /* 0 */
  const void* data;
  size_t count;
} npurt_attribute;

/* All [one] per context, inside infer or compute only. An absent optional input counts. */
NPURT_API size_t npurt_op_input_count(const npurt_op_context* context);
NPURT_API size_t npurt_op_output_count(const npurt_op_context* context);
/* The node's name in the caller's graph. */
NPURT_API const char* npurt_op_node(const npurt_op_context* context);
/* Type of an input. NOT_FOUND: absent. OUT_OF_RANGE. */
NPURT_API npurt_status npurt_op_input_info(npurt_op_context* context, size_t index,
                                           npurt_value_info* out_info, npurt_error** error);
/* Numbers, strings and tensors; NOT_FOUND: the node does not have it. */
NPURT_API npurt_status npurt_op_attribute(npurt_op_context* context, const char* name,
                                          npurt_attribute* out_attribute, npurt_error** error);
/* infer: says what an output will be. dims -1: unknown; with the dim_name of an input's dimension
 * it is the same as that one. rank -1 if even that is unknown. */
NPURT_API npurt_status npurt_op_set_output_info(npurt_op_context* context, size_t index,
                                                const npurt_value_info* info, npurt_error** error);
/* The value of an input, borrowed until compute returns (or finishes); it must not be retained, its
 * memory is used again then. NULL: absent; in infer also: not a constant. */
NPURT_API npurt_value* npurt_op_input(npurt_op_context* context, size_t index);
/* compute: memory for an output of these dimensions, to be written through the view. */
NPURT_API npurt_status npurt_op_output(npurt_op_context* context, size_t index, npurt_dtype dtype,
                                       const int64_t* dims, size_t rank, npurt_tensor* out_tensor,
                                       npurt_error** error);
/* compute: the output is this value (strings, sequences, or memory that exists already). */
NPURT_API npurt_status npurt_op_set_output(npurt_op_context* context, size_t index,
                                           npurt_value* value, npurt_error** error);
/* Text for the status that the callback is about to return. */
NPURT_API void npurt_op_fail(npurt_op_context* context, const char* message);
/* compute: the call will finish later, from any thread, by npurt_op_finish. The context, inputs and
 * outputs live until then; compute must return NPURT_OK. The thread that drives the run waits
 * meanwhile, other runs go on; with a host's executor it is one of the executor's. */
NPURT_API npurt_status npurt_op_defer(npurt_op_context* context, npurt_op_pending** out_pending,
                                      npurt_error** error);
/* [any] Exactly once per npurt_op_defer; the handle is gone afterwards. message may be NULL. */
NPURT_API void npurt_op_finish(npurt_op_pending* pending, npurt_status status, const char* message);

/* ---- Graphs ---------------------------------------------------------------------------------- */
/* A builder. Values and nodes are numbers that belong to their graph. Each node is checked against
 * its operator as it is added: the error has the node's name, the found and the wanted. */

typedef int32_t npurt_value_id; /* -1: an optional input that is absent */
typedef int32_t npurt_node_id;

typedef struct npurt_node {
  uint32_t struct_size;
  int32_t version; /* of the operator set, as ONNX counts; 0: the newest known */
  const char* type;
  const char* domain; /* NULL or "": ONNX's own */
  const char* name;   /* NULL: one is made up */
  const npurt_value_id* inputs;
  size_t input_count;
  const char* const* output_names; /* NULL or NULL entries: made up */
  size_t output_count;
  const npurt_attribute* attributes; /* any node takes _keep_dtype: 1 keeps its element types */
  size_t attribute_count;
} npurt_node;
NPURT_DEFINE_INIT_(npurt_node)

/* [any] host (may be NULL): whose operators nodes may use. */
NPURT_API npurt_status npurt_graph_create(const char* name, npurt_host* host,
                                          npurt_graph** out_graph, npurt_error** error);
/* [one] on outer. An inner graph: it will be an attribute of a node of `outer`, such as a branch of
 * If or the body of Loop; it keeps `outer`. */
NPURT_API npurt_status npurt_graph_create_inner(npurt_graph* outer, const char* name,
                                                npurt_graph** out_graph, npurt_error** error);
/* All below [one], an outer graph and its inner ones together. ALREADY_EXISTS: the name is taken.
 * OUT_OF_RANGE: no such id. */
NPURT_API npurt_status npurt_graph_add_input(npurt_graph* graph, const npurt_value_info* info,
                                             npurt_value_id* out_id, npurt_error** error);
/* The value is shared, not copied: it must not be written any more. */
NPURT_API npurt_status npurt_graph_add_constant(npurt_graph* graph, const char* name,
                                                npurt_value* value, npurt_value_id* out_id,
                                                npurt_error** error);
/* State of a session, found by name: graphs of one session that name the same variable share it.
 * The id is a resource, which ReadVariable, Assign and the like take. initial NULL: unset until
 * assigned. */
NPURT_API npurt_status npurt_graph_add_variable(npurt_graph* graph, const npurt_value_info* info,
                                                npurt_value* initial, npurt_value_id* out_id,
                                                npurt_error** error);
/* In an inner graph: a value of its outer graph, by name. NOT_FOUND: not there (an inner graph in
 * between captures it first). FAILED_PRECONDITION: not an inner graph. */
NPURT_API npurt_status npurt_graph_add_capture(npurt_graph* graph, const char* name,
                                               npurt_value_id* out_id, npurt_error** error);
/* out_outputs (NULL if not wanted) has room for node->output_count ids; out_node may be NULL too.
 * UNIMPLEMENTED: no such operator. Graphs in attributes are copied. */
NPURT_API npurt_status npurt_graph_add_node(npurt_graph* graph, const npurt_node* node,
                                            npurt_value_id* out_outputs, npurt_node_id* out_node,
                                            npurt_error** error);
/* `after` starts when `before` is done. INVALID_ARGUMENT: that would close a circle. */
NPURT_API npurt_status npurt_graph_add_control_edge(npurt_graph* graph, npurt_node_id before,
                                                    npurt_node_id after, npurt_error** error);
/* name NULL: the value's own. */
NPURT_API npurt_status npurt_graph_add_output(npurt_graph* graph, npurt_value_id id,
                                              const char* name, npurt_error** error);
/* What is known of a value's type. Borrowed until the next change. */
NPURT_API npurt_status npurt_graph_value_info(npurt_graph* graph, npurt_value_id id,
                                              npurt_value_info* out_info, npurt_error** error);
/* The graph as text that people can read; large constants by their hash. */
NPURT_API npurt_status npurt_graph_text(npurt_graph* graph, npurt_text** out_text,
                                        npurt_error** error);
NPURT_API void npurt_graph_release(npurt_graph* graph);

/* ---- Models ---------------------------------------------------------------------------------- */

typedef struct npurt_load_info {
  uint32_t struct_size;
  uint32_t flags;               /* 0 */
  const npurt_options* options; /* map_weights, max_nodes, max_model_bytes ...; NULL: defaults */
  npurt_host* host;
  npurt_cancel* cancel;
  /* Where files with external data may lie; links out of it are refused (PERMISSION_DENIED). NULL:
   * the folder of the model's file; for models in memory: nowhere. */
  const char* external_data_dir;
} npurt_load_info;
NPURT_DEFINE_INIT_(npurt_load_info)

/* [any] Reads an ONNX model. info may be NULL. NOT_FOUND, PERMISSION_DENIED: the file.
 * INVALID_ARGUMENT, DATA_LOSS: its contents, with the place. UNIMPLEMENTED: an operator or type
 * that is not known. */
NPURT_API npurt_status npurt_model_load_file(const char* path, const npurt_load_info* info,
                                             npurt_model** out_model, npurt_error** error);
/* [any] deleter NULL: what is needed is copied. Else the model refers to the bytes, which must not
 * change until the deleter runs. */
NPURT_API npurt_status npurt_model_load_memory(const void* data, size_t size,
                                               const npurt_deleter* deleter,
                                               const npurt_load_info* info, npurt_model** out_model,
                                               npurt_error** error);
/* [one] on the graph. A copy of what was built (weights are shared); the builder may go on. */
NPURT_API npurt_status npurt_model_create(npurt_graph* graph, const npurt_load_info* info,
                                          npurt_model** out_model, npurt_error** error);
/* [any] Borrowed from the model. NULL model: 0. OUT_OF_RANGE. */
NPURT_API size_t npurt_model_input_count(const npurt_model* model);
NPURT_API size_t npurt_model_output_count(const npurt_model* model);
NPURT_API npurt_status npurt_model_input_info(const npurt_model* model, size_t index,
                                              npurt_value_info* out_info, npurt_error** error);
NPURT_API npurt_status npurt_model_output_info(const npurt_model* model, size_t index,
                                               npurt_value_info* out_info, npurt_error** error);
/* [any] OPERATORS, GRAPH or MEMORY. */
NPURT_API npurt_status npurt_model_report(const npurt_model* model, npurt_report kind,
                                          npurt_text** out_text, npurt_error** error);
NPURT_API npurt_model* npurt_model_retain(npurt_model* model);
NPURT_API void npurt_model_release(npurt_model* model);

/* ---- Sessions -------------------------------------------------------------------------------- */

/* How a model is compiled into a session. */
typedef struct npurt_compile_info {
  uint32_t struct_size;
  uint32_t flags;          /* 0 */
  const char* name;        /* of the graph in the session; NULL: the model's own name */
  const char* const* keep; /* values that must stay observable: no fusion swallows them */
  size_t keep_count;
  npurt_cancel* cancel;
} npurt_compile_info;
NPURT_DEFINE_INIT_(npurt_compile_info)

/* Exact bytes for given dimensions. */
typedef struct npurt_memory_info {
  uint32_t struct_size;
  uint32_t exact;       /* 1: exact; 0: an upper bound (dimensions that depend on data) */
  uint64_t arena_bytes; /* one run: intermediate values and scratch, what set_arena must hold */
  uint64_t arena_alignment;
  uint64_t output_bytes; /* one run: outputs, when they are not bound */
  uint64_t weight_bytes; /* shared by every session of the model */
  uint64_t packed_bytes; /* weights in a kernel's order */
  uint64_t variable_bytes;
} npurt_memory_info;
NPURT_DEFINE_INIT_(npurt_memory_info)

/* [any] options, host may be NULL. INVALID_ARGUMENT: options that exclude each other. */
NPURT_API npurt_status npurt_session_create(const npurt_options* options, npurt_host* host,
                                            npurt_session** out_session, npurt_error** error);
/* [any] load_file, session_create and add_model in one. The graph has index 0. */
NPURT_API npurt_status npurt_session_open(const char* path, const npurt_options* options,
                                          npurt_session** out_session, npurt_error** error);
/* [any] Compiles a model into the session; runs of other graphs go on. info, out_graph may be NULL.
 * ALREADY_EXISTS: the name. UNIMPLEMENTED: an operator, type or combination without a kernel. */
NPURT_API npurt_status npurt_session_add_model(npurt_session* session, npurt_model* model,
                                               const npurt_compile_info* info, uint32_t* out_graph,
                                               npurt_error** error);
/* [any] Graphs are numbered from 0 in the order they were added. */
NPURT_API uint32_t npurt_session_graph_count(const npurt_session* session);
/* [any] NOT_FOUND. */
NPURT_API npurt_status npurt_session_find_graph(const npurt_session* session, const char* name,
                                                uint32_t* out_graph, npurt_error** error);
/* [any] Inputs and outputs of a graph, in the order of runs. OUT_OF_RANGE. */
NPURT_API size_t npurt_session_input_count(const npurt_session* session, uint32_t graph);
NPURT_API size_t npurt_session_output_count(const npurt_session* session, uint32_t graph);
NPURT_API npurt_status npurt_session_input_info(const npurt_session* session, uint32_t graph,
                                                size_t index, npurt_value_info* out_info,
                                                npurt_error** error);
NPURT_API npurt_status npurt_session_output_info(const npurt_session* session, uint32_t graph,
                                                 size_t index, npurt_value_info* out_info,
                                                 npurt_error** error);
/* [any] OPERATORS, OPTIONS, GRAPH, COMPILE, PLAN, MEMORY or COUNTERS. */
NPURT_API npurt_status npurt_session_report(npurt_session* session, uint32_t graph,
                                            npurt_report kind, npurt_text** out_text,
                                            npurt_error** error);
/* [any] What one run with inputs of these shapes (all inputs, in order) takes. */
NPURT_API npurt_status npurt_session_memory(npurt_session* session, uint32_t graph,
                                            const npurt_shape* inputs, size_t input_count,
                                            npurt_memory_info* out_info, npurt_error** error);
/* [any] Variables by name. get: a copy. NOT_FOUND; FAILED_PRECONDITION: not yet assigned.
 * set: INVALID_ARGUMENT: type or shape. */
NPURT_API npurt_status npurt_session_get_variable(npurt_session* session, const char* name,
                                                  npurt_value** out_value, npurt_error** error);
NPURT_API npurt_status npurt_session_set_variable(npurt_session* session, const char* name,
                                                  npurt_value* value, npurt_error** error);
/* [any] Plans, allocates and touches what a run with these shapes needs, and runs once on zeros,
 * unless the graph writes state. input_count 0: all dimensions must be known. */
NPURT_API npurt_status npurt_session_warm_up(npurt_session* session, uint32_t graph,
                                             const npurt_shape* inputs, size_t input_count,
                                             npurt_error** error);
/* [any] Gives back the memory of idle arenas and plans; running runs are not disturbed. */
NPURT_API npurt_status npurt_session_trim(npurt_session* session, uint64_t* out_bytes,
                                          npurt_error** error);
/* [any] Lends the calling thread to the session's runs until `deadline_ns` (see npurt_now_ns; 0:
 * never), or `stop` is triggered (may be NULL), or the session closes. At least one of the two must
 * be given. */
NPURT_API npurt_status npurt_session_lend_thread(npurt_session* session, int64_t deadline_ns,
                                                 npurt_cancel* stop, npurt_error** error);
/* [any] Refuses new runs (FAILED_PRECONDITION), cancels those that run (CANCELLED) and waits for
 * them until the deadline (0: as long as it takes). DEADLINE_EXCEEDED: closed, but a run is still
 * going. From a callback of a run of this session it would wait for itself: give a deadline. */
NPURT_API npurt_status npurt_session_close(npurt_session* session, int64_t deadline_ns,
                                           npurt_error** error);
NPURT_API npurt_session* npurt_session_retain(npurt_session* session);
NPURT_API void npurt_session_release(npurt_session* session);

/* ---- Runs ------------------------------------------------------------------------------------ */

/* [any] A switch that stops runs, loads and compiles it was given to; it cannot be reset. */
NPURT_API npurt_status npurt_cancel_create(npurt_cancel** out_cancel, npurt_error** error);
/* [signal] */
NPURT_API void npurt_cancel_trigger(npurt_cancel* cancel);
/* [signal] 1 or 0. */
NPURT_API int32_t npurt_cancel_triggered(const npurt_cancel* cancel);
NPURT_API npurt_cancel* npurt_cancel_retain(npurt_cancel* cancel);
NPURT_API void npurt_cancel_release(npurt_cancel* cancel);

typedef struct npurt_run_params {
  uint32_t struct_size;
  uint32_t flags;       /* 0 */
  int64_t deadline_ns;  /* absolute, see npurt_now_ns; 0: none */
  npurt_cancel* cancel; /* NULL: none */
  const char* options;  /* `name = value` lines of options with scenario "run"; NULL: none */
} npurt_run_params;
NPURT_DEFINE_INIT_(npurt_run_params)

/* Memory for an output whose size is known only when it is computed. */
typedef struct npurt_output_allocator {
  uint32_t struct_size;
  uint32_t flags; /* 0 */
  void* user_data;
  /* Fills *out_data (any alignment, `bytes` long, bytes may be 0) and *out_deleter (already zero:
   * none). */
  npurt_status (*allocate)(void* user_data, size_t output, npurt_dtype dtype, const int64_t* dims,
                           size_t rank, size_t bytes, void** out_data, npurt_deleter* out_deleter);
  void (*destroy)(void* user_data);
} npurt_output_allocator;
NPURT_DEFINE_INIT_(npurt_output_allocator)

/* Sees intermediate values as they are computed, in the names of the caller's graph. */
typedef struct npurt_observer {
  uint32_t struct_size;
  uint32_t flags;           /* 0 */
  const char* const* names; /* which; copied; NULL: every value that exists */
  size_t name_count;
  void* user_data;
  /* `value` is borrowed, retain it to keep it. NULL: it was fused away (see
   * npurt_compile_info.keep). One at a time per run. Not OK: the run fails with that status. */
  npurt_status (*observe)(void* user_data, const char* name, npurt_value* value);
  void (*destroy)(void* user_data);
} npurt_observer;
NPURT_DEFINE_INIT_(npurt_observer)

/* Told once when a submitted run has ended; error is borrowed, NULL on success. */
typedef struct npurt_completion {
  uint32_t struct_size;
  uint32_t flags; /* 0 */
  void* user_data;
  void (*done)(void* user_data, npurt_status status, const npurt_error* error);
  void (*destroy)(void* user_data);
} npurt_completion;
NPURT_DEFINE_INIT_(npurt_completion)

/* NPURT_BIND_DONATE: an execution may put intermediate values into the tensor's memory once it has
 * read it for the last time, and then needs less of its own (npurt_memory_info is without that; the
 * report NPURT_REPORT_MEMORY has donated_bytes). What the tensor holds after an execution, also one
 * that failed, is undefined: fill it before the next. The flag has no effect on a value that is
 * READ_ONLY, is no tensor, has strings or gaps, does not start at a multiple of 64 bytes or shares
 * memory with another input. */
enum { NPURT_BIND_DONATE = 1 };

/* [any] One run, in one call. Names NULL: by position, then all inputs must be given. outputs[i]
 * NULL: a new value is made; else it is the value that receives the result. params may be NULL.
 * Errors: as npurt_run_execute, NOT_FOUND: a name. */
NPURT_API npurt_status npurt_session_run(npurt_session* session, uint32_t graph,
                                         const char* const* input_names, npurt_value* const* inputs,
                                         size_t input_count, const char* const* output_names,
                                         npurt_value** outputs, size_t output_count,
                                         const npurt_run_params* params, npurt_error** error);

/* [any] A prepared run: keeps its bindings, so that executing again costs no look-up. */
NPURT_API npurt_status npurt_run_create(npurt_session* session, uint32_t graph, npurt_run** out_run,
                                        npurt_error** error);
/* All below [one]; FAILED_PRECONDITION while the run is executing. The value is retained and read
 * at each execution: its elements may change between two. No copy is made when it is contiguous.
 * flags: NPURT_BIND_*. value NULL: unbind. OUT_OF_RANGE: no such input. INVALID_ARGUMENT: type or
 * shape. */
NPURT_API npurt_status npurt_run_bind_input(npurt_run* run, size_t index, npurt_value* value,
                                            uint32_t flags, npurt_error** error);
/* The tensor that receives an output: the right type and shape, not READ_ONLY, no overlap with
 * inputs or other outputs. NULL: a new value per execution. */
NPURT_API npurt_status npurt_run_bind_output(npurt_run* run, size_t index, npurt_value* value,
                                             npurt_error** error);
/* NULL allocator: none. Called on a thread of the run. */
NPURT_API npurt_status npurt_run_set_output_allocator(npurt_run* run, size_t index,
                                                      const npurt_output_allocator* allocator,
                                                      npurt_error** error);
/* NULL observer: none. */
NPURT_API npurt_status npurt_run_set_observer(npurt_run* run, const npurt_observer* observer,
                                              npurt_error** error);
/* Memory for intermediate values, borrowed until it is replaced or the run is released. data NULL:
 * the session's own. At execution RESOURCE_EXHAUSTED if it is too small, with the bytes it should
 * be. */
NPURT_API npurt_status npurt_run_set_arena(npurt_run* run, void* data, size_t bytes,
                                           npurt_error** error);
/* Runs and returns when done. params may be NULL. FAILED_PRECONDITION: an input is not bound, the
 * session is closed. CANCELLED, DEADLINE_EXCEEDED. OUT_OF_RANGE: an index in a tensor. Else what a
 * callback returned. */
NPURT_API npurt_status npurt_run_execute(npurt_run* run, const npurt_run_params* params,
                                         npurt_error** error);
/* Starts and returns. completion may be NULL; its `done` may be called before this returns, never
 * if this fails. params and all bindings are held until the end; do not write the inputs before. */
NPURT_API npurt_status npurt_run_submit(npurt_run* run, const npurt_run_params* params,
                                        const npurt_completion* completion,
                                        npurt_future** out_future, npurt_error** error);
/* The output of the last execution that succeeded. FAILED_PRECONDITION: there was none. */
NPURT_API npurt_status npurt_run_output(npurt_run* run, size_t index, npurt_value** out_value,
                                        npurt_error** error);
NPURT_API void npurt_run_release(npurt_run* run);

/* [any] Waits until the run has ended or the deadline (0: as long as it takes; in the past: only
 * asks). OK either way; *out_ready 1 or 0. */
NPURT_API npurt_status npurt_future_wait(npurt_future* future, int64_t deadline_ns,
                                         int32_t* out_ready, npurt_error** error);
/* [any] The status of the run, with its error. FAILED_PRECONDITION: not ready. */
NPURT_API npurt_status npurt_future_result(npurt_future* future, npurt_error** error);
/* [any] The run goes on. */
NPURT_API npurt_future* npurt_future_retain(npurt_future* future);
NPURT_API void npurt_future_release(npurt_future* future);

#ifdef __cplusplus
}
#endif

#endif /* NPURT_NPURT_H_ */
