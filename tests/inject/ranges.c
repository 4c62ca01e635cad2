/* All ways to make a range or a mark, by NVIDIA's own headers. */
#include <nvtx3/nvToolsExt.h>
#include <wchar.h>

int main(void) {
    nvtxRangePushA("phase.forward");
    nvtxRangePushW(L"wide \u00e9");
    nvtxRangePop();
    nvtxRangePop();

    nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
    nvtxEventAttributes_t event = {0};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    nvtxDomainRangePushEx(domain, &event);
    nvtxDomainRangePop(domain);

    nvtxRangeId_t range = nvtxRangeStartA("started");
    nvtxRangeEnd(range);
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "by attributes";
    nvtxRangePushEx(&event);
    nvtxRangePop();
    range = nvtxDomainRangeStartEx(domain, &event);
    nvtxDomainRangeEnd(domain, range);
    nvtxMarkA("mark");
    return 0;
}
