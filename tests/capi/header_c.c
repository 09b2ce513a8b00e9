/* The header from C: every initialiser, and a call that fails. */
#include <npurt/npurt.h>

int npurt_header_in_c(void);

#define SIZE_IS_RIGHT(type) (type##_init().struct_size == sizeof(type))

int npurt_header_in_c(void) {
  npurt_error* error = NULL;
  npurt_value* value = NULL;
  int bad = 0;
  bad += !SIZE_IS_RIGHT(npurt_allocator) + !SIZE_IS_RIGHT(npurt_executor);
  bad += !SIZE_IS_RIGHT(npurt_log_sink) + !SIZE_IS_RIGHT(npurt_operator);
  bad += !SIZE_IS_RIGHT(npurt_option_info) + !SIZE_IS_RIGHT(npurt_tensor);
  bad += !SIZE_IS_RIGHT(npurt_value_info) + !SIZE_IS_RIGHT(npurt_node);
  bad += !SIZE_IS_RIGHT(npurt_load_info) + !SIZE_IS_RIGHT(npurt_compile_info);
  bad += !SIZE_IS_RIGHT(npurt_memory_info) + !SIZE_IS_RIGHT(npurt_run_params);
  bad += !SIZE_IS_RIGHT(npurt_output_allocator) + !SIZE_IS_RIGHT(npurt_observer);
  bad += !SIZE_IS_RIGHT(npurt_completion);
  bad += npurt_value_create(NPURT_FLOAT32, NULL, 3, NULL, &value, &error) != NPURT_INVALID_ARGUMENT;
  bad += npurt_error_code(error) != NPURT_INVALID_ARGUMENT;
  npurt_error_release(error);
  return bad;
}
