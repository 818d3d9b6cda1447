"""Why a target is polled as it is: facts, the causes in them, and their sentences."""
