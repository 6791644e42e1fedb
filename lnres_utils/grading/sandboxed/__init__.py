"""What runs beside a student's code: no reference, no case, no tolerance is in this folder.

It is started as a program (``zygote.py``), not imported by whoever grades, but for ``wire``.
"""
