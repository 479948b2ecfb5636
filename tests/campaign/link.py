"""The way from one process to another, which can be cut off."""
import socket
import threading


class Link:
    """Passes bytes on from a port of its own. What is sent while it is cut arrives when it is healed, as after a partition."""

    def __init__(self, host, port):
        self.target, self.is_open = (host, port), threading.Event()
        self.is_open.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def cut(self):
        """Lets nothing through."""
        self.is_open.clear()

    def heal(self):
        """Lets everything through again."""
        self.is_open.set()

    def close(self):
        """Takes no more connections."""
        self.heal()
        self.listener.close()

    def accept(self):
        """Connections, until it is closed."""
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.connect, args=(near,), daemon=True).start()

    def connect(self, near):
        """One connection, both ways."""
        self.is_open.wait()
        try:
            far = socket.create_connection(self.target)
        except OSError:
            near.close()
            return
        for one, other in ((near, far), (far, near)):
            threading.Thread(target=self.pump, args=(one, other), daemon=True).start()

    def pump(self, one, other):
        """The bytes of one way, until its end."""
        try:
            while data := one.recv(1 << 16):
                self.is_open.wait()
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            one.close()
            other.close()
