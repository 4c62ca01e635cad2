"""Asks NVIDIA's own CUPTI about record layouts.

usage: layouts.py headers FOLDER           offsets and sizes, by a C compiler and NVIDIA's headers
       layouts.py walk FOLDER SPOOL        kinds and places of the records in the buffers of a spool,
                                           by NVIDIA's library
FOLDER holds unpacked wheels: nvidia-cuda-cupti and, for headers, nvidia-cuda-runtime and -crt.
Prints JSON.
"""
import ctypes
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile

# Struct, and the fields that are read of it.
STRUCTS = {
    "CUpti_ActivityKernel10": [
        "kind", "registersPerThread", "start", "end", "deviceId", "contextId", "streamId", "gridX",
        "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory",
        "correlationId", "name", "graphNodeId", "graphId"],
    "CUpti_ActivityMemcpy6": [
        "kind", "copyKind", "srcKind", "dstKind", "bytes", "start", "end", "deviceId", "contextId",
        "streamId", "correlationId"],
    "CUpti_ActivityMemcpyPtoP4": [
        "kind", "bytes", "start", "end", "deviceId", "contextId", "streamId", "srcDeviceId",
        "srcContextId", "dstDeviceId", "dstContextId", "correlationId"],
    "CUpti_ActivityMemset4": [
        "kind", "bytes", "start", "end", "deviceId", "contextId", "streamId", "correlationId",
        "memoryKind"],
    "CUpti_ActivityAPI": [
        "kind", "cbid", "start", "end", "processId", "threadId", "correlationId"],
    "CUpti_ActivitySynchronization2": [
        "kind", "type", "start", "end", "correlationId", "contextId", "streamId", "cudaEventId"],
    "CUpti_ActivityOverhead3": ["kind", "overheadKind", "start", "end"],
    "CUpti_ActivityDevice5": [
        "kind", "globalMemoryBandwidth", "globalMemorySize", "l2CacheSize", "numThreadsPerWarp",
        "coreClockRate", "numMultiprocessors", "maxWarpsPerMultiprocessor",
        "maxBlocksPerMultiprocessor", "maxSharedMemoryPerMultiprocessor",
        "maxRegistersPerMultiprocessor", "maxRegistersPerBlock", "maxSharedMemoryPerBlock",
        "maxThreadsPerBlock", "computeCapabilityMajor", "computeCapabilityMinor", "id", "uuid",
        "name"],
    "CUpti_ActivityContext3": ["kind", "contextId", "deviceId"],
}


def find(folder, name):
    found = sorted(glob.glob(os.path.join(folder, "**", name), recursive=True))
    if not found:
        sys.exit(f"there is no {name} in {folder}")
    return found[0]


def headers(folder):
    include = os.path.dirname(find(folder, "cupti_activity.h"))
    lines = ["#include <stdio.h>", "#include <stddef.h>", "#include <cupti.h>", "int main(void) {"]
    for struct_name, fields in STRUCTS.items():
        lines.append(f'printf("{struct_name} size %zu\\n", sizeof({struct_name}));')
        for field in fields:
            lines.append(f'printf("{struct_name} {field} %zu\\n", offsetof({struct_name}, {field}));')
    lines.append("return 0; }")
    with tempfile.TemporaryDirectory() as build:
        source, program = os.path.join(build, "offsets.c"), os.path.join(build, "offsets")
        with open(source, "w") as file:
            file.write("\n".join(lines))
        cuda = os.path.dirname(find(folder, "cuda.h"))
        subprocess.run(["cc", "-I", include, "-I", cuda, source, "-o", program], check=True)
        output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    offsets = {}
    for line in output.splitlines():
        struct_name, field, offset = line.split()
        offsets.setdefault(struct_name, {})[field] = int(offset)
    print(json.dumps(offsets))


def buffers(spool):
    with open(spool, "rb") as file:
        data = file.read()
    at = 8
    while at + 16 <= len(data):
        tag, length = struct.unpack_from("<II", data, at)
        if tag == 2:
            yield data[at + 16:at + 16 + length]
        at += 16 + length + -length % 8


def walk(folder, spool):
    cupti = ctypes.CDLL(find(folder, "libcupti.so.1*"))
    version = ctypes.c_uint32()
    cupti.cuptiGetVersion(ctypes.byref(version))
    walked = []
    for data in buffers(spool):
        buffer = ctypes.create_string_buffer(data, len(data))
        record, records = ctypes.c_void_p(), []
        while True:
            code = cupti.cuptiActivityGetNextRecord(
                buffer, ctypes.c_size_t(len(data)), ctypes.byref(record))
            if code != 0:
                break
            kind = ctypes.c_uint32.from_address(record.value).value
            records.append([kind, record.value - ctypes.addressof(buffer)])
        walked.append({"end": code, "records": records})
    print(json.dumps({"version": version.value, "buffers": walked}))


if __name__ == "__main__":
    if sys.argv[1] == "headers":
        headers(sys.argv[2])
    else:
        walk(sys.argv[2], sys.argv[3])
