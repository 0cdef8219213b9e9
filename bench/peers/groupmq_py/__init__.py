"""groupmq itself behind the peers' command line, and what only groupmq is asked to do. Public API only."""
