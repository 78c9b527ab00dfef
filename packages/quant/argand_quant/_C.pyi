# Registers operators when it is imported; has no names.
