"""``python -m secateur.cli``: the command line without an installed script."""

from secateur.cli import main

main(prog_name="secateur")
