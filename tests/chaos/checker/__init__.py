"""The checker: proves from a history alone that the promises held, or names those that did not. Imports no groupmq."""
