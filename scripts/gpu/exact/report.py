"""The table of results."""

from __future__ import annotations

from collections import defaultdict

HEADINGS = {
    "exact": "Exact: equal in every bit (any NaN equals any other)",
    "ulp": "Within the documented error, in units in the last place",
    "order": "Within what another order of operations, or a fused multiply and add, may change",
    "undefined": "Left open by the language: what this GPU does, for information",
}


def markdown(rows: list[dict], machine: dict) -> str:
    """A page: a summary, then one table a class."""
    lines = [f"{', '.join(f'{key} {value}' for key, value in machine.items())}", ""]
    lines += [
        "| class | cases | within bounds | elements | not compiled by Triton | not emulated |",
        "|---|---|---|---|---|---|",
    ]
    for kind in HEADINGS:
        mine = [row for row in rows if row["kind"] == kind]
        count = defaultdict(int)
        for row in mine:
            count[row["status"]] += 1
        good = count["pass"] + count["emulated"]
        elements = sum(row["elements"] for row in mine if row["status"] in ("pass", "fail", "emulated"))
        lines.append(f"| {kind} | {len(mine)} | {good} | {elements:,} | {count['triton']} | {count['unsupported']} |")
    for kind, heading in HEADINGS.items():
        mine = [row for row in rows if row["kind"] == kind]
        if mine:
            lines += ["", f"**{heading}**", "", *(_exact(mine) if kind in ("exact", "undefined") else _bounded(mine))]
    return "\n".join(lines) + "\n"


def _exact(rows: list[dict]) -> list[str]:
    """One line an operation, with its types."""
    by_operation = defaultdict(list)
    for row in rows:
        by_operation[row["group"], row["operation"]].append(row)
    lines = ["| group | operation | types | equal | what differs |", "|---|---|---|---|---|"]
    for (group, operation), mine in by_operation.items():
        types = ", ".join(f"{'/'.join(dict.fromkeys(row['inputs']))} → {row['out']}" for row in mine)
        if len(types) > 160:
            types = f"{len(mine)} pairs of types"
        good = sum(row["status"] in ("pass", "emulated") for row in mine)
        notes = [f"{row['name']}: {_note(row)}" for row in mine if row["status"] not in ("pass", "emulated")]
        lines.append(f"| {group} | `{operation}` | {types} | {good} of {len(mine)} | {_cell('; '.join(notes))} |")
    return lines


def _bounded(rows: list[dict]) -> list[str]:
    lines = ["| operation | types | bound | worst seen | same bits | note |", "|---|---|---|---|---|---|"]
    for row in rows:
        types = f"{'/'.join(dict.fromkeys(row['inputs']))} → {row['out']}"
        worst = f"{row['worst']:.3g}" if "worst" in row else ""
        exact = f"{row['exact']:.1%}" if "exact" in row else ""
        note = "" if row["status"] in ("pass", "emulated") else f"{row['status']}: {_note(row)}"
        lines.append(f"| `{row['operation']}` | {types} | {row['bound']:.3g} | {worst} | {exact} | {_cell(note)} |")
    return lines


def _note(row: dict) -> str:
    differ = f"{row['differ']} of {row['elements']} differ: " if "differ" in row else ""
    return differ + row.get("why", "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")[:400]
