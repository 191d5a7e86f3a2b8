"""Figures as the report writes them."""


def number(value, digits=0):
    return f"{value:,.{digits}f}".replace(",", "\u202f")


def spread(found, digits=0, scale=1.0):
    """median (smallest … largest)"""
    if not found:
        return "–"
    if found["runs"] == 1:
        return number(found["median"] * scale, digits)
    return (f"{number(found['median'] * scale, digits)} ({number(found['min'] * scale, digits)} … "
            f"{number(found['max'] * scale, digits)})")


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
