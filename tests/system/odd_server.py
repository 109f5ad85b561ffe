#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A backend's server whose manner is what a file says: odd_server.py PORT FILE ADDRESS,… [PEM].

The file holds a status, or hang, reset, close, bytes (one at a time), endless or rubbish; it is
read for each connection. With a certificate and its key, in one PEM file, it speaks TLS. At the
same port of UDP and each ADDRESS it answers each datagram while the manner is 200.
"""

import pathlib
import socket
import ssl
import struct
import sys
import threading
import time


def answer(connection, manner):
    if manner == "hang":
        time.sleep(60)
    elif manner == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif manner != "close":
        while b"\r\n\r\n" not in connection.recv(4096):
            pass
        if manner == "rubbish":
            connection.sendall(b"220 mail.example.org ESMTP\r\n")
        elif manner == "bytes":
            for byte in b"HTTP/1.1 200 OK\r\n\r\n":
                connection.sendall(bytes([byte]))
                time.sleep(1)
        elif manner == "endless":
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                connection.sendall(bytes(4096))
        else:
            connection.sendall(f"HTTP/1.1 {manner} Odd\r\n\r\n{manner}\n".encode())


def talk(connection, file, context):
    manner = file.read_text(encoding="ascii").strip()
    try:
        if context is not None:
            connection = context.wrap_socket(connection, server_side=True)
        answer(connection, manner)
    except (OSError, ValueError):
        pass
    finally:
        connection.close()


def reply(address, port, file):
    """Bound to the address: from another, by which the route may lead, it is no reply."""
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind((address, port))
    while True:
        _, sender = datagrams.recvfrom(2048)
        if file.read_text(encoding="ascii").strip() == "200":
            datagrams.sendto(b"here", sender)


def main():
    port, file = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    context = None
    if len(sys.argv) > 4:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[4])
    listener = socket.create_server(("::", port), family=socket.AF_INET6, backlog=128,
                                    dualstack_ipv6=True)
    for address in sys.argv[3].split(","):
        threading.Thread(target=reply, args=(address, port, file), daemon=True).start()
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=talk, args=(connection, file, context), daemon=True).start()


if __name__ == "__main__":
    main()
