"""Sends on late what a namespace sends by a device of this program: delay.py DEVICE MILLISECONDS.

Packets keep their order, each is up to a fifth later than is said, and none is lost. The device is there as long as
the program runs, which ends when its standard input does. Linux, as root.
"""

import fcntl
import os
import random
import select
import struct
import sys
import time
from collections import deque

# Numbers of linux/if_tun.h.
TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000
LONGEST_PACKET = 65536
SPREAD = 0.2

device, delay = sys.argv[1], float(sys.argv[2]) / 1000
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", device.encode(), IFF_TUN | IFF_NO_PI))
print("ready", flush=True)
waiting = deque()
while True:
    while waiting and waiting[0][0] <= time.monotonic():
        os.write(tun, waiting.popleft()[1])
    timeout = max(0, waiting[0][0] - time.monotonic()) if waiting else None
    readable, _, _ = select.select([tun, sys.stdin], [], [], timeout)
    if tun in readable:
        packet = os.read(tun, LONGEST_PACKET)
        due = time.monotonic() + delay * (1 + SPREAD * random.random())
        waiting.append((max(due, waiting[-1][0] if waiting else due), packet))
    elif sys.stdin in readable:
        break
