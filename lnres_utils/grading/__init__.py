"""Grade a class: submissions in, a gradebook and feedback out.

An answer runs in a process that has no answer of ours in it (``sandboxed``); here, on the trusted
side, its outputs are compared with the reference and its mistake is named.
"""
