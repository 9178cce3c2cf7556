#!/usr/bin/env python3
"""Draws the results of mpbench --json FILE with gnuplot, as PNG files beside each other.

    bench/plot.py RESULTS.json [--out build/bench]

gemm.png: speed relative to the peer (where there was one) and percent of the ceiling, by shape.
step.png: percent of the rate of a copy, of every operation and layout.
"""
import argparse
import json
import pathlib
import subprocess
import sys

# Okabe and Ito's colours, which people with colour blindness can tell apart.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]

START = """set terminal pngcairo size 1200,{height} font 'Sans,12' noenhanced
set border 3 lc rgb '#555555'
set tics nomirror out
set grid ytics lc rgb '#e4e4e4' lt 1 lw 1
set datafile missing '?'
"""

GEMM = """set output '{png}'
set multiplot layout {panels},1 title '{title}' font 'Sans,14' noenhanced
set logscale x
set format x '%g'
set xlabel 'GFLOP of the shape'
set key outside right top Left reverse
set yrange [0:*]
"""
RATIO = """set ylabel 'peer time / mpcore time'
set arrow 1 from graph 0,first 1 to graph 1,first 1 nohead lc rgb '#555555' dt (8,5)
plot {points}
unset arrow 1
"""
PERCENT = """set ylabel '% of the ceiling ({ceiling:.4g} TFLOP/s)'
plot {points}
unset multiplot
"""

STEP = """set output '{png}'
set title '{title}' font 'Sans,14' noenhanced
set style data histograms
set style histogram clustered gap 2
set style fill solid 0.9 noborder
set boxwidth 0.9 relative
set key outside right top Left reverse
set yrange [0:*]
set ylabel '% of the rate of a copy'
set xtics rotate by -20 noenhanced
plot {bars}
"""


def title_of(results):
    title = f"{results['device']}, {results['date'][:10]}"
    return title if results["target"] == "cuda" else f"{title}: host target, NOT GPU FIGURES"


def write_table(path, header, rows):
    """Tab-separated; '?' where there is no value."""
    lines = ["\t".join("?" if cell is None else str(cell) for cell in row) for row in rows]
    path.write_text("\n".join(["# " + header, *lines]) + "\n")


def draw(script, png):
    try:
        subprocess.run(["gnuplot", "-"], input=script, text=True, check=True)
    except FileNotFoundError:
        sys.exit("plot.py: gnuplot is not installed.")
    except subprocess.CalledProcessError as error:
        sys.exit(f"plot.py: gnuplot failed ({error.returncode}).")
    print(png)


def draw_gemm(results, rows, out):
    ratio, percent = [], []
    for shape_set, op in sorted({(row["set"], row["shape"][:2]) for row in rows}):
        table = out / f"gemm_{shape_set}_{op}.dat"
        write_table(table, "gflop ratio_to_peer percent_of_ceiling",
                    [(1e-9 * row["flop"], row.get("ratio_to_peer"), row.get("percent_of_ceiling"))
                     for row in rows if (row["set"], row["shape"][:2]) == (shape_set, op)])
        style = (f"with points pt {7 if shape_set == 'llm' else 6} ps 1.2 "
                 f"lc rgb '{COLOURS[('NN', 'NT', 'TN', 'TT').index(op)]}' title '{shape_set} {op}'")
        ratio.append(f"'{table}' using 1:2 {style}")
        percent.append(f"'{table}' using 1:3 {style}")
    has_peer = any("ratio_to_peer" in row for row in rows)
    panels = 2 if has_peer else 1
    png = out / "gemm.png"
    script = START.format(height=450 * panels)
    script += GEMM.format(png=png, panels=panels, title="mp_gemm, " + title_of(results))
    if has_peer:
        script += RATIO.format(points=", ".join(ratio))
    script += PERCENT.format(points=", ".join(percent), ceiling=results["ceiling_tflops"])
    draw(script, png)


def draw_step(results, rows, out):
    layouts = list(dict.fromkeys((row["layout"], row["parameters"]) for row in rows))
    ops = list(dict.fromkeys(row["op"] for row in rows))
    percent = {(row["op"], row["layout"], row["parameters"]): row["percent_of_copy"]
               for row in rows}
    table = out / "step.dat"
    write_table(table, "op, then one column per layout",
                [[f'"{op}"', *(percent.get((op, *layout)) for layout in layouts)] for op in ops])
    bars = [f"'{table}' using {index + 2}:xtic(1) lc rgb '{COLOURS[index % len(COLOURS)]}' "
            f"title '{name}, {parameters / 1e6:.4g} M'"
            for index, (name, parameters) in enumerate(layouts)]
    png = out / "step.png"
    draw(START.format(height=600) + STEP.format(
        png=png, title="the optimizer step, " + title_of(results), bars=", ".join(bars)), png)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/bench"))
    arguments = parser.parse_args()
    results = json.loads(arguments.results.read_text())
    arguments.out.mkdir(parents=True, exist_ok=True)
    for bench, draw_rows in (("gemm", draw_gemm), ("step", draw_step)):
        rows = [row for row in results["rows"] if row["bench"] == bench]
        if rows:
            draw_rows(results, rows, arguments.out)


if __name__ == "__main__":
    main()
