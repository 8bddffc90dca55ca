"""Ctrl-C ends every wait for a GPU, and what the GPU was doing goes on."""

import pytest
from fresh_process import run_with
from processes import simulated

_PREPARE = """
import os, signal, threading
import numpy as np
import cuop
SPIN = '''
extern "C" __global__ void spin(float* x, int n) {
  float value = x[0];
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < (1 << 20); ++j) value = value * 0.5f + 1.0f;
  x[0] = value;
}
'''
spin = cuop.jit.kernel(SPIN, "spin", configs=[{"UNUSED": 1}])
x = cuop.ones((1 << 20,)).to("cuda")
host = cuop.ones((1 << 20,), device="cpu")
pinned = cuop.pin_memory(host)
stream, event = cuop.Stream("cuda"), cuop.Event("cuda")
spin(x, 1, grid=1, block=1)
assert x.sum().item() == 2**20 + 1
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
with stream:
    spin(x, 3000, grid=1, block=1)  # some seconds
    event.record()
    try:
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        WAIT
    except KeyboardInterrupt:
        print("heard while the GPU", "is idle" if stream.is_idle() else "works")
    else:
        print("not heard")
    assert x.sum().item() == 2**20 + 1
"""

WAITS = {
    "device": "cuop.synchronize('cuda')",
    "stream": "stream.synchronize()",
    "event": "event.synchronize()",
    "one number": "x[0].item()",
    "an array": "x.to_numpy()",
    "to page-locked memory": "pinned.copy_from(x)",
    "from host memory": "x.copy_from(host)",
}


@pytest.mark.parametrize("name", WAITS)
def test_ctrl_c_is_heard(name):
    done = run_with({}, _PREPARE.replace("WAIT", WAITS[name]), timeout=300)
    assert (done.returncode, done.stdout) == (0, "heard while the GPU works\n"), done.stderr


_START = """
import os, signal, threading, time
import cuop
signal.signal(signal.SIGINT, signal.default_int_handler)
def interrupt():
    global asked
    asked = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
for delay in (0.3, WAIT + 0.3):
    threading.Timer(delay, interrupt).start()
    try:
        cuop.ones((8,), device="cuda")
    except KeyboardInterrupt:
        print(time.monotonic() - asked < 1)
print(cuop.ones((8,), device="cuda").sum().item())
"""


@simulated
def test_ctrl_c_is_heard_while_the_driver_starts_and_makes_a_context():
    seconds = 3
    code = _START.replace("WAIT", str(seconds))
    done = run_with({"SIM_START_MS": str(1000 * seconds), "CUOP_DEVICE": ""}, code, timeout=120)
    assert (done.returncode, done.stdout) == (0, "True\nTrue\n8.0\n"), done.stderr


@simulated
@pytest.mark.parametrize("delay", [0.3, 1.8])  # of what takes 1.5 s, twice
def test_a_process_that_ends_waits_for_what_starts(delay):
    """Else the driver is taken down while another thread is inside of it."""
    code = _START.split("for delay")[0] + (
        "threading.Timer(DELAY, interrupt).start()\n"
        "try:\n"
        "    cuop.ones((8,), device='cuda')\n"
        "except KeyboardInterrupt:\n"
        "    print(time.monotonic() - asked < 1)\n"
    ).replace("DELAY", str(delay))
    done = run_with({"SIM_START_MS": "1500", "CUOP_DEVICE": ""}, code, timeout=120)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
    assert done.stderr.count("simulated GPU: started") == (1 if delay < 1.5 else 2)
