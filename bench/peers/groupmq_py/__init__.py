"""groupmq itself behind the command line of the peers, and the actions that only groupmq has. Public API only."""
