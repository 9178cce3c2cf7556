"""Counts of software devices as HTML: a table and a picture per set, with kernels of CUTLASS."""
import dataclasses
import pathlib

from . import charts, counted, results
from .markup import GAP, escape, figure, folded, percent, table

MOST_DRAWN = 24
UNITS = ("tensor cores", "issue slots", "FP32", "shared memory", "DRAM")


@dataclasses.dataclass
class Counted:
    """Newest counts of mpcore's and other kernels for the same rows of an architecture."""
    arch: int
    own: results.Device
    peers: list  # results.Device, each of one peer

    def of_peers(self, key: tuple):
        """(who, row) of each that has the row."""
        for peer in self.peers:
            if key in peer.latest:
                yield peer.name, peer.latest[key][0]


def by_arch(runs: list) -> list:
    """Groups counted runs by architecture; runs of peers are paired with mpcore's."""
    found = []
    for arch in sorted({run["arch"] for run in runs}, reverse=True):
        own, peers = [], {}
        for run in sorted((run for run in runs if run["arch"] == arch), key=lambda run: run["date"]):
            (peers.setdefault(run["peer"], []) if "peer" in run else own).append(run)
        if own:
            found.append(Counted(arch, results.Device(own[-1]["device"], own),
                                 [results.Device(*peer) for peer in sorted(peers.items())]))
    return found


def _ratio(count: float, least: float) -> str:
    return figure(count / least) if least else GAP


def _cells(who: str, row: dict, peaks: counted.Peaks) -> list:
    of, bound = counted.totals(row), counted.bound(row, peaks)
    return [who, counted.kernel_of(row), of.launches, f"{1e-9 * of.tensor_flops:.4g}", f"{of.issue_slots:.4g}",
            percent(100 * of.tensor_share), _ratio(of.sectors * counted.SECTOR, counted.least_bytes(row)),
            _ratio(of.sectors, of.least_sectors), _ratio(of.wavefronts, of.least_wavefronts), of.barriers, bound.binds,
            *(percent(100 * bound.shares[unit], 0) for unit in UNITS), f"{bound.l2_bytes_per_clock:.0f}"]


def _set(one: Counted, name: str, keyed: list, out: pathlib.Path, file: str) -> str:
    """`keyed`: (key, row) of the set."""
    peaks = counted.PEAKS[one.arch]
    rows = []
    for key, row in keyed:
        rows.append([results.label_of(row), *_cells("mpcore", row, peaks)])
        rows += [["", *_cells(who, theirs, peaks)] for who, theirs in one.of_peers(key)]
    picture = charts.shares([(results.name_of(row), counted.bound(row, peaks).shares) for _, row in keyed[:MOST_DRAWN]],
                            UNITS)
    charts.png(picture, out / file)
    drawn = f"<figure>{charts.svg(picture, file)}</figure>"
    charts.pyplot.close(picture)
    return folded(f"{name}, shapes: {len(keyed)}", drawn + table(
        ["shape", "library", "kernel", "launches", "tensor GFLOP", "issue slots", "of them tensor", "bytes / least",
         "sectors / least", "wavefronts / least", "barriers", f"busiest unit of {peaks.name}", *UNITS,
         "L2, bytes per clock"], rows))


def _by_set(device) -> dict:
    groups = {}
    for key, (row, _) in device.latest.items():
        names = dict.fromkeys([row["bench"], row.get("set", row["bench"])])
        groups.setdefault(", ".join(names), []).append((key, row))
    return groups


def _arch(one: Counted, out: pathlib.Path) -> str:
    peaks = counted.PEAKS[one.arch]
    runs = [[run["file"], run.get("peer", "mpcore"), run["commit"], run["command"], " ".join(run["notes"])]
            for device in (one.own, *one.peers) for run in device.runs]
    sets = [_set(one, name, keyed, out, f"counted_{one.arch}_{number}.png")
            for number, (name, keyed) in enumerate(_by_set(one.own).items(), 1)]
    return "\n".join([
        f"<h3>sm_{one.arch}, bounds for {escape(peaks.name)}</h3>",
        f'<p class="faint">{peaks.sms} multiprocessors. Each executes per clock: {peaks.tensor_flop} operations of tensor cores '
        f"(FP16, FP32 sums), {counted.SCHEDULERS} instructions, at most {peaks.fp32_instructions:g} of them FP32, one wavefront of "
        f"shared memory; {peaks.dram_bytes:.0f} bytes of DRAM per clock ({peaks.dram_gb_per_s} GB/s at {peaks.ghz} GHz) in total. "
        f"Sources: {escape(peaks.sources)}.</p>",
        folded("Runs, with commit, command and notes", table(["file", "library", "commit", "command", "notes"], runs)), *sets])


def section(runs: list, out: pathlib.Path) -> str:
    """`runs`: all runs."""
    found = by_arch([run for run in runs if "counted" in run])
    if not found:
        return ""
    return "\n".join([
        "<h2>Counted on the software device</h2>",
        "<p>The work of each call, counted by softgpu, which interprets the PTX of the kernels without a GPU. The "
        "counts give the clocks for which each unit of a device is busy, if the work is spread evenly over the "
        "multiprocessors and the device executes the PTX instructions. The busiest unit is a lower bound, not a time. "
        "The table has the clocks of the other units in percent of it, and the bytes per clock that L2 would supply "
        "without L1 hits. Only the A100 has a documented limit for L2 (5120), so L2 is not part of the bound.</p>",
        '<p class="faint">Tensor GFLOP: executed by the tensor cores, including edges of tiles. Bytes / least: bytes of '
        "the sectors that requests touch / each operand once. Sectors / least and wavefronts / least: compared with the "
        "minimum for the same requests. DRAM: the minimum bytes. Barriers: warp-instructions.</p>",
        *(_arch(one, out) for one in found)])
