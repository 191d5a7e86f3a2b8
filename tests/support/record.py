"""Results that the tools write into pages, each between its own two markers; sections of docs/proof.md by name."""

import re
import subprocess


def commit_of(root):
    """The working tree's commit, with a + if files have changed."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "include", "sql")
    return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")


def replace_between(path, begin, end, lines):
    """Replaces the text from `begin` to `end`, both included, by these lines; a page without them stays unchanged (ValueError)."""
    before, found, rest = path.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{path}: no {begin} … {end}")
    path.write_text(before + "\n".join([begin, *lines, end]) + after)


def markers(name):
    return f"<!-- {name.lower()}: written by its tool -->\n", f"<!-- end of {name.lower()} -->\n"


def read_section(root, name):
    """The text between the markers, without them; "" if there is none."""
    path = root / "docs/proof.md"
    begin, end = (re.escape(marker) for marker in markers(name))
    found = re.search(begin + "(.*?)" + end, path.read_text() if path.exists() else "", re.DOTALL)
    return found[1].strip("\n") if found else ""


def write_section(root, name, text):
    """Replaces the text between the markers of a section; a missing section is appended."""
    path = root / "docs/proof.md"
    page = path.read_text() if path.exists() else "# Proof\n"
    begin, end = markers(name)
    block = begin + "\n" + text.strip("\n") + "\n\n" + end
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    if re.search(pattern, page, re.DOTALL):
        page = re.sub(pattern, lambda _: block, page, flags=re.DOTALL)
    else:
        page = page.rstrip("\n") + f"\n\n## {name}\n\n{block}"
    path.write_text(page)
