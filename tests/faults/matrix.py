"""The fault matrix: every cell is run by a kind, or says why not."""


def text():
    return ""


def record():
    return 0
