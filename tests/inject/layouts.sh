#!/usr/bin/env bash
# Fetches NVIDIA's CUPTI, headers and NVTX from PyPI and checks record layouts, walks and ranges against
# them: tests/inject/layouts.sh [FOLDER]. Nothing of it is kept in the repository.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-$(mktemp -d)}
mkdir -p "$folder/wheels"
python3 -m pip download --quiet --no-deps --dest "$folder/wheels" \
    nvidia-cuda-cupti==13.0.85 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88 nvidia-nvtx==13.5.25
for wheel in "$folder"/wheels/*.whl; do
    python3 -m zipfile -e "$wheel" "$folder"
done
python3 -m pip install --quiet --upgrade --target "$folder/python" nvtx==0.2.17
TRACEKIT_CUPTI_WHEEL=$folder TRACEKIT_NVTX_WHEELS=$folder cargo test --no-default-features \
    --features cli,collect --test inject -- layouts nvtx --nocapture
