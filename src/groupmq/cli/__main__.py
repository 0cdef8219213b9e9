"""`python -m groupmq.cli`: the command, where its script is not on the path."""

from groupmq.cli import main

main()
