/* minimal.c: one run of a model whose first input and output are float tensors.
 * Build: cc minimal.c $(pkg-config --cflags --libs npurt). Usage: minimal MODEL.onnx */
#include <npurt/npurt.h>
#include <stdio.h>

int main(int argc, char** argv) {
  const int64_t dims[] = {1, 3, 224, 224};
  npurt_error* error = NULL;
  npurt_session* session = NULL;
  npurt_value *input = NULL, *output = NULL;
  npurt_tensor y = npurt_tensor_init();
  if (argc == 2 && npurt_session_open(argv[1], NULL, &session, &error) == NPURT_OK &&
      npurt_value_create(NPURT_FLOAT32, dims, 4, NULL, &input, &error) == NPURT_OK &&
      npurt_session_run(session, 0, NULL, &input, 1, NULL, &output, 1, NULL, &error) == NPURT_OK &&
      npurt_value_tensor(output, &y, &error) == NPURT_OK)
    printf("%zu values, the first is %g\n", y.count, y.count ? *(const float*)y.data : 0.0);
  else
    fprintf(stderr, "%s\n", error ? npurt_error_message(error) : "usage: minimal MODEL.onnx");
  npurt_value_release(output);
  npurt_value_release(input);
  npurt_session_release(session);
  npurt_error_release(error);
  return y.data == NULL;
}
