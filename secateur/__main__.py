"""Run the command line as ``python -m secateur``, without an installed script."""

from secateur.cli import main

main(prog_name="secateur")
