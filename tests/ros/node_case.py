"""What tests of a running node share."""

import unittest

from harness import NodeProcess, Peer, domain
from rig import values

# Longest wait for anything that comes at once on an idle machine [s].
PATIENCE = 30


class NodeCase(unittest.TestCase):
    def start_node(self, parameters, arguments=(), environment=None):
        """A node and a peer in a domain of their own; both end with the test."""
        number = self.enterContext(domain())
        node = NodeProcess(parameters, domain_id=number, arguments=arguments, environment=environment)
        self.enterContext(node)
        return node, self.enterContext(Peer(number, f'peer_{number}'))

    def line(self, node, peer, pattern):
        """A line of the node's log that matches, later than the last one found; messages go on meanwhile."""

        def found():
            try:
                return node.wait_for_log(pattern, 0).string
            except AssertionError:
                if node.running():
                    return None
                raise

        return peer.wait_for(found, PATIENCE, f'a line of the log that matches {pattern!r}')

    def assert_same_bytes(self, chunk, expected):
        """The chunk has the groups and the bytes that the offline command has computed."""
        self.assertEqual([group.name for group in chunk.groups], list(expected))
        for name, rows in values(chunk).items():
            self.assertEqual(rows.tobytes(), expected[name].tobytes(), name)
