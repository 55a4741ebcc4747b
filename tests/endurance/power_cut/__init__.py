"""The power fails at random moments of a load: what is on the disk then is mounted, opened and compared.

The data folder lies on an ext4 of its own, in a loop device over an image in memory. At a moment all processes are
suspended, and the image is copied while the device writes nothing: the copy holds what was written to the device by
then, and nothing of what only the page cache of the system had. Mounting it replays the file system's journal, as after
a power cut. What this cannot show is a device that loses or reorders writes which it has not been asked to flush.
"""
