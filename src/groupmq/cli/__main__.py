"""`python -m groupmq.cli`: the command, for when its script is not on the path."""

from groupmq.cli import main

main()
