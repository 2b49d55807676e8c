"""The policy server as an ASGI application, which is what tt-model starts (with uvicorn).

The program beside this file serves on a free port of the loopback interface from the start of the application to its
end; every request is handed on to it as it is. The application has started when the program says that it is ready.
"""

import asyncio
import json
import os
import signal
import urllib.error
import urllib.request
from pathlib import Path

PROGRAM = str(Path(__file__).with_name('gr00t_blackhole'))

# Largest body that is handed on [bytes]; the program's own default.
BODY_LIMIT = 64 << 20
# Longest wait for an answer [s]: longer than the program's own deadline.
ANSWER_LIMIT_S = 120
# Time between two looks whether the program is ready [s].
LOOK_S = 0.2

# Headers that are about one connection, and those that the client library sets itself.
NOT_HANDED_ON = {'connection', 'host', 'content-length', 'transfer-encoding', 'keep-alive', 'expect'}


class Server:
    """The program, as a process."""

    def __init__(self, arguments=()):
        self.arguments = list(arguments)
        self.process = None
        self.url = None

    async def start(self):
        """Returns once the policy is ready; raises RuntimeError if the program ends before."""
        argv = [PROGRAM, 'serve', '--http', '127.0.0.1:0', *self.arguments]
        self.process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
        line = (await self.process.stdout.readline()).decode().strip()
        self.url = line.removeprefix('listening on ')
        while not await self.is_ready():
            if self.process.returncode is not None:
                raise RuntimeError(f'the policy server ended with status {self.process.returncode}; see its log above')
            await asyncio.sleep(LOOK_S)

    async def is_ready(self):
        if not self.url.startswith('http://'):
            await self.process.wait()
            return False
        status, _, body = await asyncio.to_thread(exchange, f'{self.url}/health', 'GET', {}, b'')
        return status == 200 and json.loads(body).get('status') == 'ok'

    async def stop(self):
        """Ends the program, which finishes the requests under way."""
        if self.process and self.process.returncode is None:
            self.process.terminate()
            await self.process.wait()


def exchange(url, method, headers, body):
    """Status, headers and body of the answer to one request; 502 if there is none."""
    request = urllib.request.Request(url, data=body or None, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_LIMIT_S) as answer:
            return answer.status, answer.headers.items(), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers.items(), error.read()
    except OSError as error:
        return refusal(502, f'the policy server does not answer: {error}')


def refusal(status, detail):
    return status, [('content-type', 'application/json')], json.dumps({'detail': detail}).encode()


async def whole_body(receive):
    """The body of a request, or None if it is larger than what is handed on."""
    body = bytearray()
    while True:
        message = await receive()
        if message['type'] == 'http.disconnect':
            return bytes(body)
        body += message.get('body', b'')
        if len(body) > BODY_LIMIT:
            return None
        if not message.get('more_body'):
            return bytes(body)


class App:
    def __init__(self, server):
        self.server = server

    async def __call__(self, scope, receive, send):
        if scope['type'] == 'lifespan':
            await self.live(receive, send)
        elif scope['type'] == 'http':
            await self.hand_on(scope, receive, send)
        else:
            raise RuntimeError(f"a connection of type {scope['type']} is not served")

    async def live(self, receive, send):
        await receive()
        try:
            await self.server.start()
        except (OSError, RuntimeError) as error:
            await self.server.stop()
            await send({'type': 'lifespan.startup.failed', 'message': str(error)})
            return
        end_together = asyncio.create_task(self.end_together())
        await send({'type': 'lifespan.startup.complete'})
        await receive()
        end_together.cancel()
        await self.server.stop()
        await send({'type': 'lifespan.shutdown.complete'})

    async def end_together(self):
        """A program that ends by itself takes the application with it, so that the container is seen to have ended."""
        await self.server.process.wait()
        os.kill(os.getpid(), signal.SIGTERM)

    async def hand_on(self, scope, receive, send):
        body = await whole_body(receive)
        if body is None:
            status, headers, answer = refusal(413, f'the body is larger than {BODY_LIMIT} bytes')
        else:
            names = ((name.decode('latin-1'), value.decode('latin-1')) for name, value in scope['headers'])
            given = {name: value for name, value in names if name.lower() not in NOT_HANDED_ON}
            query = scope.get('query_string', b'').decode('latin-1')
            path = scope.get('raw_path', scope['path'].encode()).decode('latin-1')
            url = self.server.url + path + (f'?{query}' if query else '')
            status, headers, answer = await asyncio.to_thread(exchange, url, scope['method'], given, body)
        kept = [(name.lower().encode(), value.encode('latin-1')) for name, value in headers if name.lower() not in NOT_HANDED_ON]
        kept.append((b'content-length', str(len(answer)).encode()))
        await send({'type': 'http.response.start', 'status': status, 'headers': kept})
        await send({'type': 'http.response.body', 'body': answer})


app = App(Server())
