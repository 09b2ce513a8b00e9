/* What a user's first program needs from an installed libnpurt: header, symbols, soname. */
#include <npurt/npurt.h>

int main(void) {
  npurt_options* options = NULL;
  if (npurt_options_create(NULL, &options, NULL) != NPURT_OK) return 1;
  npurt_options_release(options);
  return npurt_abi() == NPURT_ABI_MAJOR ? 0 : 2;
}
