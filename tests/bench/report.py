def write(quick):
    pass
