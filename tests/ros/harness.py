"""What tests with real ROS 2 peers need: the node as a process, and an rclpy peer beside it.

    with domain() as domain_id, NodeProcess({'snapshot': ...}, domain_id=domain_id) as node, Peer(domain_id) as peer:
        node.wait_for_log('waiting for')
        chunks = peer.collect(ActionChunk, '/policy/action_chunk', LATCHED)
        peer.wait_for(lambda: chunks, 10, 'the first chunk')
        report = node.stop()
        assert report.code == 0 and report.seconds < 2

Nothing leaves the machine: discovery is limited to it, and every test has a domain of its own. A failed wait raises
AssertionError with what it waited for; the node's log is then printed when the NodeProcess is left.
"""

import contextlib
import copy
import fcntl
import itertools
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

try:
    import rclpy
    import yaml
    from diagnostic_msgs.msg import DiagnosticArray
    from rcl_interfaces.msg import Log
    from rclpy.action import ActionClient
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy, qos_profile_services_default
except ImportError as error:
    sys.exit(f'{error}: run scripts/setup.sh, then source .ros/env.sh (scripts/test.sh does both)')

ROOT = Path(__file__).resolve().parents[2]

# Domains whose ports stay below the range that Linux hands out to other programs; 0 is everybody's default. Each test begins
# where the one before ended, since a process that was killed leaves its part of a domain's shared memory behind.
DOMAINS = range(1, 102)
turns = itertools.cycle(random.sample(DOMAINS, len(DOMAINS)))

# Where domains are locked: one place for all who may run tests on this machine.
LOCKS = Path('/tmp')

# The design's limit for the end of the node after SIGINT or SIGTERM [s].
STOP_LIMIT_S = 2.0

# Longest pause between two looks at a condition [s].
POLL_S = 0.02

# Messages that wait in a subscription for this process to read them.
ROOM = 1000

# Longest wait for others to be found on a busy machine [s].
DISCOVERY_S = 30.0

SENSOR_DATA = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=5, reliability=ReliabilityPolicy.BEST_EFFORT
)
RELIABLE = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=10, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)


def node_binary():
    """The built node: GR00T_BLACKHOLE_BIN, else the release build of this checkout."""
    named = os.environ.get('GR00T_BLACKHOLE_BIN')
    target = Path(os.environ.get('CARGO_TARGET_DIR', ROOT / 'target'))
    binary = Path(named) if named else target / 'release/gr00t_blackhole'
    if not os.access(binary, os.X_OK):
        raise FileNotFoundError(f'{binary} is not there: cargo build --release')
    return binary


@contextlib.contextmanager
def domain():
    """A ROS_DOMAIN_ID that no other running test uses, held by a lock file."""
    for number in itertools.islice(turns, len(DOMAINS)):
        path = LOCKS / f'gr00t_blackhole_domain_{number}.lock'
        with path.open('w') as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield number
            return
    raise RuntimeError(f'all {len(DOMAINS)} test domains are in use')


