"""Search against a scripted model: how the result grows with node_num and max_rounds, and what kills do to it.

    python scripts/search/curve.py BINARY --seeds 6 --kills 20 --table curve.md --svg curve.svg

Runs `tilewright search` on problems/softmax with the scripted endpoint beside this file. For each node_num one run with
the most rounds is enough: what a smaller max_rounds would have found is what the run had found by then.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from statistics import mean

import endpoint

ROOT = Path(__file__).resolve().parents[2]
PROBLEM = ROOT / "problems/softmax/problem.py"


class Bench:
    """A binary with the scripted endpoint in a folder of its own."""

    def __init__(self, binary: str, folder: Path) -> None:
        self.binary, self.folder = binary, folder
        self.server = endpoint.serve()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        (folder / "tilewright.toml").write_text(
            f'[endpoints.scripted]\nbase_url = "{url}"\nmodel = "scripted"\nsend_seed = true\n'
        )

    def start(self, out: Path, seed: int, node_num: int, max_rounds: int) -> subprocess.Popen:
        """A search in a process group of its own."""
        command = [self.binary, "search", str(PROBLEM), "--author", "scripted", "--out", str(out), "--json"]
        command += ["--node-num", str(node_num), "--max-rounds", str(max_rounds), "--trials", "1", "--seed", str(seed)]
        command += ["--config", str(self.folder / "tilewright.toml"), "--window", "3"]
        with (self.folder / "stderr.txt").open("w") as talk:
            return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=talk, start_new_session=True)

    def run(self, out: Path, seed: int, node_num: int, max_rounds: int) -> None:
        """A search that must come to an end; one that a busy machine keeps from it goes on."""
        for _ in range(5):
            code = self.start(out, seed, node_num, max_rounds).wait()
            if code in (0, 1):
                return
        raise SystemExit(f"the search ended with {code}:\n{(self.folder / 'stderr.txt').read_text()[-2000:]}")


def best_by_round(out: Path) -> list[float]:
    """The best reward after each round of a finished run."""
    rows = json.loads((out / "report.json").read_text())["candidates"]
    rounds = max(row["round"] for row in rows) + 1
    return [max((row["reward"] for row in rows if row["round"] <= last), default=0.0) for last in range(rounds)]


def curve(bench: Bench, seeds: int, widths: list[int], rounds: int) -> dict[int, list[list[float]]]:
    """For each node_num the best rewards by round, one list a seed."""
    found: dict[int, list[list[float]]] = {}
    for width in widths:
        for seed in range(seeds):
            out = bench.folder / f"curve-{width}-{seed}"
            bench.run(out, 1000 + seed, width, rounds)
            found.setdefault(width, []).append(best_by_round(out))
            print(f"node_num {width}, seed {seed}: {found[width][-1]}", flush=True)
    return found


def accepted(run: list[float], after: int) -> bool:
    return run[after] >= 1.0


def table(found: dict[int, list[list[float]]], rounds: int) -> str:
    """Share accepted and mean reward, as Markdown."""
    lines = [
        "| max_rounds | " + " | ".join(f"node_num {width}" for width in found) + " |",
        "|---" * (len(found) + 1) + "|",
    ]
    for after in range(rounds):
        cells = []
        for runs in found.values():
            share = mean(accepted(run, after) for run in runs)
            cells.append(f"{share:.0%} accepted, reward {mean(run[after] for run in runs):.3f}")
        lines.append(f"| {after + 1} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def picture(found: dict[int, list[list[float]]], rounds: int) -> str:
    """Mean reward over max_rounds, a line for each node_num."""
    width, height, margin = 520, 300, 45
    most = max(mean(run[-1] for run in runs) for runs in found.values())
    colours = ["#888", "#2a6fdb", "#d0582f", "#2a9d48"]

    def at(after: int, reward: float) -> str:
        x = margin + (width - 2 * margin) * after / max(rounds - 1, 1)
        return f"{x:.1f},{height - margin - (height - 2 * margin) * reward / most:.1f}"

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">'
    ]
    out.append(f'<path d="M{margin} {margin} V{height - margin} H{width - margin}" fill="none" stroke="#000"/>')
    for after in range(rounds):
        x = at(after, 0).split(",")[0]
        out.append(f'<text x="{x}" y="{height - margin + 18}" text-anchor="middle">{after + 1}</text>')
    out.append(f'<text x="{width / 2}" y="{height - 8}" text-anchor="middle">max_rounds</text>')
    out.append(
        f'<text x="8" y="{margin - 12}">mean of the best reward (1 and more: accepted), {most:.2f} at the top</text>'
    )
    for colour, (node_num, runs) in zip(colours, found.items(), strict=False):
        points = [at(after, mean(run[after] for run in runs)) for after in range(rounds)]
        out.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = points[-1].split(",")[1]
        out.append(f'<text x="{width - margin + 4}" y="{y}" fill="{colour}">{node_num}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def events(out: Path) -> list[dict]:
    log = out / "log.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.is_file() else []


def archive(out: Path) -> tuple[object, ...]:
    """What a run has found: the best file, and every candidate's text with its verdict."""
    rows = json.loads((out / "report.json").read_text())["candidates"]
    sources = {path.name: path.read_text() for path in sorted((out / "candidates").glob("*.py"))}
    return (out / "best.py").read_text(), [(row["sample"], row["parent"], row["verdict"]) for row in rows], sources


def kills(bench: Bench, count: int, node_num: int, rounds: int) -> str:
    """Kills a run so many times at random moments, each time going on; compares with one that was left alone."""
    whole, killed = bench.folder / "whole", bench.folder / "killed"
    start = time.monotonic()
    bench.run(whole, 77, node_num, rounds)
    took = time.monotonic() - start
    draw, done = random.Random(5), 0
    while done < count:
        process = bench.start(killed, 77, node_num, rounds)
        try:
            process.wait(draw.uniform(0, took) * (0.4 if draw.random() < 0.5 else 1))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            done += 1
            continue
        # It ended before it could be killed: the rest of the kills falls on a new run.
        check(whole, killed)
        subprocess.run(["rm", "-rf", str(killed)], check=True)
    bench.run(killed, 77, node_num, rounds)
    check(whole, killed)
    return f"{done} kills, the run takes {took:.1f} s undisturbed: same archive, no verdict twice\n"


def check(whole: Path, killed: Path) -> None:
    """Same archive, and no verdict was paid for twice."""
    assert archive(whole) == archive(killed), "another archive"
    verdicts = [event for event in events(killed) if event["event"] == "verdict"]
    samples = [event["sample"] for event in verdicts]
    assert len(samples) == len(set(samples)), f"a verdict was paid for twice: {samples}"
    twins = [event["twin"] for event in verdicts if event.get("twin")]
    assert len(twins) == len(set(twins)), "two candidates that do the same were both verified"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--widths", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--svg", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args.binary, Path(folder))
        if args.kills:
            print(kills(bench, args.kills, 3, 3), end="")
        if args.seeds:
            found = curve(bench, args.seeds, args.widths, args.rounds)
            text = table(found, args.rounds)
            print(text)
            if args.table:
                args.table.write_text(text)
            if args.svg:
                args.svg.write_text(picture(found, args.rounds))


if __name__ == "__main__":
    main()
