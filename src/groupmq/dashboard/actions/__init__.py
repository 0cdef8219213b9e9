"""The actions that a reader can take. An action first shows how many jobs it changes and how it affects the order."""
