"""Changes between two results of one device, and rows that are slower than their peer."""
import dataclasses

from . import results


@dataclasses.dataclass
class Change:
    name: str
    old: dict
    new: dict

    @property
    def times_as_slow(self) -> float:
        return self.new["median_us"] / self.old["median_us"]

    @property
    def within_noise(self) -> bool:
        """The interquartile ranges of the two overlap."""
        return self.new["q1_us"] <= self.old["q3_us"] and self.old["q1_us"] <= self.new["q3_us"]

    @property
    def kernels(self) -> str:
        if "kernel" not in self.new:
            return ""
        if self.old["kernel"] == self.new["kernel"]:
            return self.new["kernel"]
        return f"{self.old['kernel']} → {self.new['kernel']}"


def _label(key: tuple) -> str:
    name, types, count = key
    return f"{name} {types}".strip() + (f" ({count})" if count > 1 else "")


def changes(old: dict, new: dict) -> list:
    """Returns the rows that both {key: row} have, the largest slowdown first."""
    found = [Change(_label(key), old[key], new[key]) for key in new if key in old]
    return sorted(found, key=lambda change: -change.times_as_slow)


def print_comparison(old: dict, new: dict, limit: float) -> int:
    """@return 0, 1 if a row takes more than `limit` times as long, 2 if nothing is comparable"""
    for run in (old, new):
        if "counted" in run:
            print(f"bench_report: {run['file']} was counted, not timed; it has no times to compare")
            return 2
    if (old["target"], old["device"]) != (new["target"], new["device"]):
        print(f"bench_report: {old['file']} is from \"{old['device']}\", {new['file']} from "
              f"\"{new['device']}\": times of two devices are not compared")
        return 2
    old_rows, new_rows = results.keyed_rows(old), results.keyed_rows(new)
    both = changes(old_rows, new_rows)
    if not both:
        print(f"bench_report: {old['file']} and {new['file']} have no row in common")
        return 2
    slower = [change for change in both if change.times_as_slow > limit]
    for change in slower:
        noise = "; the quartiles overlap" if change.within_noise else ""
        print(f"slower: {change.name}: {change.old['median_us']:.1f} -> "
              f"{change.new['median_us']:.1f} us, x{change.times_as_slow:.2f} "
              f"({change.kernels or 'kernel not named'}{noise})")
    missing = [key for key in old_rows if key not in new_rows]
    for key in missing:
        print(f"missing: {_label(key)}")
    print(f"{len(both)} rows in both, {len(slower)} take more than {limit:g} times as long, "
          f"{len(missing)} are missing in {new['file']}.")
    return 1 if slower else 0


def below(runs: list, limit: float) -> list:
    """Returns a heading per GPU and its rows with a lower ratio, the slowest first."""
    found = []
    for device in results.devices_of([run for run in runs if run["target"] == "cuda"]):
        rows = [row for row in device.rows(*results.BENCHES) if "ratio_to_peer" in row]
        slow = sorted((row for row in rows if row["ratio_to_peer"] < limit), key=lambda row: row["ratio_to_peer"])
        found.append(f"{device.name}: {len(slow)} of {len(rows)} rows below {limit:g} of the reference library")
        found += [device.estimated_costs] if device.estimated_costs else []
        for row in slow:
            best = f", {row['ratio_to_peer_best']:.2f} of its best of 8" if "ratio_to_peer_best" in row else ""
            found.append(f"- {results.label_of(row)}: {row['ratio_to_peer']:.2f}{best}; {row['median_us']:.1f} us, "
                         f"{row.get('kernel', 'kernel not named')}; {row['peer']} {row['peer_median_us']:.1f} us")
    return found or ["There are no results of GPUs."]
