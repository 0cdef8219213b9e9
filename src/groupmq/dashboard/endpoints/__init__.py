"""The routes: from a request to a document to an answer."""
