"""Pictures of docs/simulation.md as SVG text: curves on two logarithmic axes, and a timeline. The same rows give the
same text, which a test compares."""
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 70, 250, 20, 45
COLOURS = ("#0b6fa4", "#d1495b", "#3a7d44", "#8a5fbf", "#c77700", "#4a4a4a", "#00798c", "#9c2c77", "#7a8b00")
KINDS = {"send": "#0b6fa4", "recv": "#d1495b", "copy": "#3a7d44", "reduce": "#8a5fbf"}


def document(width, height, body):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'font-family="sans-serif" font-size="12">\n<rect width="{width}" height="{height}" fill="white"/>\n'
            + "\n".join(body) + "\n</svg>\n")


def text(x, y, words, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{words}</text>'


def line(x1, y1, x2, y2, more):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {more}/>'


def decades(low, high):
    return [10.0 ** power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def seconds_text(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 0.999:
            return f"{seconds * scale:g} {unit}"
    return f"{seconds * 1e9:g} ns"


def curves(series, axis):
    """series: [(name, [(x, seconds, simulated)])]. Powers of two along x, of ten along y; hollow points are the cost
    model's."""
    points = [point for _, line_ in series for point in line_]
    xs, ys = sorted({x for x, *_ in points}), decades(min(y for _, y, _ in points), max(y for _, y, _ in points))
    def across(x):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(x / xs[0]) / math.log(xs[-1] / xs[0])
    def up(y):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(y / ys[0]) / math.log(ys[-1] / ys[0])
    body = []
    for y in ys:
        body += [line(LEFT, up(y), WIDTH - RIGHT, up(y), 'stroke="#ddd"'),
                 text(LEFT - 8, up(y) + 4, seconds_text(y), ' text-anchor="end"')]
    power = 1 << math.ceil(math.log2(xs[0]))
    while power <= xs[-1]:
        body += [line(across(power), TOP, across(power), HEIGHT - BOTTOM, 'stroke="#eee"'),
                 text(across(power), HEIGHT - BOTTOM + 16, f"{power:,}", ' text-anchor="middle" font-size="10"')]
        power *= 4
    body.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, axis, ' text-anchor="middle"'))
    for number, (name, points) in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y, _ in sorted(points))
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        body += [f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3.5" stroke="{colour}" '
                 f'fill="{colour if simulated else "white"}"/>' for x, y, simulated in sorted(points)]
        body += [line(WIDTH - RIGHT + 15, TOP + 10 + 20 * number, WIDTH - RIGHT + 40, TOP + 10 + 20 * number,
                      f'stroke="{colour}" stroke-width="2"'),
                 text(WIDTH - RIGHT + 46, TOP + 14 + 20 * number, name)]
    return document(WIDTH, HEIGHT, body)


def timeline(events):
    """Chrome's trace events as `thalweg sim --trace` writes them: a row per rank, a bar per step until it is
    complete, from when it was ready and the one before it was done."""
    spans = [(event["pid"], event["ts"], event["ts"] + event["dur"], event["name"].split()[0]) for event in events
             if event["ph"] == "X"]
    ranks, last = sorted({rank for rank, *_ in spans}), max(end for _, _, end, _ in spans)
    lane, left, right = 46, 70, 20
    height = TOP + lane * len(ranks) + BOTTOM
    def across(microseconds):
        return left + (WIDTH - left - right) * microseconds / last
    body = []
    step = 10.0 ** math.floor(math.log10(last))
    step = step / 2 if last / step < 4 else step
    for tick in range(int(last / step) + 1):
        x = across(tick * step)
        body += [line(x, TOP, x, height - BOTTOM, 'stroke="#eee"'),
                 text(x, height - BOTTOM + 16, seconds_text(tick * step * 1e-6) if tick else "0", ' text-anchor="middle"')]
    for number, rank in enumerate(ranks):
        top = TOP + lane * number
        body.append(text(left - 8, top + 25, f"rank {rank}", ' text-anchor="end"'))
        for row, kind in enumerate(("recv", "send")):
            chosen, before = [], 0.0
            for begin, end in sorted((begin, end) for of, begin, end, what in spans if of == rank and what == kind):
                chosen.append((max(begin, before), end))
                before = end
            body += [f'<rect x="{across(begin):.1f}" y="{top + 4 + 19 * row}" width="{across(end) - across(begin):.1f}" '
                     f'height="16" fill="{KINDS[kind]}" fill-opacity="0.35" stroke="{KINDS[kind]}"/>'
                     for begin, end in chosen]
    for number, kind in enumerate(("recv", "send")):
        body += [f'<rect x="{left + 90 * number}" y="{height - 20}" width="14" height="12" fill="{KINDS[kind]}"/>',
                 text(left + 20 + 90 * number, height - 10, {"recv": "receives", "send": "sends"}[kind])]
    return document(WIDTH, height, body)
