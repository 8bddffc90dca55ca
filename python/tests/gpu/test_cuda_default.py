"""Which device new tensors are made on, and when a process first looks for a GPU."""

import os
from pathlib import Path

import pytest
from fresh_process import TEST_PATH
from processes import python, simulated

OPENED = "'libcuda' in open('/proc/self/maps').read()"


def test_the_first_gpu_is_the_default_and_importing_does_not_touch_it():
    lines, errors = python(f"""
import cuop, genesis, distributed_gpu
print({OPENED})
x = cuop.tensor([1.0, 2.0], device="cpu")
print((x + [3.0, 4.0]).device, cuop.exp(x).device, {OPENED})
print(cuop.ones(2).device, cuop.add([1.0], [2.0]).device, {OPENED})
""")
    assert lines[:3] == ["False", "cpu cpu False", "cuda:0 cuda:0 True"]
    assert errors == ""


def test_cuop_device_cpu_is_the_way_back():
    lines, errors = python(
        f"import cuop; print(cuop.ones(2).device, cuop.device_count('cuda'), {OPENED})",
        CUOP_DEVICE="cpu",
    )
    assert lines[0] == "cpu 0 False"
    assert errors == ""


def test_genesis_makes_tensors_on_the_cpu_and_keeps_their_calls_there():
    lines, _ = python("""
import cuop, genesis
x = genesis.tensor([[1.0, 2.0]])
print(genesis.asarray([1.0]).device, genesis.asarray(2).device, cuop.asarray([1.0]).device)
print(genesis.asarray(cuop.ones(1)).device, genesis.asarray([1.0], device="cuda").device)
print(x.device, (x + [1.0, 1.0]).device, genesis.matmul([[1.0], [2.0]], x).device)
print(genesis.permutation(3).device, genesis.uniform((2,), out=cuop.empty(2)).device)
""")
    assert lines[:2] == ["cpu cpu cuda:0", "cuda:0 cuda:0"]
    assert lines[2:4] == ["cpu cpu cpu", "cpu cuda:0"]


def test_a_thread_may_choose_otherwise():
    lines, _ = python(
        """
import cuop
from in_threads import in_threads
cuop.set_device("cpu")
print(cuop.ones(1).device)
in_threads(lambda: print(cuop.ones(1).device))
""",
        **TEST_PATH,
    )
    assert lines[:2] == ["cpu", "cuda:0"]


def test_info_says_which_device_is_the_default_and_why():
    code = (
        "import cuop; print([p.detail for p in cuop.system_info() if p.name == 'default device'])"
    )
    assert "cuda:0: the first GPU that can be used" in python(code)[0][0]
    assert "cuda:0: CUOP_DEVICE=cuda" in python(code, CUOP_DEVICE="cuda")[0][0]
    assert "cpu: CUOP_DEVICE=cpu" in python(code, CUOP_DEVICE="cpu")[0][0]


def test_a_machine_that_shows_no_gpu_is_on_the_cpu_without_a_word():
    hidden = {"CUDA_VISIBLE_DEVICES": "", "SIM_DEVICES": "0"}
    lines, errors = python("import cuop; print(cuop.ones(2).device)", **hidden)
    assert lines[0] == "cpu"
    assert errors == ""
    code = """
import cuop
try:
    cuop.ones(2)
except cuop.DeviceError as error:
    print(error)
"""
    lines, _ = python(code, CUOP_DEVICE="cuda", **hidden)
    assert "cuda:0 is not available: the NVIDIA driver sees no device" in lines[0]


TWICE = "import cuop; print(cuop.ones(2).device, cuop.zeros(3).device)"


@simulated
def test_a_driver_that_does_not_start_is_warned_of_once():
    lines, errors = python(TWICE, SIM_INIT_RESULT="802")
    assert lines[0] == "cpu cpu"
    assert errors.count("the NVIDIA driver is there but did not start") == 1
    assert "CUOP_DEVICE=cpu says that this is wanted" in errors
    lines, errors = python(TWICE, SIM_INIT_RESULT="802", CUOP_DEVICE="cpu")
    assert lines[0] == "cpu cpu"
    assert errors == ""
    code = TWICE.replace("print", "\ntry:\n  print") + "\nexcept cuop.DeviceError as e: print(e)"
    lines, _ = python(code, SIM_INIT_RESULT="802", CUOP_DEVICE="cuda")
    assert "cuda:0 is not available: the NVIDIA driver is there but did not start" in lines[0]


def test_cuda_without_a_number_is_the_threads_gpu():
    lines, _ = python(
        """
import cuop
def rank(comm):
    return str(cuop.ones(2, device="cpu").to("cuda").device)
if cuop.device_count("cuda") < 2:
    print("one")
else:
    print(cuop.ones(2, device="cuda").device, cuop.dist.run_ranks(rank, 2))
    cuop.set_current_device("cuda:1")
    x = cuop.ones(2, device="cpu")
    print(cuop.Device("cuda"), x.to("cuda").device, x.cuda().device, cuop.pin_memory(x).device)
    cuop.set_current_device("cpu")
    print(cuop.Device("cuda"), cuop.Device("cuda") == "cuda:0")
""",
        SIM_DEVICES="2",
    )
    if lines[0] == "one":
        pytest.skip("needs two GPUs")
    assert lines[:3] == [
        "cuda:0 ['cuda:0', 'cuda:1']", "cuda:1 cuda:1 cuda:1 cpu", "cuda:0 True"
    ]  # fmt: skip


def test_the_gpu_that_a_process_prefers_is_found_out_once():
    lines, _ = python(
        """
import os
import cuop
first = cuop.Device("cuda")
for name in ("RANK", "LOCAL_RANK"):
    os.environ["OMPI_COMM_WORLD_" + name] = "1"
os.environ["OMPI_COMM_WORLD_SIZE"] = "2"
print(first, cuop.Device("cuda"), cuop.ones(1, device="cuda").device)
""",
        SIM_DEVICES="2",
    )
    assert lines[0] == "cuda:0 cuda:0 cuda:0"


@simulated
def test_a_driver_is_not_started_where_addresses_are_few():
    lines, errors = python("""
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 << 30,) * 2)
import cuop
print(cuop.ones(2).device, cuop.device_count("cuda"))
try:
    cuop.ones(2, device="cuda")
except cuop.DeviceError as error:
    print("4 GiB of addresses (ulimit -v), it takes more than 8 GiB" in str(error))
""")
    assert lines[:2] == ["cpu 0", "True"]
    assert errors.count("4 GiB of addresses") == 1  # the warning


@simulated
def test_a_gpu_without_a_compiler_of_kernels_is_no_default(tmp_path):
    for name in ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"):  # a library, but no compiler
        (tmp_path / name).symlink_to(Path(os.environ["LD_LIBRARY_PATH"]) / "libcuda.so.1")
    lines, errors = python(TWICE, CUOP_LIBRARY_PATH=str(tmp_path))
    assert lines[0] == "cpu cpu"
    assert errors.count("cuda:0 has no use without kernels") == 1
    assert "install the Python package nvidia-cuda-nvrtc (for CUDA 12:" in errors
    lines, errors = python(TWICE, CUOP_LIBRARY_PATH=str(tmp_path), CUOP_DEVICE="cpu")
    assert lines[0] == "cpu cpu"
    assert errors == ""
