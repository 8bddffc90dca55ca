"""What a distributed call cost: predicted beside measured, and over all ranks."""

import json
import re
import shutil
import sys

import numpy as np
import pytest
from fresh_process import run

import cuop
from cuop import dist

A = np.random.default_rng(0).standard_normal((13, 6))


def multiply_rows(comm, times=1):
    """A @ A.T in rows, from rank 0 to rank 0."""
    for _ in range(times):
        given = (A, A.T) if comm.rank == 0 else (None, None)
        dist.matmul_from_root(comm, *given, strategy="row")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_a_report_has_what_was_measured(ranks):
    def work(comm):
        multiply_rows(comm)
        report = dist.last_report()
        measured = report.plan.measured
        assert (measured.rank, measured.seconds) == (comm.rank, report.seconds)
        assert 0 <= measured.move_seconds <= measured.work_seconds <= measured.seconds
        difference = measured.work_seconds - measured.move_seconds
        assert measured.compute_seconds == pytest.approx(difference)
        assert measured.bytes_sent <= report.bytes_sent
        text = report.plan.explain()
        assert re.search(r"predicted +measured\n +moves ", text)
        assert re.search(r"\n +floor .* %\n", text) and f"measured on rank {comm.rank};" in text
        assert json.loads(report.plan.to_json())["measured"]["rank"] == comm.rank
        return measured.bytes_sent, report.plan.bytes

    sent, planned = zip(*dist.run_ranks(work, ranks))
    assert set(planned) == {sum(sent)}


def test_a_plan_that_was_not_followed_has_nothing_measured():
    rows = dist.Sharding(dist.Mesh.line(4), dist.P("r"))
    plan = dist.plan_matmul(64, 64, 64, rows, rows)
    assert plan.measured is None
    assert "measured" not in plan.explain() + plan.to_json() + repr(plan)


def test_a_profile_has_the_calls_of_its_ranks():
    with cuop.profile() as recording:
        dist.run_ranks(lambda comm: multiply_rows(comm, 2), 3)
        assert len(dist.recorded_reports()) == 6
    assert sorted(call.plan.measured.rank for call in recording.calls) == [0, 0, 1, 1, 2, 2]
    assert all("measured" in call.plan.explain() for call in recording.calls)
    (event, *_) = [event for event in recording.events if event["name"] == "matmul [row]"]
    assert event["category"] == "dist"
    assert dist.recorded_reports() == []
    multiply_rows_alone = dist.run_ranks(multiply_rows, 2)
    assert multiply_rows_alone == [None, None] and dist.recorded_reports() == []


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_a_report_over_ranks(ranks, tmp_path):
    def work(comm):
        multiply_rows(comm, 2)
        planned = dist.last_report().plan
        report = dist.profile_report(comm)
        assert (report is None) == (comm.rank > 0)
        return report, planned

    with cuop.profile():
        report, planned = dist.run_ranks(work, ranks)[0]
    row = report.rows[0]
    assert (row["category"], row["name"], row["calls"]) == ("dist", "matmul [row]", 2)
    assert row["bytes"] == 2 * planned.bytes == sum(row["links"].values())
    assert all(a != b and 0 <= min(a, b) <= max(a, b) < ranks for a, b in row["links"])
    assert report.links() == row["links"]
    assert row["seconds"] >= row["least_seconds"] > 0 and 0 <= row["slowest_rank"] < ranks
    assert row["floor_seconds"] == pytest.approx(2 * planned.floor)
    assert row["predicted_seconds"] == pytest.approx(2 * planned.seconds)
    assert row["share_of_floor"] == pytest.approx(row["floor_seconds"] / row["seconds"])
    assert row["flops"] == 2 * planned.flops
    assert [rank["rank"] for rank in report.ranks] == list(range(ranks))
    assert report.clocks() == "All ranks share one clock."
    assert any(row["category"] == "op" and row["name"] == "matmul" for row in report.rows)

    table = report.table()
    assert f"Distributed calls on {ranks} ranks\noperation " in table and "matmul [row]" in table
    (plan,) = report.plans
    assert "measured on rank 0" in plan

    report.write_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    calls = [event for event in trace if event["name"] == "matmul [row]"]
    assert sorted(event["pid"] for event in calls) == sorted([*range(ranks)] * 2)
    assert all("predicted_us" in event["args"] for event in calls)

    report.write_html(tmp_path / "profile.html")
    page = (tmp_path / "profile.html").read_text()
    assert page.count(">rank ") == ranks and "matmul [row]" in page
    assert page.count('class="bar dist"') == 2 * ranks and "measured on rank 0" in page
    assert ("Bytes from rank to rank" in page) == (ranks > 1)
    assert not re.findall(r'(?:src|href)="', page)


