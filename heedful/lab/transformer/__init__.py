"""The Transformer's parts, one by one."""
