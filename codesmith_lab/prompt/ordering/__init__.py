"""The order of prompt sections: what an order costs, and which order costs least."""
