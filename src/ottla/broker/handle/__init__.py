"""One module per API. Each has `handle(broker, request)`, which returns the response, or an awaitable of it."""
