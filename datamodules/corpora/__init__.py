"""Building a corpus of digits that people can be asked about: the one part of the datamodules that trains networks, and so knows `lightning_modules`."""
