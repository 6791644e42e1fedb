"""The audit, asked about public libraries; requirements.txt beside this has their packages."""

from . import stand_ins

stand_ins.prepare()  # before the first of them is imported
