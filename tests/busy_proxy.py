"""An HTTP proxy in front of one server that turns some requests away as a busy server does."""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class BusyProxy:
    """Answers 429 to two of three requests whose path has `busy` in it; all others are handed on."""

    def __init__(self, target: str, busy: str):
        self.turned_away = 0
        self._counted, self._lock = 0, threading.Lock()
        proxy, host = self, urlsplit(target).netloc

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except ConnectionError:
                    self.close_connection = True

            def hand_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if busy in self.path and proxy._is_turned_away():
                    return self.answer(429, {"Content-Type": "application/json"}, b'{"error": "busy", "status": 429}')
                server = http.client.HTTPConnection(host)
                server.request(self.command, self.path, body, dict(self.headers))
                response = server.getresponse()
                self.answer(response.status, dict(response.headers), response.read())
                server.close()

            def answer(self, status, headers, body):
                self.send_response(status)
                for name, value in headers.items():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = hand_on

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="busy-proxy")
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _is_turned_away(self) -> bool:
        with self._lock:
            self._counted += 1
            away = self._counted % 3 != 0
            self.turned_away += away
            return away