def wait_until(condition, timeout, what, step=lambda: time.sleep(POLL_S)):
    """Calls `step` until `condition` gives something true, and returns that."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f'waited {timeout} s in vain for {what}')
        step()


@dataclass
class StopReport:
    """How a process ended."""

    # Exit status; negative for the signal that killed it.
    code: int
    # From the signal to the end [s].
    seconds: float


class NodeProcess:
    """The node in a process of its own.

    `parameters` go in by a parameter file, with their types; `arguments` follow `--ros-args`. `command` replaces the
    node by another program.
    """

    def __init__(self, parameters=None, *, domain_id, arguments=(), environment=None, command=None):
        self.parameters = parameters or {}
        self.domain_id = domain_id
        self.arguments = list(arguments)
        self.environment = environment or {}
        self.command = command
        self.process = None
        self._lines = []
        self._seen = 0

    def __enter__(self):
        self._scratch = tempfile.TemporaryDirectory(prefix='gr00t_blackhole_')
        argv = list(self.command or [str(node_binary()), 'node'])
        argv.append('--ros-args')
        if self.parameters:
            path = Path(self._scratch.name) / 'parameters.yaml'
            path.write_text(yaml.safe_dump({'/**': {'ros__parameters': self.parameters}}))
            argv += ['--params-file', str(path)]
        argv += self.arguments
        environment = {
            **os.environ,
            'ROS_DOMAIN_ID': str(self.domain_id),
            'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
            **self.environment,
        }
        self.process = subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors='replace',
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, kind, error, trace):
        self._end()
        self._reader.join(1)
        self.process.stdout.close()
        self._scratch.cleanup()
        if kind is not None:
            print(f'--- log of the node (exit status {self.process.returncode}) ---', file=sys.stderr)
            print(self.log(), file=sys.stderr)
            print('--- end of the log ---', file=sys.stderr)

    def _end(self):
        """Like an operator, who kills only what does not stop."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(2 * STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _read(self):
        for line in self.process.stdout:
            self._lines.append(line.rstrip('\n'))

    def log(self):
        """Everything that the node has written so far."""
        return '\n'.join(self._lines)

    def wait_for_log(self, pattern, timeout=10.0):
        """Waits for a line that matches the regular expression, later than the last one found; returns the match."""

        def found():
            while self._seen < len(self._lines):
                line = self._lines[self._seen]
                self._seen += 1
                if match := re.search(pattern, line):
                    return match
            if self.process.poll() is not None and not self._reader.is_alive():
                raise AssertionError(f'the node ended with {self.process.returncode} before it logged {pattern!r}')
            return None

        return wait_until(found, timeout, f'a line of the log that matches {pattern!r}')

    def running(self):
        return self.process.poll() is None

    def stop(self, number=signal.SIGINT, limit=STOP_LIMIT_S * 5):
        """Sends a signal, waits for the end and says how long it took.

        `limit` only keeps a test from hanging: what the node may take is for the test to judge.
        """
        start = time.monotonic()
        self.process.send_signal(number)
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise AssertionError(f'the node still ran {limit} s after {signal.Signals(number).name}') from None
        seconds = time.monotonic() - start
        self._reader.join(1)
        return StopReport(code, seconds)

    def resident_bytes(self):
        """Memory of the process that is in RAM."""
        status = Path(f'/proc/{self.process.pid}/status').read_text()
        return int(re.search(r'^VmRSS:\s+(\d+) kB', status, re.MULTILINE)[1]) * 1024

    def cpu_seconds(self):
        """Processor time that the process has used, user and system."""
        fields = Path(f'/proc/{self.process.pid}/stat').read_text().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Peer:
    """An rclpy node in this process, in the given domain. Messages are received while one of its methods waits."""

    def __init__(self, domain_id, name='peer'):
        self.domain_id, self.name = domain_id, name
        # By name. Each has a subscription for its answers, so one is made no more often than it has to be.
        self.clients = {}
        # Whether there is a subscription that the node may not know yet.
        self.is_new = False

    def __enter__(self):
        os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=self.domain_id)
        self.node = rclpy.create_node(self.name, context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        return self

    def __exit__(self, *_):
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)

    def wait_for(self, condition, timeout, what):
        """Receives messages until `condition` gives something true, and returns that."""
        return wait_until(condition, timeout, what, lambda: self.executor.spin_once(timeout_sec=POLL_S))

    def spin(self, seconds):
        """Receives messages for so long."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.executor.spin_once(timeout_sec=min(left, POLL_S))

    def settle(self):
        """Waits until the node knows every subscription of this peer, those for the answers of services among them.

        That the peer knows the node does not say so, and what is sent once before the node knows the peer never comes.
        The node hears of subscriptions in the order in which they were made: once it sends something to the last ones, it
        knows all. What it has logged lately comes at once, and its diagnostics come every second.
        """
        if not self.is_new:
            return
        told = []

        def hear_log(line):
            # Not this peer's own.
            if line.file.endswith('.rs'):
                told.append(line)

        last = [
            self.node.create_subscription(Log, '/rosout', hear_log, LATCHED),
            self.node.create_subscription(DiagnosticArray, '/diagnostics', told.append, RELIABLE),
        ]
        try:
            self.wait_for(lambda: told, DISCOVERY_S, 'the log or the diagnostics of the node')
        finally:
            for subscription in last:
                self.node.destroy_subscription(subscription)
        self.is_new = False

    def collect(self, kind, topic, qos=RELIABLE, *, raw=False):
        """Subscribes, and returns the list into which messages go (as bytes of the wire if `raw`)."""
        messages = []
        # However long this process is busy with something else, what comes meanwhile has room.
        qos = copy.copy(qos)
        qos.depth = max(qos.depth, ROOM)
        self.node.create_subscription(kind, topic, messages.append, qos, raw=raw)
        self.is_new = True
        return messages

    def publisher(self, kind, topic, qos=SENSOR_DATA, *, subscribers=1):
        """A publisher that has found its subscribers; the node, where it is one of them, then knows this peer's
        subscriptions, so that what it makes of the first message comes.
        """
        publisher = self.node.create_publisher(kind, topic, qos)
        if subscribers:
            found = lambda: publisher.get_subscription_count() >= subscribers
            self.wait_for(found, DISCOVERY_S, f'{subscribers} subscriber(s) of {topic}')
            self.settle()
        return publisher

    def client(self, kind, name, qos=qos_profile_services_default):
        """A client of a service of the node, which is ready to be called."""
        if name not in self.clients:
            self.clients[name] = self.node.create_client(kind, name, qos_profile=qos)
            self.is_new = True
        self.wait_for(self.clients[name].service_is_ready, DISCOVERY_S, f'the service {name}')
        self.settle()
        return self.clients[name]

    def action_client(self, kind, name):
        """A client of an action of the node, which is ready for goals."""
        client = ActionClient(self.node, kind, name)
        self.is_new = True
        self.wait_for(client.server_is_ready, DISCOVERY_S, f'the action {name}')
        self.settle()
        return client

    def call(self, kind, name, request, timeout=10.0):
        """Calls a service of the node and returns its response."""
        future = self.client(kind, name).call_async(request)
        self.wait_for(future.done, timeout, f'the answer of {name}')
        return future.result()
