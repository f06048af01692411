"""Draws how wrong the cheap estimates of a token count are: src/tokens/estimators.svg.

    python tests/vocabulary/estimators.py [--check]

Needs Python alone. The texts and their true counts (o200k_base) are those of tests/fixtures/token_counts.jsonl, which
tiktoken made. Prints the table of src/tokens/README.md. With --check nothing is written; the exit status says whether
the picture is the one that would be drawn.
"""

import json
import math
import re
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FIXTURE = ROOT / "tests/fixtures/token_counts.jsonl"
PICTURE = ROOT / "src/tokens/estimators.svg"
# A ratio of small numbers says little.
LEAST_BYTES = 64

# The characters by their first code point: (first, weight of one). Fitted on another corpus.
SCRIPTS = [
    (0x80, 0.53), (0x370, 0.35), (0x400, 0.18), (0x530, 0.53), (0x590, 0.40), (0x600, 0.26), (0x780, 0.53),
    (0x900, 0.38), (0xE00, 0.52), (0xE80, 0.53), (0x1100, 0.56), (0x1200, 0.53), (0x1F00, 0.35), (0x2000, 0.53),
    (0x3040, 0.69), (0x3100, 0.53), (0x3130, 0.56), (0x3190, 0.53), (0x3400, 0.82), (0xA000, 0.53), (0xAC00, 0.56),
    (0xD7A4, 0.53), (0x10000, 2.3),
]
RUNS = re.compile(r"(?P<word>[A-Z]?[a-z]+|[A-Z]+(?![a-z]))|(?P<digits>[0-9]+)|(?P<lines>[\r\n]+)|(?P<blanks>[ \t]+)"
                  r"|(?P<other>[^\x00-\x7f]+)|(?P<signs>[^A-Za-z0-9\s\x80-\U0010ffff]+|.)", re.DOTALL)


def of_character(character):
    return next(weight for first, weight in reversed(SCRIPTS) if ord(character) >= first)


def of_run(kind, run):
    size = len(run)
    if kind == "word":
        return 1.0 + 0.16 * max(0, size - 6) + 0.23 * max(0, size - 12)
    if kind == "digits":
        return 1.33 * math.ceil(size / 3)
    if kind == "lines":
        return 0.85
    if kind == "blanks":
        # A single blank belongs to the word after it.
        return 1.1 if size > 1 else 0.0
    if kind == "other":
        return 0.53 + sum(map(of_character, run))
    return 0.37 + 0.63 * (size - 1)


def class_weights(text):
    return sum(of_run(match.lastgroup, match.group()) for match in RUNS.finditer(text))


# What can stand left and right of a place where a piece certainly ends, as in src/tokens/bounds.rs.
CUTS = [(r"[A-Za-z]", r"[^A-Za-z'\x80-\U0010ffff]"), (r"[0-9]", r"[^0-9\x80-\U0010ffff]"),
        (r"[!-/:-@\[-`{-~]", r"[0-9 ]"), (r"[\x00- \x7f]", r"[0-9]")]
CUT = re.compile("|".join(f"(?<={left})(?={right})" for left, right in CUTS))


def lower(text):
    return max(math.ceil(len(text.encode()) / 128), sum(1 for _ in CUT.finditer(text)) + 1)


ESTIMATES = {
    "bytes / 4": lambda text: len(text.encode()) / 4,
    "class weights": class_weights,
    "lower bound": lower,
    "upper bound": lambda text: len(text.encode()),
}


def ratios():
    """Estimate / true count of every text, by kind and estimate."""
    kinds = {}
    for line in FIXTURE.read_text("utf-8").splitlines():
        kind, tokens, _, text = json.loads(line)
        if len(text.encode()) >= LEAST_BYTES:
            of_kind = kinds.setdefault(kind, {name: [] for name in ESTIMATES})
            for name, estimate in ESTIMATES.items():
                of_kind[name].append(estimate(text) / tokens)
            assert of_kind["lower bound"][-1] <= 1 <= of_kind["upper bound"][-1], text
    return kinds


