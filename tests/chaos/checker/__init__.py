"""The checker: proves from a history alone that the promises held, or says which did not. No groupmq here."""
