/* Injected NVTX profiler (NVTX_INJECTION64_PATH) that writes one line per range of the domain
 * "mpcore" to the file MP_TEST_NVTX:  push NAME|PAYLOAD  or  pop. */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *lines;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char mpcore, other;

static nvtxDomainHandle_t create(const char *name) {
  return (nvtxDomainHandle_t)(strcmp(name, "mpcore") == 0 ? &mpcore : &other);
}

static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range) {
  if ((char *)domain != &mpcore) return 0;
  const char *payload = "";
  if (range->payloadType == NVTX_PAYLOAD_TYPE_EXT && range->reserved0 == 1) {
    const nvtxPayloadData_t *data = (const nvtxPayloadData_t *)(uintptr_t)range->payload.ullValue;
    const char *text = data->payload;
    const int is_text = data->schemaId == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING;
    payload = is_text && strlen(text) + 1 == data->size ? text : "(no text)";
  }
  pthread_mutex_lock(&mutex);
  fprintf(lines, "push %s|%s\n", range->message.ascii, payload);
  pthread_mutex_unlock(&mutex);
  return 0;
}

static int pop(nvtxDomainHandle_t domain) {
  if ((char *)domain == &mpcore) {
    pthread_mutex_lock(&mutex);
    fprintf(lines, "pop\n");
    pthread_mutex_unlock(&mutex);
  }
  return 0;
}

static void set(NvtxFunctionTable table, unsigned int size, unsigned int index, void *function) {
  if (index < size) memcpy(table[index], &function, sizeof function);
}

/* Entry point that the NVTX header calls in the loaded library. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table) {
  const char *path = getenv("MP_TEST_NVTX");
  const NvtxExportTableCallbacks *callbacks =
      (const NvtxExportTableCallbacks *)get_table(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table = NULL;
  unsigned int size = 0;
  lines = path ? fopen(path, "w") : NULL;
  if (!lines || !callbacks ||
      !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) {
    return 0;
  }
  set(table, size, NVTX_CBID_CORE2_DomainCreateA, (void *)create);
  set(table, size, NVTX_CBID_CORE2_DomainRangePushEx, (void *)push);
  set(table, size, NVTX_CBID_CORE2_DomainRangePop, (void *)pop);
  return 1;
}
