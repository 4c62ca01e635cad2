"""Ranges by the package nvtx, as a training loop has them."""
import nvtx

nvtx.push_range("phase.forward")
nvtx.push_range("inner", domain="library")
nvtx.pop_range(domain="library")
nvtx.pop_range()
with nvtx.annotate("phase.backward", color="green"):
    pass
nvtx.end_range(nvtx.start_range("started"))
nvtx.mark("mark")


@nvtx.annotate("decorated", domain="library")
def decorated():
    pass


decorated()