def test_a_table_on_no_terminal_is_plain_lines(capsys):
    def work(comm):
        multiply_rows(comm)
        return dist.profile_report(comm)

    with cuop.profile():
        report = dist.run_ranks(work, 2)[0]
    report.print()
    written = capsys.readouterr().out
    assert re.search(r"^# Distributed calls on 2 ranks\noperation\s+calls\s+time", written)
    assert re.search(r"\nmatmul \[row\]\s+1\s", written)
    assert written.endswith("All ranks share one clock.\n")


def test_what_is_too_much_is_left_out():
    def work(comm):
        multiply_rows(comm)
        return dist.profile_report(comm, max_events=1)

    with cuop.profile():
        report = dist.run_ranks(work, 2)[0]
    assert [rank["events"] for rank in report.ranks] == [1, 1]
    assert [row["name"] for row in report.rows] == ["matmul [row]"]
    assert "short events were left out" in report.clocks()
    assert "short events left out" in report.trace_json()


def test_wrong_arguments_and_no_recording():
    def without(comm):
        with pytest.raises(cuop.errors.Error, match=r"nothing is recorded on rank .*cuop.profile"):
            dist.profile_report(comm)
        with pytest.raises(cuop.ExecutionError, match="max_events is -1; it must be from 0"):
            dist.profile_report(comm, max_events=-1)
        with pytest.raises(cuop.DTypeError, match="max_events: needed is an integer"):
            dist.profile_report(comm, max_events=1.5)

    dist.run_ranks(without, 2)

    def differently(comm):
        with pytest.raises(cuop.CommunicationError, match="different calls"):
            dist.profile_report(comm, max_events=10 + comm.rank)
        return dist.profile_report(comm) is not None  # the ranks go on

    with cuop.profile():
        assert dist.run_ranks(differently, 3) == [True, False, False]


def test_a_page_that_cannot_be_written(tmp_path):
    def work(comm):
        return dist.profile_report(comm)

    with cuop.profile():
        report = dist.run_ranks(work, 1)[0]
    for write in (report.write_html, report.write_trace):
        with pytest.raises(cuop.FileError, match="write_"):
            write(tmp_path / "no" / "file")
    report.write_html(tmp_path / "empty.html")  # of nothing
    assert report.table() == report.clocks()


PROCESSES = """
import json, sys
import numpy as np
import cuop
from cuop import dist
comm = dist.world()
a = np.arange(78.0).reshape(13, 6)
with cuop.profile():
    given = (a, a.T) if comm.rank == 0 else (None, None)
    dist.matmul_from_root(comm, *given, strategy="row")
    planned = dist.last_report().plan.bytes
    comm.barrier()
    report = dist.profile_report(comm)
if comm.rank == 0:
    report.write_html(sys.argv[1] + "/page.html")
    row = report.rows[0]
    figures = [row["name"], row["bytes"], sum(row["links"].values()), planned]
    trace = json.loads(report.trace_json())["traceEvents"]
    print(json.dumps({"figures": figures, "ranks": report.ranks, "clocks": report.clocks(), "trace": trace}))
else:
    assert report is None
"""


def test_processes_have_clocks_of_their_own(tmp_path):
    if shutil.which("mpirun") is None or dist.mpi_unavailable_reason():
        pytest.skip(f"NO MPI HERE: {dist.mpi_unavailable_reason()}")
    script = tmp_path / "script.py"
    script.write_text(PROCESSES)
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "3"]
    done = run(
        [*command, sys.executable, script, str(tmp_path)], {"CUOP_COMM_TIMEOUT": "60"}, timeout=180
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    name, sent, on_links, planned = told["figures"]
    assert name == "matmul [row]" and sent == on_links == planned
    first, *others = told["ranks"]
    assert first["clock_error_seconds"] == first["clock_offset_seconds"] == 0
    for rank in others:  # processes of one host have one clock, which the estimate must allow
        assert 0 < rank["clock_error_seconds"]
        assert abs(rank["clock_offset_seconds"]) <= rank["clock_error_seconds"]
    assert told["clocks"].startswith("Times of ranks on one time base, right to within ")
    labels = [event for event in told["trace"] if event["name"] == "process_labels"]
    assert [event["pid"] for event in labels] == [1, 2]
    assert all(event["args"]["labels"].startswith("clock +- ") for event in labels)
    assert (tmp_path / "page.html").read_text().count('class="bar dist"') == 3