def table(kinds):
    lines = ["| estimate | mean | median | 95 % are within | worst below | worst above |"]
    lines.append("|---|---:|---:|---:|---:|---:|")
    for name in ESTIMATES:
        errors = sorted((ratio - 1) * 100 for kind in kinds.values() for ratio in kind[name])
        within = sorted(map(abs, errors))[math.ceil(len(errors) * 0.95) - 1]
        numbers = [statistics.mean(errors), statistics.median(errors), within, errors[0], errors[-1]]
        signed = [f"{number:+.0f} %" for number in numbers]
        signed[2] = f"±{within:.0f} %"
        lines.append(f"| {name} | " + " | ".join(signed).replace("-", "−") + " |")
    return "\n".join(lines)


WIDTH, LEFT, TOP, ROW = 840, 122, 64, 13
LOW, HIGH = 1 / 64, 16


def across(ratio):
    return round(LEFT + (WIDTH - LEFT - 16) * math.log(min(max(ratio, LOW), HIGH) / LOW) / math.log(HIGH / LOW), 1)


def bar(values, y, name):
    low, middle, high = (across(pick(values)) for pick in (min, statistics.median, max))
    return f'<path class="{name}" d="M{low} {y}H{high}"/><circle class="{name}" cx="{middle}" cy="{y}" r="3"/>'


def row(kind, estimates, y):
    low = across(statistics.median(estimates["lower bound"]))
    high = across(statistics.median(estimates["upper bound"]))
    return [f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{kind}</text>',
            f'<path class="c" d="M{low} {y}H{high}"/>',
            bar(estimates["bytes / 4"], y - 2, "b"), bar(estimates["class weights"], y + 2, "w")]


def legend():
    entries = [("b", "bytes / 4"), ("w", "class weights"), ("c", "free bounds, median of each")]
    parts = []
    for place, (name, says) in enumerate(entries):
        x = LEFT + place * 150
        parts.append(f'<path class="{name}" d="M{x} 30h24"/>')
        if name != "c":
            parts.append(f'<circle class="{name}" cx="{x + 12}" cy="30" r="3"/>')
        parts.append(f'<text x="{x + 30}" y="34">{says}</text>')
    return parts


def axis(bottom):
    parts = []
    for power in range(-6, 5):
        x, says = across(2.0**power), f"{2**power} ×" if power >= 0 else f"1/{2**-power}"
        style = "one" if power == 0 else "grid"
        parts.append(f'<path class="{style}" d="M{x} {TOP - 8}V{bottom}"/>')
        parts.append(f'<text x="{x}" y="{TOP - 12}" text-anchor="middle">{says}</text>')
    return parts


STYLE = ("text{font:11px sans-serif;fill:#333}path{fill:none;stroke-width:2}.grid{stroke:#e4e4e4;stroke-width:1}"
         ".one{stroke:#333;stroke-width:1}path.c{stroke:#d9d9d9;stroke-width:9}"
         "path.b{stroke:#d1495b}circle.b{fill:#d1495b}path.w{stroke:#2a6f97}circle.w{fill:#2a6f97}")


def picture(kinds):
    ordered = sorted(kinds.items(), key=lambda item: (statistics.median(item[1]["bytes / 4"]), item[0]))
    bottom = TOP + ROW * len(ordered)
    rows = [part for place, (kind, estimates) in enumerate(ordered)
            for part in row(kind, estimates, TOP + ROW * place + 6)]
    title = "Estimate / true number of tokens (o200k_base), by kind of text: median and range"
    grey = [part for part in rows if 'class="c"' in part]
    rest = [part for part in rows if 'class="c"' not in part]
    heading = f'<text x="{LEFT}" y="16" font-weight="bold">{title}</text>'
    body = ['<rect width="100%" height="100%" fill="#fff"/>', heading, *legend(), *grey, *axis(bottom), *rest]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 12}" width="{WIDTH}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *body, "</svg>", ""])


def main(arguments):
    kinds = ratios()
    drawn = picture(kinds)
    print(f"{sum(len(kind['bytes / 4']) for kind in kinds.values())} texts in {len(kinds)} kinds\n\n{table(kinds)}")
    if "--check" in arguments:
        return PICTURE.read_text("utf-8") != drawn
    PICTURE.write_text(drawn, "utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
