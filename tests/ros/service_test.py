"""What a service manager hears of the node (sd_notify), and the health check of its container."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from harness import ROOT, NodeProcess, domain
from node_case import PATIENCE
from rig import parameters, synthetic_snapshot

HEALTHCHECK = ROOT / 'packaging/image/healthcheck.py'


@contextlib.contextmanager
def service_manager():
    """The socket of a service manager, and the variable that names it."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        path = Path(folder) / 'notify'
        manager.bind(str(path))
        manager.settimeout(PATIENCE)
        yield manager, {'NOTIFY_SOCKET': str(path)}


def after_signs_of_life(manager):
    """What is heard next that is no sign of life, and how many of those there were."""
    signs = 0
    while (heard := manager.recv(256).decode().strip()) == 'WATCHDOG=1':
        signs += 1
    return heard, signs


class ServiceTest(unittest.TestCase):
    def node(self, variables, **changes):
        number = self.enterContext(domain())
        given = parameters(synthetic_snapshot('tiny'), **changes)
        return self.enterContext(NodeProcess(given, domain_id=number, environment=variables))

    def test_readiness_life_and_end_are_told(self):
        with service_manager() as (manager, variables):
            node = self.node(variables | {'WATCHDOG_USEC': '40000'})
            self.assertEqual(after_signs_of_life(manager)[0], 'READY=1')
            # What it writes is read by a thread.
            node.wait_for_log('activating -> active', PATIENCE)
            for _ in range(5):
                self.assertEqual(manager.recv(256).decode().strip(), 'WATCHDOG=1')
            self.assertEqual(node.stop(signal.SIGTERM).code, 0)
            self.assertEqual(after_signs_of_life(manager)[0], 'STOPPING=1')

    def test_a_node_that_waits_for_transitions_is_ready(self):
        with service_manager() as (manager, variables):
            self.node(variables, autostart=False)
            self.assertEqual(after_signs_of_life(manager), ('READY=1', 0))

    def test_a_node_that_cannot_start_is_never_ready(self):
        with service_manager() as (manager, variables):
            node = self.node(variables, embodiment='nobody')
            self.assertEqual(after_signs_of_life(manager)[0], 'STOPPING=1')
            self.assertEqual(node.process.wait(PATIENCE), 1)


class HealthTest(unittest.TestCase):
    def health(self, number, name='/policy'):
        environment = os.environ | {'ROS_DOMAIN_ID': str(number), 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
        argv = [sys.executable, HEALTHCHECK, 'node', name]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=PATIENCE)
        return done.returncode, done.stderr.strip().splitlines()[-1:]

    def test_a_node_is_healthy_once_it_has_its_policy(self):
        number = self.enterContext(domain())
        given = parameters(synthetic_snapshot('tiny'))
        with NodeProcess(given, domain_id=number) as node:
            node.wait_for_log('activating -> active', PATIENCE)
            self.assertEqual(self.health(number), (0, []))
            self.assertEqual(self.health(number, '/other'), (1, ['no node /other is there']))
        with NodeProcess(given | {'autostart': False}, domain_id=number) as node:
            node.wait_for_log('unconfigured', PATIENCE)
            self.assertEqual(self.health(number), (1, ['/policy is unconfigured']))


if __name__ == '__main__':
    unittest.main()
