"""A flame graph as SVG from folded stacks ("a;b;c count" a line): the width of a frame is its share of all samples."""

from html import escape

WIDTH, ROW, LEAST = 1000, 17, 0.005  # pixels; frames with a smaller share are left out
CHARACTER = 6.2  # pixels


def read(path):
    """{name: [samples, children]} of all stacks; frames without a symbol are left out."""
    root = [0, {}]
    for line in path.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        node = root
        node[0] += int(count)
        for name in stack.split(";"):
            if name and name != "[unknown]":
                node = node[1].setdefault(name, [0, {}])
                node[0] += int(count)
    return root


def boxes(node, total, left=0.0, level=0):
    """(name, share, left edge as a share, level) of every frame that is wide enough."""
    for name, child in sorted(node[1].items()):
        share = child[0] / total
        if share >= LEAST:
            yield name, share, left, level
            yield from boxes(child, total, left, level + 1)
        left += share


def draw(path, target):
    root = read(path)
    found = list(boxes(root, root[0] or 1))
    height = (max(level for *_, level in found) + 1) * ROW + 24
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="monospace" font-size="10">',
             f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
             f'<text x="4" y="14" font-size="12">Processor time of the daemon, {root[0]} samples; callers below, callees above</text>']
    for name, share, left, level in found:
        x, y, width = left * WIDTH, height - (level + 1) * ROW, share * WIDTH
        shade = 150 + sum(name.encode()) % 80
        room = int(width / CHARACTER)
        lines.append(f'<g><title>{escape(name)}: {share:.1%}</title><rect x="{x:.1f}" y="{y}" width="{max(width - 0.5, 0.5):.1f}" height="{ROW - 1}"'
                     f' fill="rgb(245,{shade},90)"/>'
                     + (f'<text x="{x + 2:.1f}" y="{y + 12}">{escape(name[:room])}</text>' if room > 3 else "") + "</g>")
    target.write_text("\n".join([*lines, "</svg>"]) + "\n")
