"""The ASGI application of a tt-model package, with the program that it starts; driven as uvicorn drives it."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import unittest
from unittest import mock

from harness import ROOT, node_binary
from rig import synthetic_snapshot

sys.path.insert(0, str(ROOT / 'packaging/tt_model'))
import app as module  # noqa: E402


class Lifespan:
    """Starts and ends an application."""

    def __init__(self, app):
        self.app = app
        self.told, self.heard = asyncio.Queue(), asyncio.Queue()

    async def start(self):
        self.task = asyncio.create_task(self.app({'type': 'lifespan'}, self.told.get, self.heard.put))
        await self.told.put({'type': 'lifespan.startup'})
        return await asyncio.wait_for(self.heard.get(), 60)

    async def end(self):
        await self.told.put({'type': 'lifespan.shutdown'})
        answer = await asyncio.wait_for(self.heard.get(), 30)
        await self.task
        return answer


async def request(app, method, path, body=b'', headers=()):
    """Status, headers and body of an answer; the body of the request comes in two pieces."""
    pieces = [
        {'type': 'http.request', 'body': body[:10], 'more_body': True},
        {'type': 'http.request', 'body': body[10:], 'more_body': False},
    ]
    sent = []

    async def receive():
        return pieces.pop(0)

    async def send(message):
        sent.append(message)

    path, _, query = path.partition('?')
    scope = {'type': 'http', 'method': method, 'path': path, 'query_string': query.encode(), 'headers': list(headers)}
    await app(scope, receive, send)
    start, answer = sent
    return start['status'], dict(start['headers']), answer['body']


class AppTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.enterContext(mock.patch.object(module, 'PROGRAM', str(node_binary())))
        self.enterContext(mock.patch.dict(os.environ, {'GR00T_CACHE_DIR': 'none'}))

    def app(self, *more):
        arguments = ['--snapshot', str(synthetic_snapshot('tiny')), '--embodiment', 'gr1', '--threads', '1', *more]
        return module.App(module.Server(arguments))

    @contextlib.asynccontextmanager
    async def started(self, app):
        lifespan = Lifespan(app)
        self.assertEqual(await lifespan.start(), {'type': 'lifespan.startup.complete'})
        try:
            yield app
        finally:
            self.assertEqual(await lifespan.end(), {'type': 'lifespan.shutdown.complete'})
        self.assertEqual(app.server.process.returncode, 0)

    async def test_requests_are_handed_on_and_answered(self):
        async with self.started(self.app()) as app:
            status, headers, body = await request(app, 'GET', '/health')
            self.assertEqual((status, json.loads(body)['status']), (200, 'ok'))
            self.assertEqual(int(headers[b'content-length']), len(body))

            _, _, body = await request(app, 'GET', '/demo')
            demo = json.loads(body)
            json_type = [(b'content-type', b'application/json'), (b'host', b'elsewhere')]
            sent = json.dumps(demo['request']).encode()
            status, _, body = await request(app, 'POST', '/predict', sent, json_type)
            self.assertEqual(status, 200, body)
            self.assertEqual(json.loads(body)['action_keys'], list(json.loads(body)['actions']))

            status, _, body = await request(app, 'POST', '/predict', b'{"images": {}, "state": {}}', json_type)
            self.assertEqual(status, 422)
            self.assertIn('detail', json.loads(body))
            status, _, _ = await request(app, 'GET', '/nowhere?a=b')
            self.assertEqual(status, 404)

    async def test_a_body_that_is_too_large_goes_nowhere(self):
        with mock.patch.object(module, 'BODY_LIMIT', 64):
            async with self.started(self.app()) as app:
                status, _, body = await request(app, 'POST', '/predict', b'x' * 65)
        self.assertEqual((status, json.loads(body)), (413, {'detail': 'the body is larger than 64 bytes'}))

    async def test_a_policy_that_does_not_load_fails_the_start(self):
        for more in (['--layout', 'droid'], ['--no-such-option']):
            app = self.app(*more)
            answer = await Lifespan(app).start()
            self.assertEqual(answer['type'], 'lifespan.startup.failed')
            self.assertRegex(answer['message'], 'ended with status [12]')

    async def test_the_application_ends_with_its_program(self):
        told = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
        app = self.app()
        lifespan = Lifespan(app)
        await lifespan.start()
        app.server.process.kill()
        await asyncio.wait_for(told.wait(), 30)
        status, _, body = await request(app, 'GET', '/health')
        self.assertEqual(status, 502)
        self.assertIn('does not answer', json.loads(body)['detail'])
        await lifespan.end()


if __name__ == '__main__':
    unittest.main()
